"""Tables in memory: whatever a person hands over, as a Frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stair.data.arrays import from_array, from_series, from_values, label, plain_names
from stair.data.frame import Array, Frame, Loaded, make_frame, unique_names
from stair.data.many import read
from stair.data.packages import optional
from stair.errors import StairError


def from_object(data: object) -> Frame:
    """A table in memory as a Frame: pandas, Polars, Arrow, a dict of columns, an array, a list.

    A path is read as a file. Arrays are not copied where they already are what a Frame holds.
    """
    if isinstance(data, Frame):
        return data
    if isinstance(data, str | os.PathLike):
        return read(data)
    if isinstance(data, np.ndarray):
        return _from_matrix(data)
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if isinstance(data, list | tuple):
        return _from_rows(data)
    return _from_wrapped(data)


def _named_frame(raw: Sequence[str], columns: Sequence[Loaded]) -> Frame:
    names, notes = unique_names(raw)
    return make_frame(names, columns, "", notes.values())


def _from_matrix(data: Array) -> Frame:
    if data.dtype.names is not None and data.ndim == 1:
        fields = list(data.dtype.names)
        return _named_frame(fields, [from_array(name, data[name]) for name in fields])
    if data.ndim != 2:
        raise StairError(
            f"got an array with {data.ndim} dimension{'s' if data.ndim != 1 else ''}; "
            f"expected two: rows and columns."
        )
    names = [f"x{i}" for i in range(data.shape[1])]
    return _named_frame(names, [from_array(names[i], data[:, i]) for i in range(data.shape[1])])


def _from_mapping(data: Mapping[object, object]) -> Frame:
    import narwhals as nw

    names, columns = [label(name) for name in data], []
    for name, values in zip(names, data.values(), strict=True):
        wrapped: Any = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(wrapped, nw.Series):
            columns.append(from_series(name, wrapped))
        elif isinstance(values, np.ndarray):
            columns.append(from_array(name, values))
        elif isinstance(values, list | tuple | range):
            columns.append(from_values(list(values)))
        elif hasattr(values, "__array__"):
            columns.append(from_array(name, np.asarray(values)))
        else:
            raise StairError(
                f'column "{name}" is a {type(values).__name__}; expected an array or a list.'
            )
    lengths = {len(array): name for name, (array, _) in zip(names, columns, strict=True)}
    if len(lengths) > 1:
        (n, first), (m, second) = list(lengths.items())[:2]
        raise StairError(
            f'column "{first}" has {n} values but "{second}" has {m}; expected equally many.'
        )
    return _named_frame(names, columns)


def _from_rows(data: Sequence[Any]) -> Frame:
    if all(isinstance(row, Mapping) for row in data):
        keys = list(dict.fromkeys(key for row in data for key in row))
        columns = [from_values([row.get(key) for row in data]) for key in keys]
        return _named_frame([label(key) for key in keys], columns)
    widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in data}
    if len(widths) != 1 or widths == {-1}:
        raise StairError(
            "got a list that is not a table; expected a list of dicts, or rows of equal length."
        )
    places = range(widths.pop())
    columns = [from_values([row[i] for row in data]) for i in places]
    return _named_frame([f"x{i}" for i in places], columns)


def _from_wrapped(data: object) -> Frame:
    """Whatever narwhals knows as a table, and whatever speaks Arrow's or numpy's protocol."""
    import narwhals as nw

    names, plain = plain_names(data)
    wrapped: object = nw.from_native(plain, pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise StairError(
            f"got a lazy table ({_kind(data)}), whose values are not computed yet; "
            f"call .collect() on it first."
        )
    if isinstance(wrapped, nw.Series):
        raise StairError(f"got a single column ({_kind(data)}); expected a table with rows.")
    if isinstance(wrapped, nw.DataFrame):
        names = names or [label(name) for name in wrapped.columns]
        return _named_frame(names, [from_series(n, wrapped[:, i]) for i, n in enumerate(names)])
    pyarrow = optional("pyarrow")
    if pyarrow and any(hasattr(data, f"__arrow_c_{kind}__") for kind in ("stream", "array")):
        try:
            return _from_wrapped(pyarrow.table(data))
        except (pyarrow.ArrowException, TypeError, ValueError):
            pass
    elif hasattr(data, "__array__"):
        return _from_matrix(np.asarray(data))
    raise StairError(
        f"got {'None' if data is None else _kind(data)}; expected a table: a pandas, Polars or "
        f"Arrow table, a dict of columns, a 2-D array, a list of dicts, or a path."
    )


def _kind(data: object) -> str:
    return f"{type(data).__module__.split('.')[0]} {type(data).__qualname__}"
