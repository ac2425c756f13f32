"""What a verdict is about: a rule is the rows that it matches, a table is its names and values.

The words of a rule may change and still mean the same rows, and a number means nothing once the
rules are learned again. The rows themselves are what the person looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError
from stair.io.arrays import from_array

SIZE = 16  # bytes; no two groups of rows will share a fingerprint by chance
CHUNK = 1 << 16


def fingerprint_of_rows(rows: NDArray[Any]) -> str:
    """The identity of a group of rows, whatever their order."""
    rows = np.asarray(rows)
    if rows.size and rows.dtype.kind not in "iu":
        raise StairError(f"expected the numbers of rows, got {rows.dtype}; use np.flatnonzero.")
    return hashlib.blake2b(np.sort(rows).astype("<i8").tobytes(), digest_size=SIZE).hexdigest()


def fingerprint_of_table(columns: Mapping[str, NDArray[Any]]) -> str:
    """The identity of a table: the names, kinds and values of its columns, in their order.

    The same on every run and machine. Zero has no sign here, and one NaN is as good as another.
    """
    whole = hashlib.blake2b(digest_size=SIZE)
    for name, values in columns.items():
        words = name.encode("utf-8", "surrogatepass")
        whole.update(len(words).to_bytes(8, "little") + words)
        whole.update(_digest_of_column(name, values))
    return whole.hexdigest()


def _digest_of_column(name: str, values: NDArray[Any]) -> bytes:
    values = _plain(name, values)
    kind = values.dtype.kind
    if kind == "O":
        kind = "t" if any(type(v) is str for v in values[:1]) or not _has_truths(values) else "o"
    digest = hashlib.blake2b(f"{kind}{len(values)}:".encode(), digest_size=SIZE)
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        if kind == "t":
            texts = part.tolist()
            present = [v for v in texts if v is not None]
            # Lengths tell where each text ends, so that no two columns run together alike.
            lengths = [-1 if v is None else len(v) for v in texts]
            digest.update(np.array(lengths, dtype="<i8").tobytes())
            digest.update("".join(present).encode("utf-8", "surrogatepass"))
        elif kind == "o":
            digest.update(bytes(2 if v is None else int(v) for v in part.tolist()))
        elif kind == "f":
            part = part + 0.0
            part[np.isnan(part)] = np.nan
            digest.update(part.astype("<f8").tobytes())
        elif kind == "b":
            digest.update(part.tobytes())
        else:
            digest.update(part.astype("<i8").tobytes())
    return digest.digest()


def _plain(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """The column as a `Frame` has it."""
    if values.dtype == object:
        kinds = set(map(type, values.tolist())) - {type(None)}
        return values if kinds in ({str}, {bool}, set()) else from_array(name, values)[0]
    if values.dtype.kind in "fib" or values.dtype == np.dtype("datetime64[us]"):
        return values
    return from_array(name, values)[0]


def _has_truths(values: NDArray[Any]) -> bool:
    return any(type(v) is bool for v in values.tolist())
