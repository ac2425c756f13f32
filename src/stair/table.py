"""A table of any kind made ready to learn from.

A table becomes fields (what the rules may speak of), and each field one or more columns of codes
for the engine. Columns that cannot help are left out, and the reason is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from stair.clauses import folded, value_order
from stair.columns import Absence, Categories, Column, Numbers, Term, Times
from stair.errors import StairError, did_you_mean, no_such_column

Kind: TypeAlias = Literal["number", "category", "time", "text"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
Part: TypeAlias = Literal["hour", "weekday"]

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# A text column gives at most this many terms, those that tell the classes apart best.
MAX_TERMS: Final = 50
# Values with this many words on average are text rather than names of categories.
WORDS_IN_TEXT: Final = 3.0

ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?")


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute: its name in the rules, its kind, and the table's column it comes from."""

    name: str
    kind: Kind
    source: str
    part: Part | None = None

    def values(self, table: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """The field's values in a table of raw columns, as the rules' clauses read them."""
        if self.source not in table:
            hint = did_you_mean(self.source, table)
            raise StairError(f'the rules need a column "{self.source}", which is not there.{hint}')
        raw = table[self.source]
        if self.part is not None:
            return part_of(_as_times(raw, self.source), self.part)
        read: NDArray[Any] = _READERS[self.kind](raw, self.source)
        return read


def choose_fields(
    table: Mapping[str, NDArray[Any]],
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    time_parts: bool = False,
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of a table, and what was left out with the reason why."""
    return fields_among(
        table,
        lambda name: _kind_of(table[name]),
        lambda name, kind: _why_useless(table[name], kind),
        include=include,
        exclude=exclude,
        kinds=kinds,
        time_parts=time_parts,
    )


def fields_among(
    names: Collection[str],
    kind_of: Callable[[str], str],
    why_useless: Callable[[str, str], str | None],
    *,
    include: Collection[str] | None,
    exclude: Collection[str],
    kinds: Mapping[str, str] | None,
    time_parts: bool,
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of columns by what is known of them, whether their rows are here or not.

    A column that somebody names in `include` or `kinds` is never left out by itself.
    """
    kinds = dict(kinds or {})
    _check_names(names, (*(include or ()), *exclude, *kinds))
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise StairError(f'"{kind}" is no kind for "{name}"; kinds are {", ".join(KINDS)}')
    fields: list[Field] = []
    left_out: dict[str, str] = {}
    for name in names:
        if name in exclude:
            left_out[name] = "excluded"
            continue
        if include is not None and name not in include:
            continue
        wanted = include is not None or name in kinds
        kind = kinds.get(name) or kind_of(name)
        why = None if wanted else why_useless(name, kind)
        if why is not None:
            left_out[name] = why
            continue
        fields.append(Field(name, kind, name))  # type: ignore[arg-type]
        if kind == "time" and time_parts:
            fields += [
                Field(new_name(f"{part} of {name}", names), PART_KINDS[part], name, part)
                for part in get_args(Part)
            ]
    if not fields:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise StairError(
            f"no column is left to explain the labels with ({reasons or 'none given'})"
        )
    return tuple(fields), left_out


PART_KINDS: Final[dict[str, Kind]] = {"hour": "number", "weekday": "category"}


def _check_names(known: Collection[str], names: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise no_such_column(name, known, "the data")


def new_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _kind_of(raw: NDArray[Any]) -> Kind:
    if raw.dtype.kind in "iuf":
        return "number"
    if raw.dtype.kind == "M":
        return "time"
    if raw.dtype.kind == "b":
        return "category"
    texts = [v for v in raw.tolist() if isinstance(v, str)]
    if not texts:
        return "category"
    if all(ISO_TIME.fullmatch(text) for text in texts):
        return "time"
    words = sum(len(text.split()) for text in texts) / len(texts)
    return "text" if words >= WORDS_IN_TEXT and len(set(texts)) > 20 else "category"


def _why_useless(raw: NDArray[Any], kind: str) -> str | None:
    """Why a column cannot help: constant, empty, or an identifier; None where it can."""
    missing = is_missing(raw)
    n_seen = len(raw) - int(missing.sum())
    if n_seen == 0:
        return "all values are missing"
    seen = raw if n_seen == len(raw) else raw[~missing]
    if kind in ("number", "time") and raw.dtype.kind != "O":
        constant = bool((seen == seen[0]).all())
    else:
        distinct = len(set(seen.tolist()))
        constant = distinct == 1
        if kind == "category" and distinct == n_seen and n_seen > 20:
            return "all values differ"
    return "all values are the same" if constant and n_seen == len(raw) else None


def is_missing(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a raw column are missing."""
    missing = np.zeros(len(raw), dtype=np.bool_)
    if raw.dtype.kind == "f":
        np.isnan(raw, out=missing)
    elif raw.dtype.kind == "M":
        np.isnat(raw, out=missing)
    elif raw.dtype.kind == "O":
        missing[:] = [v is None or v != v for v in raw.tolist()]
    return missing


# --- reading a raw column as one kind ---------------------------------------------------------


def _as_numbers(raw: NDArray[Any], name: str) -> NDArray[np.float64]:
    if raw.dtype.kind == "M":
        raise StairError(f'"{name}" has times; read it as time or category, not as number')
    try:
        if raw.dtype.kind == "O":
            raw = np.array([math.nan if v is None else float(v) for v in raw.tolist()])
        return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        bad = next(v for v in raw.tolist() if v is not None and not _is_number(v))
        raise StairError(f'"{name}" should have numbers, but has {bad!r}') from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _as_categories(raw: NDArray[Any], name: str) -> NDArray[Any]:
    """Python values, None where missing; whole numbers as int whatever their storage."""
    del name
    if raw.dtype.kind == "f":
        listed: list[Any] = [
            None if v != v else int(v) if v.is_integer() else v for v in raw.tolist()
        ]
    elif raw.dtype.kind == "M":
        listed = [None if np.isnat(t) else str(t) for t in raw]
    elif raw.dtype.kind == "O":
        listed = [None if v is None or v != v else v for v in raw.tolist()]
    else:
        listed = raw.tolist()
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def _as_times(raw: NDArray[Any], name: str) -> NDArray[np.datetime64]:
    if raw.dtype.kind == "M":
        return raw.astype("datetime64[us]")
    try:
        return np.array(
            ["NaT" if v is None or v != v else str(v).replace(" ", "T") for v in raw.tolist()],
            dtype="datetime64[us]",
        )
    except ValueError as error:
        raise StairError(
            f'"{name}" should have times like 2024-01-31 or 2024-01-31 10:20, but: {error}'
        ) from None


def _as_text(raw: NDArray[Any], name: str) -> NDArray[Any]:
    values = _as_categories(raw, name)
    values[:] = [None if v is None else str(v) for v in values.tolist()]
    return values


_READERS: Final[dict[str, Any]] = {
    "number": _as_numbers,
    "category": _as_categories,
    "time": _as_times,
    "text": _as_text,
}


def part_of(times: NDArray[np.datetime64], part: Part) -> NDArray[Any]:
    """The hour (0 to 23) or the weekday's name."""
    gone = np.isnat(times)
    if part == "hour":
        since_midnight = times.astype("datetime64[h]") - times.astype("datetime64[D]")
        hours: NDArray[np.float64] = since_midnight.astype(np.float64)
        hours[gone] = math.nan
        return hours
    days = times.astype("datetime64[D]").astype(np.int64)
    result = np.empty(len(times), dtype=object)
    result[:] = [
        None if g else WEEKDAYS[(d + 3) % 7]  # 1970-01-01 was a Thursday
        for d, g in zip(days.tolist(), gone.tolist(), strict=True)
    ]
    return result


# --- tables of codes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table ready to learn from: columns of codes, and the fields' values for the rules."""

    fields: tuple[Field, ...]
    columns: tuple[Column, ...]
    codes: NDArray[np.float64]  # rows × columns, each column contiguous; NaN where missing
    values: dict[str, NDArray[Any]]  # by field name

    @property
    def n_rows(self) -> int:
        return len(self.codes)


def read_values(
    fields: Iterable[Field], table: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The fields' values in a table, by field name. Infinite numbers are refused."""
    values = {field.name: field.values(table) for field in fields}
    for name, array in values.items():
        if array.dtype.kind == "f":
            infinite = float(np.isinf(array).mean()) if len(array) else 0.0
            if infinite:
                share = f"{infinite:.0%}" if infinite >= 0.01 else "some"
                raise StairError(
                    f'{share} of "{name}" is infinite. Replace it or leave the column out '
                    f"with --exclude {name} (exclude=[...])."
                )
    return values


def encode(
    fields: Sequence[Field],
    values: dict[str, NDArray[Any]],
    labels: NDArray[np.int32],
    max_terms: int = MAX_TERMS,
) -> Table:
    """Fields as columns of codes. The labels help to choose a text's terms, and nothing else."""
    columns: list[Column] = []
    codes: list[NDArray[np.float64]] = []

    def add(column: Column, code: NDArray[Any]) -> None:
        columns.append(column)
        codes.append(code)

    for attribute, field in enumerate(fields):
        array, name = values[field.name], field.name
        if field.kind == "number":
            add(Numbers(name, attribute), array)
        elif field.kind == "time":
            code = array.astype(np.int64).astype(np.float64)
            code[np.isnat(array)] = math.nan
            whole_days = bool((array == array.astype("datetime64[D]"))[~np.isnat(array)].all())
            add(Times(name, attribute, whole_days), code)
        elif field.kind == "category":
            names, code = _category_codes(array)
            add(Categories(name, attribute, names), code)
        else:
            for term, code in _terms(array, labels, max_terms):
                add(Term(name, attribute, term), code)
            gone = is_missing(array)
            if gone.any():
                add(Absence(name, attribute), gone.astype(np.float64))
    if not columns:
        raise StairError("the text has no term that occurs twice, so there is nothing to cut")
    matrix = np.empty((len(codes[0]), len(codes)), order="F")
    for j, code in enumerate(codes):
        matrix[:, j] = code
    return Table(tuple(fields), tuple(columns), matrix, values)


def _category_codes(array: NDArray[Any]) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
    listed = array.tolist()
    names = sorted({v for v in listed if v is not None}, key=value_order)
    place: dict[Any, float] = {v: float(k) for k, v in enumerate(names)}
    place[None] = math.nan
    return tuple(names), np.fromiter(map(place.__getitem__, listed), np.float64, len(listed))


def _terms(
    array: NDArray[Any], labels: NDArray[np.int32], most: int
) -> list[tuple[str, NDArray[np.float64]]]:
    """The terms of a text column that tell the classes apart best, as 0/1 columns.

    scikit-learn's vectorizer proposes whole words that occur at least twice; whether a text
    mentions a term is then decided exactly as the rule will decide it, by what it contains.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.feature_selection import chi2

    texts = [folded(v) if v is not None else "" for v in array.tolist()]
    vectorizer = CountVectorizer(
        lowercase=False, binary=True, min_df=2, max_features=20 * most, dtype=np.float64
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no word occurs twice
        return []
    terms = vectorizer.get_feature_names_out()
    strength = np.nan_to_num(chi2(counts, labels)[0])
    best = sorted(range(len(terms)), key=lambda k: (-strength[k], terms[k]))[:most]
    found: list[tuple[str, NDArray[np.float64]]] = []
    for k in sorted(best, key=lambda k: str(terms[k])):
        term = str(terms[k])
        code = np.fromiter((term in text for text in texts), np.float64, len(texts))
        if 0 < code.sum() < len(code):
            found.append((term, code))
    return found
