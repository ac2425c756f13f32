"""Every promise of stair.data.from_object, for tables of every library."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from io_files import NAN, PAYMENTS, RICH, RICH_NOTES, UTC, holds, rich_arrow, saved, times
from stair.data import from_object, read
from stair.data.arrays import Truth
from stair.errors import StairError


def test_arrow_tables() -> None:
    frame = from_object(rich_arrow())
    holds(frame, **RICH)
    assert (frame.notes, frame.source) == (RICH_NOTES, "")
    again = from_object(rich_arrow().to_batches()[0])
    holds(again, **RICH)
    codes = pa.table({"c": pa.array([3, None, 3]).dictionary_encode()})
    holds(from_object(codes), c=(np.float64, [3, NAN, 3]))
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    holds(from_object(twice), **{"a": (np.int64, [1]), "a (2)": (np.int64, [2])})


def test_polars_tables() -> None:
    when = dt.datetime(2020, 1, 1, 12)
    frame = from_object(
        pl.DataFrame(
            {
                "i": [1, None, 3],
                "u": pl.Series([1, 2, 3], dtype=pl.UInt8),
                "big": pl.Series([1, 2, 2**100], dtype=pl.Int128),
                "f": pl.Series([1.5, None, NAN], dtype=pl.Float32),
                "b": [True, None, False],
                "cat": pl.Series(["a", None, "b"], dtype=pl.Categorical),
                "enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])),
                "s": ["NA", None, ""],
                "z": pl.Series([when.replace(tzinfo=UTC)] * 3).dt.convert_time_zone(
                    "Europe/Berlin"
                ),
                "dt": [when, None, when],
                "d": [dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)],
                "span": [dt.timedelta(seconds=1.5), None, dt.timedelta(1)],
                "t": [dt.time(13, 30), None, dt.time(1)],
                "dec": [Decimal("1.5"), None, Decimal("2")],
                "l": [[1, 2], None, [3]],
                "st": [{"x": 1}, None, {"x": 2}],
                "n": [None] * 3,
                "bin": [b"x", None, b"\xff"],
                "o": pl.Series([1, "a", None], dtype=pl.Object),
            }
        )
    )
    holds(
        frame,
        i=(np.float64, [1, NAN, 3]),
        u=(np.int64, [1, 2, 3]),
        big=(np.float64, [1, 2, 2.0**100]),
        f=(np.float64, [1.5, NAN, NAN]),
        b=(object, [True, None, False]),
        cat=(object, ["a", None, "b"]),
        enum=(object, ["a", None, "b"]),
        s=(object, ["NA", None, ""]),
        z=times(*["2020-01-01T12:00"] * 3),
        dt=times("2020-01-01T12:00", None, "2020-01-01T12:00"),
        d=times("2020-01-01", None, "1960-01-01"),
        span=(np.float64, [1.5, NAN, 86400]),
        t=(np.float64, [13.5, NAN, 1]),
        dec=(np.float64, [1.5, NAN, 2]),
        l=(object, ["[1, 2]", None, "[3]"]),
        st=(object, ["{'x': 1}", None, "{'x': 2}"]),
        n=(np.float64, [NAN] * 3),
        bin=(object, ["x", None, "\\xff"]),
        o=(object, ["1", "a", None]),
    )
    assert frame.notes == RICH_NOTES


def test_pandas_tables() -> None:
    when = pd.Timestamp("2020-01-01 12:00:00.000001")
    zoned = pd.Series([when, pd.NaT, when]).dt.tz_localize("Europe/Berlin")

    def obj(*values: Any) -> pd.Series:
        return pd.Series(values, dtype=object)

    frame = from_object(
        pd.DataFrame(
            {
                "i": pd.array([1, None, 3], "Int64"),
                "i2": pd.array([1, 2, 3], "Int64"),
                "f": pd.array([1.5, None, 2], "Float64"),
                "b": pd.array([True, None, False], "boolean"),
                "b2": pd.array([True, True, False], "boolean"),
                "cat": pd.Categorical([1, 2, None]),
                "cat2": pd.Categorical([3, 2, 3]),
                "catb": pd.Categorical([True, False, None]),
                "cats": pd.Categorical(["a", None, "b"]),
                "s": ["a", None, "b"],
                "z": zoned,
                "dt": pd.Series([when, pd.NaT, when]),
                "span": pd.to_timedelta([1, 2, None], unit="s"),
                "numbers": obj(1, 2.5, Decimal("3")),
                "whole": obj(1, 2, 3),
                "huge": obj(1, 2, 10**400),
                "some": obj(1, pd.NA, np.float32(2)),
                "bools": obj(True, np.False_, None),
                "mixed": obj(1, "a", NAN),
                "mixed2": obj(True, 2, pd.NaT),
                "moments": obj(when, None, dt.date(2020, 1, 1)),
                "aware": obj(
                    when.tz_localize("Europe/Berlin"), dt.datetime(2020, 1, 1, tzinfo=UTC), None
                ),
                "half": obj(when.tz_localize("UTC"), when, None),
                "spans": obj(dt.timedelta(1), pd.Timedelta("1s"), np.timedelta64(5, "ms")),
                "clock": obj(dt.time(13, 30), None, dt.time(0, 0, 36)),
                "l": obj([1, 2], {"x": 1}, None),
                "period": pd.period_range("2020", periods=3, freq="D"),
                "sparse": pd.arrays.SparseArray([1.0, 0, 0]),
                "arrow": pd.array([1, None, 2], dtype="int64[pyarrow]"),
                "text": pd.array(["a", None, "b"], dtype="string[pyarrow]"),
                "dec": pd.array(
                    [Decimal("1.5"), None, Decimal("2")], pd.ArrowDtype(pa.decimal128(5, 2))
                ),
                "day": pd.array([dt.date(2020, 1, 1)] * 3, dtype=pd.ArrowDtype(pa.date32())),
                "half float": np.array([1, 2, 3], dtype=np.float16),
            }
        )
    )
    noon = "2020-01-01T12:00:00.000001"
    holds(
        frame,
        **{
            "i": (np.float64, [1, NAN, 3]),
            "i2": (np.int64, [1, 2, 3]),
            "f": (np.float64, [1.5, NAN, 2]),
            "b": (object, [True, None, False]),
            "b2": (np.bool_, [True, True, False]),
            "cat": (np.float64, [1, 2, NAN]),
            "cat2": (np.int64, [3, 2, 3]),
            "catb": (object, [True, False, None]),
            "cats": (object, ["a", None, "b"]),
            "s": (object, ["a", None, "b"]),
            "z": times("2020-01-01T11:00:00.000001", None, "2020-01-01T11:00:00.000001"),
            "dt": times(noon, None, noon),
            "span": (np.float64, [1, 2, NAN]),
            "numbers": (np.float64, [1, 2.5, 3]),
            "whole": (np.int64, [1, 2, 3]),
            "huge": (np.float64, [1, 2, np.inf]),
            "some": (np.float64, [1, NAN, 2]),
            "bools": (object, [True, False, None]),
            "mixed": (object, ["1", "a", None]),
            "mixed2": (object, [Truth("true"), "2", None]),
            "moments": times(noon, None, "2020-01-01"),
            "aware": times("2020-01-01T11:00:00.000001", "2020-01-01", None),
            "half": (object, [noon, noon, None]),
            "spans": (np.float64, [86400, 1, 0.005]),
            "clock": (np.float64, [13.5, NAN, 0.01]),
            "l": (object, ["[1, 2]", "{'x': 1}", None]),
            "period": (object, ["2020-01-01", "2020-01-02", "2020-01-03"]),
            "sparse": (np.float64, [1, 0, 0]),
            "arrow": (np.float64, [1, NAN, 2]),
            "text": (object, ["a", None, "b"]),
            "dec": (np.float64, [1.5, NAN, 2]),
            "day": times(*["2020-01-01"] * 3),
            "half float": (np.float64, [1, 2, 3]),
        },
    )
    assert frame.notes == tuple(
        f'the times in "{name}" have a time zone ({zone}); bounds on them are in UTC'
        for name, zone in (("z", "Europe/Berlin"), ("aware", "several offsets"))
    )


def test_pandas_names() -> None:
    table = pd.DataFrame([[1, 2, 3]], columns=["a", "a", ""])
    frame = from_object(table)
    assert list(frame.columns) == ["a", "a (2)", "column 3"]
    assert len(frame.notes) == 2
    assert list(table.columns) == ["a", "a", ""]  # untouched
    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "")])
    assert list(from_object(pd.DataFrame([[1, 2, 3]], columns=levels)).columns) == [
        "a.x",
        "a.y",
        "b",
    ]
    assert list(from_object(pd.DataFrame([[1, 2]])).columns) == ["0", "1"]
    assert list(from_object(pd.DataFrame([[1, 2]], columns=[1, "1"])).columns) == ["1", "1 (2)"]


def test_dicts_of_columns() -> None:
    frame = from_object(
        {
            "a": np.array([1, 2], dtype=np.uint8),
            "b": [1, None],
            "c": pd.Series(["x", None]),
            "d": pl.Series([True, None]),
            5: (1.5, 2),
            "m": np.ma.masked_array([1, 2], [False, True]),
            "mt": np.ma.masked_array(["x", "y"], [False, True]),
            "r": range(2),
            "t": np.array(["2024", "NaT"], dtype="datetime64[Y]"),
            "u": np.array(["é", ""]),
            "y": np.array([b"x", b"y"]),
            "span": np.array([1500, "NaT"], dtype="timedelta64[ms]"),
            "arrow": pa.chunked_array([[1], [None]]),
            "big": np.array([1, 2**63], dtype=np.uint64),
        }
    )
    holds(
        frame,
        **{
            "a": (np.int64, [1, 2]),
            "b": (np.float64, [1, NAN]),
            "c": (object, ["x", None]),
            "d": (object, [True, None]),
            "5": (np.float64, [1.5, 2]),
            "m": (np.float64, [1, NAN]),
            "mt": (object, ["x", None]),
            "r": (np.int64, [0, 1]),
            "t": times("2024-01-01", None),
            "u": (object, ["é", ""]),
            "y": (object, ["x", "y"]),
            "span": (np.float64, [1.5, NAN]),
            "arrow": (np.float64, [1, NAN]),
            "big": (np.uint64, [1, 2**63]),
        },
    )
    with pytest.raises(StairError, match=r'column "a" has 2 values but "b" has 1'):
        from_object({"a": [1, 2], "b": [1]})
    with pytest.raises(StairError, match=r'column "a" is a int; expected an array or a list'):
        from_object({"a": 1})
    with pytest.raises(StairError, match=r'column "a" has complex numbers'):
        from_object({"a": np.array([1j])})
    with pytest.raises(StairError, match=r'column "a" has 2 dimensions'):
        from_object({"a": np.zeros((2, 2))})


def test_arrays() -> None:
    holds(from_object(np.array([[1, 2], [3, 4]])), x0=(np.int64, [1, 3]), x1=(np.int64, [2, 4]))
    holds(from_object(np.array([[1, "a"]], dtype=object)), x0=(np.int64, [1]), x1=(object, ["a"]))
    holds(from_object(np.array([["1", "a"]])), x0=(object, ["1"]), x1=(object, ["a"]))
    holds(
        from_object(np.ma.masked_array([[1, 2]], [[0, 1]])),
        x0=(np.int64, [1]),
        x1=(np.float64, [NAN]),
    )
    records = np.array([(1, "x"), (2, "y")], dtype=[("n", "i4"), ("s", "U5")])
    holds(from_object(records), n=(np.int64, [1, 2]), s=(object, ["x", "y"]))
    frame = from_object(np.asfortranarray(np.random.default_rng(0).random((5, 3))))
    assert all(v.flags.c_contiguous for v in frame.columns.values())
    for shape, said in (
        ((3,), "1 dimension;"),
        ((2, 2, 2), "3 dimensions;"),
        ((), "0 dimensions;"),
    ):
        with pytest.raises(StairError, match=f"got an array with {said} expected two"):
            from_object(np.zeros(shape))


def test_lists_of_rows() -> None:
    rows = [{"a": 1, "b": "x"}, {"c": [1], "a": 2.5}]
    holds(
        from_object(rows),
        a=(np.float64, [1, 2.5]),
        b=(object, ["x", None]),
        c=(object, [None, "[1]"]),
    )
    holds(from_object([[1, "a"], (2, None)]), x0=(np.int64, [1, 2]), x1=(object, ["a", None]))
    for wrong in ([1, 2], [[1], [1, 2]], [{"a": 1}, 2], ["ab", "cd"]):
        with pytest.raises(StairError, match=r"a list that is not a table"):
            from_object(wrong)


def test_a_path_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, "payments.csv", PAYMENTS)
    for source in (path, str(path)):
        assert from_object(source).source == "payments.csv"
    frame = read(path)
    assert from_object(frame) is frame


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=[1, 2]),
        pl.DataFrame(),
        pl.DataFrame({"a": []}),
        pa.table({"a": pa.array([], pa.int64())}),
        {},
        {"a": []},
        [],
        [{}],
        [[], []],
        np.zeros((0, 3)),
        np.zeros((3, 0)),
    ],
)
def test_empty_tables(data: Any) -> None:
    with pytest.raises(StairError, match=r"the table has no (rows|columns)"):
        from_object(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "got None; expected a table"),
        (5, "got builtins int; expected a table"),
        (pl.LazyFrame({"a": [1]}), r"lazy table \(polars LazyFrame\).*\.collect\(\)"),
        (pd.Series([1]), r"a single column \(pandas Series\)"),
        (pl.Series([1]), r"a single column \(polars Series\)"),
        (object(), "got builtins object; expected a table"),
    ],
)
def test_what_is_no_table(data: Any, message: str) -> None:
    with pytest.raises(StairError, match=message):
        from_object(data)


def test_foreign_tables_by_protocol() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"a": [1]}).__arrow_c_stream__(requested_schema)

    class Matrix:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([[1.0, 2.0]], dtype=dtype, copy=copy)

    holds(from_object(Stream()), a=(np.int64, [1]))
    holds(from_object(Matrix()), x0=(np.float64, [1]), x1=(np.float64, [2]))


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "arrow"])
def test_a_million_rows_take_no_loop(kind: str) -> None:
    matrix = np.zeros((1_000_000, 20), dtype=np.float32)
    names = [f"c{i}" for i in range(20)]
    make: dict[str, Any] = {
        "numpy": lambda: matrix,
        "pandas": lambda: pd.DataFrame(matrix, columns=names),
        "polars": lambda: pl.DataFrame(matrix, schema=names),
        "arrow": lambda: pa.table({n: matrix[:, i] for i, n in enumerate(names)}),
    }
    data = make[kind]()
    start = time.process_time()
    assert from_object(data).n_rows == 1_000_000
    assert time.process_time() - start < 2  # a loop over the cells would take longer
