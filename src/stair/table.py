"""A table of any kind made ready to learn from.

A table becomes fields (what the rules may speak of), and each field one or more columns of codes
for the engine. Columns that cannot help are left out, and the reason is kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from stair.clauses import folded, value_order
from stair.columns import (
    FAR,
    FEW_ROWS,
    ROWS_A_VALUE,
    Absence,
    Binned,
    Categories,
    Column,
    Numbers,
    Term,
    Times,
    near,
)
from stair.conversion import EXACT, Part, are_whole, is_missing, type_of_column
from stair.errors import StairError, no_such_column
from stair.io.frame import Frame
from stair.io.values import moment, whole_numbers
from stair.names import in_name_order
from stair.schema import KINDS, PART_KINDS, Field, Kind, Schema, Values

# A text column gives at most this many terms, those that tell the classes apart best.
MAX_TERMS: Final = 50
# Values with this many words on average are text rather than names of categories.
WORDS_IN_TEXT: Final = 3.0

# A column of categories most of whose rows have rare values is an identifier, unless some values
# come again and again: that many rows each, and so many together.
OFTEN: Final = 10
OFTEN_SHARE: Final = 0.01

# The shape of a time; whether there is such a day is another question.
ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# Of texts that look like times at least this share must be times; the rest is missing then.
TRUE_TIMES: Final = 0.9


def choose_fields(
    frame: Frame,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    time_parts: bool = False,
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of a table, and what was left out with the reason why."""
    table, was = frame.columns, frame.types
    return fields_among(
        table,
        lambda name: _kind_of(table[name]),
        lambda name, kind: type_of_column(table[name], was.get(name, ""), kind),
        lambda name, kind: _why_useless(table[name], was.get(name, ""), kind),
        include=include,
        exclude=exclude,
        kinds=kinds,
        time_parts=time_parts,
    )


def fields_among(
    names: Collection[str],
    kind_of: Callable[[str], str],
    type_of: Callable[[str, str], str],
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
        kind = cast(Kind, kinds.get(name) or kind_of(name))
        why = None if wanted else why_useless(name, kind)
        if why is not None:
            left_out[name] = why
            continue
        own = type_of(name, kind)
        fields.append(Field(name, kind, name, type=own))
        if kind == "time" and time_parts:
            fields += [
                Field(new_name(f"{part} of {name}", names), PART_KINDS[part], name, part, own)
                for part in get_args(Part)
            ]
    if not fields:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise StairError(
            f"no column is left to explain the labels with ({reasons or 'none given'})"
        )
    return tuple(fields), left_out


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
        return "number" if whole_numbers(raw) else "category"
    if are_times(set(texts)):
        return "time"
    words = sum(len(text.split()) for text in texts) / len(texts)
    return "text" if words >= WORDS_IN_TEXT and len(set(texts)) > 20 else "category"


def are_times(texts: Collection[str]) -> bool:
    """Whether all texts look like times, either all with a zone or none, and nearly all are some:
    2024-02-30 is no day."""
    zones = set()
    for text in texts:
        shape = ISO_TIME.fullmatch(text.strip())
        if shape is None:
            return False
        zones.add(shape[1] is None)
    if len(zones) > 1:
        return False
    return sum(moment(text) is not None for text in texts) >= TRUE_TIMES * len(texts)


def _why_useless(raw: NDArray[Any], was: str, kind: str) -> str | None:
    """Why a column cannot help: constant, empty, or an identifier; None where it can."""
    if was == "described":
        return "its values are lists, records or of several types"
    missing = is_missing(raw)
    n_seen = len(raw) - int(missing.sum())
    if n_seen == 0:
        return "all values are missing"
    seen = raw if n_seen == len(raw) else raw[~missing]
    if kind in ("number", "time") and raw.dtype.kind != "O":
        constant = bool((seen == seen[0]).all())
    else:
        counts = Counter(seen.tolist())
        constant = len(counts) == 1
        if kind == "category" and (why := why_identifier(counts.values())) is not None:
            return why
    return "all values are the same" if constant and n_seen == len(raw) else None


def why_identifier(counts: Collection[int]) -> str | None:
    """Why a column whose values occur so many times each is an identifier: a list of its values
    would be a memory of these rows. None where it is none."""
    n_rows = sum(counts)
    if n_rows <= FEW_ROWS:
        return None
    is_rare = 2 * sum(n for n in counts if n < ROWS_A_VALUE) > n_rows
    if not is_rare or sum(n for n in counts if n >= OFTEN) >= OFTEN_SHARE * n_rows:
        return None
    if len(counts) == n_rows:
        return "all values differ"
    return f"values hardly repeat, {len(counts):,} different ones in {n_rows:,} rows"


# --- tables of codes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table ready to learn from: columns of codes, and the fields' values for the rules."""

    schema: Schema
    columns: tuple[Column, ...]
    codes: NDArray[np.float64]  # rows × columns, each column contiguous; NaN where missing
    values: Values

    @property
    def n_rows(self) -> int:
        return len(self.codes)


def read_to_learn(schema: Schema, frame: Frame) -> Values:
    """The values of a table to learn from, whose types are the schema's own."""
    values = schema.read(frame, strict=True)
    for field in schema.fields:
        if field.kind == "category" and any(_is_infinite(v) for v in set(values[field.name])):
            raise no_category(field.name)
    return values


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def no_category(name: str) -> StairError:
    """Categories are named, and written down everywhere; infinity has no such name."""
    return StairError(
        f'"{name}" has infinite numbers, which cannot be categories; read it as numbers, or '
        "replace them first"
    )


def encode(
    schema: Schema,
    values: Values,
    labels: NDArray[np.int32],
    max_terms: int = MAX_TERMS,
) -> Table:
    """Fields as columns of codes. The labels help to choose a text's terms, and nothing else."""
    columns: list[Column] = []
    codes: list[NDArray[np.float64]] = []

    def add(column: Column, code: NDArray[Any]) -> None:
        columns.append(column)
        codes.append(code)

    for attribute in in_name_order(schema.names):  # what is equally good is chosen by name
        field = schema.fields[attribute]
        array, name = values[field.name], field.name
        if field.kind == "number":
            whole = field.is_whole and are_whole(array)  # more rows may have more than a sample
            add(*_ranked(Numbers(name, attribute, whole), array, is_missing(array)))
        elif field.kind == "time":
            gone = np.isnat(array)
            whole_days = bool((array == array.astype("datetime64[D]"))[~gone].all())
            add(*_ranked(Times(name, attribute, whole_days), array.astype(np.int64), gone))
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
    return Table(schema, tuple(columns), matrix, values)


def _ranked(
    column: Numbers | Times, numbers: NDArray[Any], missing: NDArray[np.bool_]
) -> tuple[Column, NDArray[np.float64]]:
    """Numbers as their own codes where float64 holds them exactly, else by their rank."""
    if numbers.dtype.kind == "f":
        return column, near(numbers)
    known = numbers[~missing]
    code = np.full(len(numbers), math.nan)
    ends = known[[known.argmin(), known.argmax()]].tolist() if len(known) else ()
    if all(abs(end) <= EXACT for end in ends):
        code[~missing] = known.astype(np.float64)
        return column, code
    distinct, code[~missing] = np.unique(known, return_inverse=True)
    each = tuple(max(-FAR, min(FAR, value)) for value in distinct.tolist())
    return Binned(column, each, each), code


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
