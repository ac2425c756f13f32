"""The demo's data: card payments with planted kinds of fraud, the same on every machine; of one
time, and month by month while fraud changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from stair.data.frame import Array

N_ROWS: Final = 5000

# What was planted, in words: what good rules should find again.
KINDS_OF_FRAUD: Final = (
    "large amounts from outside DE, FR and NL",
    "electronics between midnight and five",
    "refunds of almost nothing",
    "sizeable amounts without a device",
)

_COUNTRIES = ("DE", "FR", "NL", "IT", "ES", "US", "GB", "PL", "RO", "BR")
_MERCHANTS = ("groceries", "fuel", "electronics", "travel", "clothing", "restaurant", "games")
_DEVICES = ("phone", "laptop", "terminal", "tablet")
_OPENINGS = ("weekly", "monthly", "card payment for", "order of", "thank you for the", "invoice")
_THINGS = ("shopping", "ticket", "subscription", "dinner with friends", "fuel", "new shoes", "gift")
_ENDINGS = ("paid in full", "see you soon", "order number on the receipt", "no further action")


def payments() -> dict[str, Array]:
    """About 5,000 payments; `flagged` is 1 for the fraud that a detector would have found.

    A few flags are there without any reason and a few frauds are missed, as in life.
    """
    # The old generator: its stream of numbers is frozen for all versions of numpy.
    rng = np.random.RandomState(20240229)
    n = N_ROWS

    def choose(options: tuple[str, ...], shares: list[float] | None = None) -> Array:
        return rng.choice(np.array(options, dtype=object), size=n, p=shares)

    amount = np.round(np.exp(rng.normal(3.6, 1.1, n)), 2)
    amount = np.minimum(amount, 3900.0)
    hour = np.clip(np.round(rng.normal(14, 4.5, n)), 0, 23).astype(np.int64)
    country = choose(_COUNTRIES, [0.28, 0.18, 0.14, 0.1, 0.08, 0.07, 0.06, 0.04, 0.03, 0.02])
    merchant = choose(_MERCHANTS)
    device = choose(_DEVICES, [0.5, 0.2, 0.2, 0.1])
    note = np.array(
        [
            " ".join(words)
            for words in zip(choose(_OPENINGS), choose(_THINGS), choose(_ENDINGS), strict=True)
        ],
        dtype=object,
    )
    minute = rng.randint(0, 60, n)
    day = rng.randint(0, 90, n)

    def refund() -> str:
        return (
            f"refund of {_THINGS[rng.randint(len(_THINGS))]} {_ENDINGS[rng.randint(len(_ENDINGS))]}"
        )

    kind = np.zeros(n, dtype=np.int64)
    where = rng.permutation(n)
    sizes = (75, 60, 45, 40)
    starts = np.cumsum([0, *sizes])
    for number, (start, end) in enumerate(pairwise(starts.tolist()), start=1):
        kind[where[start:end]] = number
    foreign = [name for name in _COUNTRIES if name not in ("DE", "FR", "NL")]
    for row in where[: starts[-1]]:
        if kind[row] == 1:
            amount[row] = round(float(rng.uniform(4200, 9000)), 2)
            country[row] = foreign[rng.randint(len(foreign))]
        elif kind[row] == 2:
            hour[row], merchant[row] = rng.randint(0, 5), "electronics"
        elif kind[row] == 3:
            note[row] = refund()
            amount[row] = round(float(rng.uniform(0.05, 1.95)), 2)
        else:
            device[row] = None
            amount[row] = round(float(rng.uniform(960, 3900)), 2)
    # Honest payments that look like half of a fraud: each clause alone is not enough.
    honest = where[starts[-1] :]
    large = honest[:60]
    amount[large] = np.round(rng.uniform(4200, 9000, 60), 2)
    country[large] = np.array(("DE", "FR", "NL"), dtype=object)[rng.randint(0, 3, 60)]
    for row in honest[60:360]:
        note[row] = refund()
        amount[row] = max(amount[row], 12.0)
    for row in honest[360:560]:
        device[row] = None
        amount[row] = min(amount[row], 900.0)
    late = honest[560:760]
    hour[late] = rng.randint(0, 5, len(late))
    tiny = honest[760:1060]
    amount[tiny] = np.round(rng.uniform(0.05, 1.95, len(tiny)), 2)
    sizeable = honest[1060:1460]
    amount[sizeable] = np.round(rng.uniform(960, 3900, len(sizeable)), 2)
    night = (kind == 0) & (hour < 5) & (merchant == "electronics")
    merchant[night] = "restaurant"
    unexplained = (kind == 0) & (device == None) & (amount > 900)  # noqa: E711
    amount[unexplained] = np.round(rng.uniform(5, 900, int(unexplained.sum())), 2)

    flagged = (kind > 0).astype(np.int64)
    flagged[honest[2000:2008]] = 1  # flagged for no reason
    flagged[where[:6]] = 0  # missed
    note[rng.permutation(n)[:200]] = None
    # A missing note must not hide a planted refund.
    lost = (kind == 3) & np.array([v is None for v in note.tolist()])
    note[lost] = [refund() for _ in range(int(lost.sum()))]
    paid_at = (
        np.datetime64("2024-01-01T00:00:00", "us")
        + day.astype("timedelta64[D]")
        + hour.astype("timedelta64[h]")
        + minute.astype("timedelta64[m]")
    )
    return {
        "id": np.array([f"P{number:05d}" for number in range(n)], dtype=object),
        "paid_at": paid_at,
        "amount": amount,
        "hour": hour,
        "country": country,
        "merchant": merchant,
        "device": device,
        "note": note,
        "flagged": flagged,
    }


# --- month by month -------------------------------------------------------------------------------

# What is planted in the months: the kinds of the demo, and one that comes later.
GIFT_CARDS: Final = "gift cards for more than 200"
NEW_IN_MONTH: Final = 2
"""Since this month there are frauds with gift cards."""
FADED_IN_MONTH: Final = 5
"""Since this month nobody buys electronics at night with a stolen card any more."""

_FOREIGN = tuple(name for name in _COUNTRIES if name not in ("DE", "FR", "NL"))
_SHOPS = (*_MERCHANTS, "gift cards")


class Planted(NamedTuple):
    """How many payments of a month meet a pattern of fraud, on average: those that are one, and
    honest ones."""

    fraud: float
    honest: float = 0


USUAL: Final[Mapping[str, Planted]] = {
    KINDS_OF_FRAUD[0]: Planted(75, 4),
    KINDS_OF_FRAUD[1]: Planted(60, 1),
    KINDS_OF_FRAUD[2]: Planted(45),
    KINDS_OF_FRAUD[3]: Planted(40, 1),
}


def month(
    number: int, seed: int = 0, n: int = N_ROWS, planted: Mapping[str, Planted] | None = None
) -> dict[str, Array]:
    """The payments of one of twelve months of 2026, `flagged` by a detector.

    In month 2 a new kind of fraud begins, with gift cards; in month 5 one of the four kinds fades
    out. Each seed gives another twelve months of the same world. Of a month with other frauds, or
    more honest payments that look like them, `planted` says how many there are.
    """
    if planted is None:
        planted = dict(USUAL)
        if number >= NEW_IN_MONTH:
            planted[GIFT_CARDS] = Planted(60, 1)
        if number >= FADED_IN_MONTH:
            planted[KINDS_OF_FRAUD[1]] = Planted(0, 1)
    # The old generator: its stream of numbers is frozen for all versions of numpy.
    rng = np.random.RandomState([20260000 + number, seed])
    table = _honest(rng, n, number)
    free = rng.permutation(n)
    flagged = np.zeros(n, dtype=np.int64)
    flagged[free[:8]] = 1  # for no reason
    free = free[8:]
    for kind, expected in planted.items():
        fraud, honest = rng.poisson(expected)
        rows, free = free[: fraud + honest], free[fraud + honest :]
        _PATTERNS[kind](rng, table, rows)
        flagged[rows[:fraud]] = 1
    return {**table, "flagged": flagged}


def _honest(rng: np.random.RandomState, n: int, number: int) -> dict[str, Array]:
    """Payments that meet no pattern of fraud, though many meet half of one."""

    def choose(options: tuple[str, ...], shares: list[float] | None = None) -> Array:
        return rng.choice(np.array(options, dtype=object), size=n, p=shares)

    amount = np.minimum(np.exp(rng.normal(3.6, 1.1, n)), 3900.0)
    amount = np.where(rng.uniform(size=n) < 0.06, rng.uniform(0.05, 1.95, n), amount)
    hour = np.clip(np.round(rng.normal(14, 4.5, n)), 0, 23).astype(np.int64)
    hour = np.where(rng.uniform(size=n) < 0.04, rng.randint(0, 5, n), hour)
    country = choose(_COUNTRIES, [0.28, 0.18, 0.14, 0.1, 0.08, 0.07, 0.06, 0.04, 0.03, 0.02])
    merchant = choose(_SHOPS)
    device = choose((*_DEVICES, ""), [0.48, 0.18, 0.2, 0.1, 0.04])
    device[device == ""] = None
    openings = choose((*_OPENINGS, "refund of"), [0.155] * 6 + [0.07])
    note = openings + " " + choose(_THINGS) + " " + choose(_ENDINGS)
    large = (rng.uniform(size=n) < 0.08) & (device != None)  # noqa: E711
    amount = np.where(large, rng.uniform(960, 3900, n), amount)
    # Whatever would meet a whole pattern meets one half of it alone.
    at_home = rng.uniform(size=n) < 0.012
    amount = np.where(at_home, rng.uniform(4200, 9000, n), amount)
    country[at_home] = np.array(("DE", "FR", "NL"), dtype=object)[rng.randint(0, 3, n)][at_home]
    device[at_home & (device == None)] = "phone"  # noqa: E711
    merchant[(hour < 5) & (merchant == "electronics")] = "restaurant"
    amount = np.where((openings == "refund of") & (amount < 12), 12 + amount, amount)
    no_device = device == None  # noqa: E711
    amount = np.where(no_device, np.minimum(amount, 640.0), amount)
    merchant[(merchant == "gift cards") & (amount > 150)] = "travel"
    note[rng.uniform(size=n) < 0.04] = None
    days = np.datetime64(f"2026-{number:02d}", "M")
    last = int(((days + 1).astype("datetime64[D]") - days.astype("datetime64[D]")).astype(int))
    paid_at = (
        days.astype("datetime64[us]")
        + rng.randint(0, last, n).astype("timedelta64[D]")
        + rng.randint(0, 24 * 60, n).astype("timedelta64[m]")
    )
    return {
        "id": np.array([f"M{number:02d}-{k:05d}" for k in range(n)], dtype=object),
        "paid_at": paid_at, "amount": np.round(amount, 2), "hour": hour, "country": country,
        "merchant": merchant, "device": device, "note": note,
    }  # fmt: skip


def _foreign(rng: np.random.RandomState, table: dict[str, Array], rows: Array) -> None:
    table["amount"][rows] = np.round(rng.uniform(4200, 9000, len(rows)), 2)
    table["country"][rows] = rng.choice(np.array(_FOREIGN, dtype=object), len(rows))
    table["device"][rows] = "phone"


def _night(rng: np.random.RandomState, table: dict[str, Array], rows: Array) -> None:
    table["hour"][rows] = rng.randint(0, 5, len(rows))
    table["merchant"][rows] = "electronics"


def _refund(rng: np.random.RandomState, table: dict[str, Array], rows: Array) -> None:
    things = rng.choice(np.array(_THINGS, dtype=object), len(rows))
    table["note"][rows] = "refund of " + things + " " + _ENDINGS[0]
    table["amount"][rows] = np.round(rng.uniform(0.05, 1.95, len(rows)), 2)


def _no_device(rng: np.random.RandomState, table: dict[str, Array], rows: Array) -> None:
    table["device"][rows] = None
    table["amount"][rows] = np.round(rng.uniform(960, 3900, len(rows)), 2)


def _gift_cards(rng: np.random.RandomState, table: dict[str, Array], rows: Array) -> None:
    # Many honest payments are as large, so that neither attribute tells this kind by itself.
    table["merchant"][rows] = "gift cards"
    table["amount"][rows] = np.round(rng.uniform(210, 400, len(rows)), 2)


_PATTERNS: Final = {
    **dict(zip(KINDS_OF_FRAUD, (_foreign, _night, _refund, _no_device), strict=True)),
    GIFT_CARDS: _gift_cards,
}
