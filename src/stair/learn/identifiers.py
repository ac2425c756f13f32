"""Identifiers: columns whose values are names of rows, so that rules about them are a memory.

Texts and codes give themselves away by how seldom they repeat. Numbers do not: amounts in cents,
durations in microseconds and sizes in bytes hardly repeat either. A column of whole numbers that
hardly repeat is a key only where something else speaks for it: its name; that its values repeat
less often than any numbers in their range would by chance, as those that are given out one after
the other do; or that they are as long as no amount is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Final

from stair.rules.columns import FEW_ROWS, OFTEN_SHARE, ROWS_A_VALUE

# A column of categories most of whose rows have rare values is an identifier, unless some values
# come again and again: that many rows each, and OFTEN_SHARE of the rows together.
OFTEN: Final = 10

# Numbers that are drawn at random repeat as seldom with odds of e to the minus of this, or less.
SURPRISE: Final = 12.0
# So many digits, as many in each value: card numbers, serial numbers, barcodes.
LONG: Final = 12
# Values beyond this are no amounts, whatever their number of digits: hashes.
HASH: Final = 10**17

# The last word of names like order_id, userId, "Invoice No.", card.
_KEY_WORDS: Final = frozenset(
    ("id", "ids", "key", "uuid", "guid", "no", "nr", "num", "number", "index", "idx", "row",
     "rownum", "rowid", "card", "account", "iban", "phone", "ssn", "hash", "token", "serial", "ref",
     "reference", "barcode", "imei")
)  # fmt: skip
_JOINED: Final = re.compile(
    "(?:user|customer|client|order|record|patient|session|transaction|account|device|item|product|"
    "case|event|flow|trip|ride|ticket|invoice|admission|visit|member|person|employee|object|post)id"
)
# The last word of names of numbers that are codes.
_CODE_WORDS: Final = frozenset(
    ("port", "code", "status", "zip", "zipcode", "postcode", "type", "class", "protocol", "proto",
     "category", "channel", "store", "branch", "department", "dept", "error", "errno", "mcc")
)  # fmt: skip
# At most so many values have most of the rows where numbers are codes, and they lie so far apart.
MOST_CODES: Final = 50
APART: Final = 10
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# The years 2000 to 2100 in seconds since 1970.
_EPOCH: Final = (946_684_800, 4_102_444_800)


def why_identifier(counts: Collection[int]) -> str | None:
    """Why a column whose values occur so many times each is an identifier: a list of its values
    would be a memory of these rows. None where it is none."""
    n_rows = sum(counts)
    if n_rows <= FEW_ROWS:
        return None
    is_rare = 2 * sum(n for n in counts if n < ROWS_A_VALUE) > n_rows
    if not is_rare or sum(n for n in counts if n >= OFTEN) >= OFTEN_SHARE * n_rows:
        return None
    return hardly_repeat(n_rows, len(counts))


# How the reason begins where a column of numbers is one.
A_KEY: Final = "a key: "


def hardly_repeat(n_rows: int, n_distinct: int) -> str:
    if n_distinct == n_rows:
        return "all values differ"
    return f"values hardly repeat, {n_distinct:,} different ones in {n_rows:,} rows"


def is_key(name: str, low: int, high: int, repeats: int, pairs: float) -> bool:
    """Whether whole numbers from `low` to `high` that hardly repeat are keys. So many rows repeat
    an earlier one, and so many `pairs` of rows would be equal if all numbers in the range were
    equally likely, which is the fewest that chance can give."""
    return has_key_name(name) or _repeat_too_seldom(repeats, pairs) or _are_long(low, high)


def expected_pairs(n_rows: int, low: int, high: int) -> float:
    """How many pairs of rows are equal, of numbers that are equally likely in a range."""
    return n_rows * (n_rows - 1) / 2 / (int(high) - int(low) + 1)


def are_codes(name: str, values: Sequence[int], counts: Sequence[int]) -> bool:
    """Whether whole numbers may be names rather than amounts: by their own name, such as port or
    status; or because a few values, far apart from each other, have most of the rows."""
    if len(values) < 3:
        return False
    if _CODE_WORDS.intersection(words_of(name)[-1:]):
        return True
    n_rows = sum(counts)
    frequent = [v for v, n in zip(values, counts, strict=True) if n >= OFTEN_SHARE * n_rows]
    n_often = sum(n for n in counts if n >= OFTEN_SHARE * n_rows)
    if not 3 <= len(frequent) <= MOST_CODES or 2 * n_often < n_rows:
        return False
    return frequent[-1] - frequent[0] >= APART * len(frequent)


def words_of(name: str) -> list[str]:
    """The words of a column's name in lower case: dst and port of "Dst Port" and dstPort."""
    return [word.lower() for word in _WORDS.findall(name)]


def has_key_name(name: str) -> bool:
    words = words_of(name)
    return bool(words) and (words[-1] in _KEY_WORDS or bool(_JOINED.fullmatch(words[-1])))


def _repeat_too_seldom(repeats: int, pairs: float) -> bool:
    """By Chernoff's bound for the odds of so few."""
    if repeats >= pairs:
        return False
    logs = repeats * math.log(repeats / pairs) if repeats else 0.0
    return pairs - repeats + logs > SURPRISE


def _are_long(low: int, high: int) -> bool:
    """Numbers of the same many digits that are no times and lie apart from each other."""
    largest = max(abs(low), abs(high))
    if any(_EPOCH[0] * unit <= low and high <= _EPOCH[1] * unit for unit in (1, 1e3, 1e6, 1e9)):
        return False
    if largest >= HASH:
        return True
    digits = len(str(high))
    is_apart = (high - low) * 10 >= low
    return low > 0 and len(str(low)) == digits >= LONG and is_apart
