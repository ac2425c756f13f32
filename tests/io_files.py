"""Files, tables and comparisons that the tests of stair.data share."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stair.data import Frame

NAN = float("nan")
NAT = np.datetime64("NaT", "us")
UTC = dt.UTC


def same(a: Frame, b: Frame) -> None:
    assert (list(a.columns), a.n_rows, a.notes, a.source) == (
        list(b.columns),
        b.n_rows,
        b.notes,
        b.source,
    )
    for name in a.columns:
        equal(a.columns[name], b.columns[name])


def equal(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype
    if a.dtype == object:
        assert a.tolist() == b.tolist()
        assert [type(v) for v in a] == [type(v) for v in b]
    else:
        np.testing.assert_array_equal(a, b)


def column(values: list[Any], dtype: Any) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), dtype=dtype)
    array[:] = values
    return array


def holds(frame: Frame, **expected: tuple[Any, list[Any]]) -> None:
    assert list(frame.columns) == list(expected)
    for name, (dtype, values) in expected.items():
        equal(frame.columns[name], column(values, dtype))
        assert len(frame.columns[name]) == frame.n_rows


def times(*values: str | None) -> tuple[Any, list[Any]]:
    return "datetime64[us]", [np.datetime64(v or "NaT", "us") for v in values]


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if these packages were not installed."""
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


@contextlib.contextmanager
def an_ordinary_person() -> Iterator[None]:
    """Root may read and write everything, so tests of permissions step down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def folder_for_everybody() -> Iterator[Path]:
    """A folder that everybody may look into, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


PAYMENTS = """id,amount,country,flagged,when
1,12.5,SE,true,2024-01-31
2,,NO,FALSE,2024-01-31 10:20
3,1e5,"a,b",True,2024-01-31T10:20:30
4,inf,"say ""hi""\nthere",false,2024-01-31 10:20:30.123456
"""


def rich_arrow() -> pa.Table:
    when = dt.datetime(2020, 1, 1, 12)
    return pa.table(
        {
            "i": [1, None, 3],
            "u": pa.array([1, 2, 3], pa.uint64()),
            "big": pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "f": pa.array([1.5, None, NAN], pa.float32()),
            "b": [True, None, False],
            "bb": [True, True, False],
            "cat": pa.array(["a", None, "b"]).dictionary_encode(),
            "s": ["NA", None, ""],
            "z": pa.array(
                [when.replace(tzinfo=UTC), None, None], pa.timestamp("us", "Europe/Berlin")
            ),
            "ns": pa.array([when, None, when], pa.timestamp("ns")),
            "d": [dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)],
            "t": [dt.time(13, 30), None, dt.time(0, 0, 36)],
            "dec": [Decimal("1.5"), None, Decimal("-2")],
            "l": [[1, 2], None, []],
            "st": [{"x": 1}, None, {"x": 2}],
            "n": pa.nulls(3),
            "bin": [b"x", None, b"y"],
        }
    )


RICH: dict[str, tuple[Any, list[Any]]] = {
    "i": (np.float64, [1, NAN, 3]),
    "u": (np.int64, [1, 2, 3]),
    "big": (np.uint64, [1, 2, 2**64 - 1]),
    "f": (np.float64, [1.5, NAN, NAN]),
    "b": (object, [True, None, False]),
    "bb": (np.bool_, [True, True, False]),
    "cat": (object, ["a", None, "b"]),
    "s": (object, ["NA", None, ""]),
    "z": times("2020-01-01T12:00", None, None),
    "ns": times("2020-01-01T12:00", None, "2020-01-01T12:00"),
    "d": times("2020-01-01", None, "1960-01-01"),
    "t": (np.float64, [13.5, NAN, 0.01]),
    "dec": (np.float64, [1.5, NAN, -2]),
    "l": (object, ["[1, 2]", None, "[]"]),
    "st": (object, ["{'x': 1}", None, "{'x': 2}"]),
    "n": (np.float64, [NAN, NAN, NAN]),
    "bin": (object, ["x", None, "y"]),
}
RICH_NOTES = ('the times in "z" have a time zone (Europe/Berlin); bounds on them are in UTC',)
