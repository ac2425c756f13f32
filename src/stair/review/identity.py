"""What a verdict is about: a rule is its clauses and the rows that it matches, a table is its names
and values.

A number means nothing once the rules are learned again. The words of a rule may change and still
mean the same rows, so an identity has two halves: the rows, and what is said of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from stair.data.arrays import from_array
from stair.data.frame import Array
from stair.errors import StairError
from stair.review.log import rows_in

SIZE = 16  # bytes; no two groups of rows will share a fingerprint by chance
CHUNK = 1 << 16
KINDS = {"f": "float", "i": "int", "u": "large", "b": "bool", "M": "time"}


def fingerprint_of_rows(rows: Array) -> str:
    """The identity of a group of rows, whatever their order."""
    rows = np.asarray(rows)
    if rows.size and rows.dtype.kind not in "iu":
        raise StairError(f"expected the numbers of rows, got {rows.dtype}; use np.flatnonzero.")
    return hashlib.blake2b(np.sort(rows).astype("<i8").tobytes(), digest_size=SIZE).hexdigest()


def identity_of_group(rows: Array, said: str, of: str = "") -> str:
    """The identity of a group: its rows and the class that they are `of`, then what is said."""
    first = fingerprint_of_rows(rows)
    return rows_in(_digest(of + first) if of else first) + rows_in(_digest(said))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).hexdigest()


def id_of_text(text: str) -> str:
    """The identity of a file's text."""
    return _digest(text)


def fingerprint_of_table(columns: Mapping[str, Array]) -> str:
    """The identity of a table: the names, kinds and values of its columns, in their order.

    The same on every run and machine. Zero has no sign here, and one NaN is as good as another.
    """
    whole = hashlib.blake2b(digest_size=SIZE)
    for name, values in columns.items():
        words = name.encode("utf-8", "surrogatepass")
        whole.update(len(words).to_bytes(8, "little") + words)
        whole.update(_digest_of_column(name, values))
    return whole.hexdigest()


def _digest_of_column(name: str, values: Array) -> bytes:
    values, kind = _plain(name, values)
    digest = hashlib.blake2b(f"{kind} {len(values)}:".encode(), digest_size=SIZE)
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        if kind in ("text", "whole", "large", "mixed"):
            texts = [v if v is None else str(v) for v in part.tolist()]
            # Lengths tell where each text ends, so that no two columns run together alike.
            lengths = [-1 if v is None else len(v) for v in texts]
            digest.update(np.array(lengths, dtype="<i8").tobytes())
            present = "".join([v for v in texts if v is not None])
            digest.update(present.encode("utf-8", "surrogatepass"))
        elif kind == "truth":
            digest.update(bytes(2 if v is None else int(v) for v in part.tolist()))
        elif kind == "float":
            with np.errstate(invalid="ignore"):  # some NaN complain
                part = part + 0.0
            part[np.isnan(part)] = np.nan
            digest.update(part.astype("<f8").tobytes())
        else:
            digest.update(part.astype("<i8").tobytes())
    return digest.digest()


def _plain(name: str, values: Array) -> tuple[Array, str]:
    """The column as a `Frame` has it, and its kind."""
    if values.dtype == object:
        kinds = set(map(type, values.tolist())) - {type(None)}
        if kinds <= {str}:
            return values, "text"
        if kinds in ({bool}, {int}):
            return values, "truth" if kinds == {bool} else "whole"
        if kinds == {int, float}:
            return values, "mixed"
    elif values.dtype.kind in KINDS and values.dtype.kind != "M":
        return values, KINDS[values.dtype.kind]
    plain = from_array(name, values)[0]
    return _plain(name, plain) if plain.dtype == object else (plain, KINDS[plain.dtype.kind])
