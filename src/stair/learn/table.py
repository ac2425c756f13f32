"""A table of any kind made ready to learn from.

A table becomes fields (what the rules may speak of), and each field one or more columns of codes
for the engine. Columns that cannot help are left out, and the reason is kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT
from stair.data.conversion import (
    MEASURES,
    NETWORKS,
    Part,
    are_whole,
    as_times,
    is_missing,
    marked_numbers,
    network_of,
    no_numbers_among,
    parts_that_change,
    type_of_column,
    zone_of_column,
)
from stair.data.frame import Array, Frame
from stair.data.values import moment, whole_numbers
from stair.data.zones import SEVERAL, UTC, fixed_offset
from stair.errors import StairError, no_such_column, option
from stair.learn.identifiers import (
    A_KEY,
    are_codes,
    expected_pairs,
    has_key_name,
    is_key,
    why_identifier,
)
from stair.rules.clauses import folded, value_order
from stair.rules.columns import (
    ANY_SIDE,
    FAR,
    LISTS,
    ONE_SIDE,
    Absence,
    Binned,
    Categories,
    Column,
    Lists,
    Numbers,
    OneOf,
    Ordered,
    Term,
    Times,
    namable,
    near,
)
from stair.rules.schema import KINDS, PART_KINDS, Field, Kind, Schema, Values

# A text column gives at most this many terms, those that tell the classes apart best.
MAX_TERMS: Final = 50
# Values with this many words on average are text rather than names of categories.
WORDS_IN_TEXT: Final = 3.0

# The shape of a time; whether there is such a day is another question.
ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# Of the different values of a column of addresses at least this share must be some.
TRUE_ADDRESSES: Final = 0.9
# Of texts that look like times at least this share must be times; the rest is missing then.
TRUE_TIMES: Final = 0.9


def choose_fields(
    frame: Frame,
    *,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    time_parts: bool = True,
    time_zone: str | None = None,
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of a table, and what was left out with the reason why.

    The hour and the weekday of a time are fields of their own, where they change; those of times
    with a zone are of that zone, or of the one that is asked for.
    """
    table, was = frame.columns, frame.types
    return fields_among(
        table,
        lambda name: _kind_of(table[name]),
        lambda name, kind: type_of_column(table[name], was.get(name, ""), kind),
        lambda name, kind: _why_useless(name, table[name], was.get(name, ""), kind),
        lambda name: address_counts(Counter(v for v in table[name].tolist() if v is not None)),
        lambda name: zone_of_column(table[name], was.get(name, "")),
        lambda name, zone: parts_that_change(as_times(table[name], name)[0], zone),
        include=include,
        exclude=exclude,
        kinds=kinds,
        time_parts=time_parts,
        time_zone=time_zone,
    )


def fields_among(
    names: Collection[str],
    kind_of: Callable[[str], str],
    type_of: Callable[[str, str], str],
    why_useless: Callable[[str, str], str | None],
    networks_of: Callable[[str], Mapping[Part, Collection[int]]],
    zone_of: Callable[[str], str | None],
    parts_of: Callable[[str, str], Iterable[Part]],
    *,
    include: Collection[str] | None,
    exclude: Collection[str],
    kinds: Mapping[str, str] | None,
    time_parts: bool,
    time_zone: str | None = None,
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of columns by what is known of them, whether their rows are here or not.

    Addresses are also, or only, used as the networks that they are in; `networks_of` says how many
    rows each network has. A column that somebody names in `include` or `kinds` is never left out by
    itself.
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
        own, zone = type_of(name, kind), ""
        if own == "zoned":
            zone = time_zone or zone_of(name) or UTC
            zone = UTC if zone == SEVERAL else zone
        networks: list[Part] = []
        if kind == "category" and own == "text" and name not in kinds:
            networks = _telling_networks(networks_of(name))
        if why is not None and not networks:
            left_out[name] = why
        elif why is None:
            fields.append(Field(name, kind, name, type=own, zone=zone))
        fields += [
            Field(new_name(f"{name}{part}", names), "category", name, part, own)
            for part in networks
        ]
        if why is None and kind == "time" and time_parts:
            fields += [
                Field(new_name(f"{part} of {name}", names), PART_KINDS[part], name, part, own, zone)
                for part in parts_of(name, zone)
            ]
    if not fields:
        reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise StairError(
            f"no column is left to explain the labels with ({reasons or 'none given'}); to use one "
            "all the same, name its kind with " + option("kinds")
        )
    return tuple(fields), left_out


def address_counts(counts: Mapping[object, int]) -> dict[Part, list[int]]:
    """How many rows the networks of each size have, where nearly all different values of a column
    are IPv4 addresses; nothing where they are not."""
    n_addresses = sum(network_of(value, "/8") is not None for value in counts)
    if not n_addresses or n_addresses < TRUE_ADDRESSES * len(counts):
        return {}
    found: dict[Part, list[int]] = {}
    for part in NETWORKS:
        rows: Counter[str] = Counter()
        for value, n in counts.items():
            if (network := network_of(value, part)) is not None:
                rows[network] += n
        found[part] = list(rows.values())
    return found


def _telling_networks(rows: Mapping[Part, Collection[int]]) -> list[Part]:
    """The sizes of networks of which there are several that repeat."""
    return [part for part, counts in rows.items() if len(counts) > 1 and not why_identifier(counts)]


def source_of_networks(field: Field) -> str:
    """The column of addresses whose networks a field has; else nothing."""
    return field.source if field.part in NETWORKS else ""


def notes_on_marks(
    fields: Iterable[Field], frame: Frame, kinds: Mapping[str, str] | None
) -> list[str]:
    """Which columns of text are read as numbers, and what counts as missing there; and which are
    not for the sake of a few values, where nobody asked for names."""
    found = []
    for each in fields:
        raw = frame.columns[each.source]
        if each.part is not None or raw.dtype.kind != "O":
            continue
        texts = [v for v in raw.tolist() if isinstance(v, str)]
        if each.kind == "category" and each.source not in (kinds or {}):
            odd = no_numbers_among(texts)
            if odd:
                found.append(
                    f'"{each.source}" is read as names, for {_no_numbers(odd)}; the other '
                    f"{len(texts) - sum(odd.values()):,} values are"
                )
        if each.kind != "number":
            continue
        marks = marked_numbers(texts)
        if marks:
            words = " and ".join(f'"{mark}"' for mark in sorted(marks)[:4])
            n_rows = sum(marks.values())
            as_names = option("kinds", {each.source: "category"})
            found.append(
                f'"{each.source}" is read as numbers, and {words} as missing ({n_rows:,} '
                f"row{'s' * (n_rows != 1)}); {as_names} reads it as names"
            )
    return found


def _no_numbers(odd: Mapping[str, int]) -> str:
    words = " and ".join(f'"{text}"' for text in sorted(odd)[:3])
    return f"{words} {'are no numbers' if len(odd) > 1 else 'is no number'}"


def notes_on_parts(
    fields: Iterable[Field], zone_of: Callable[[str], str | None], time_zone: str | None
) -> list[str]:
    """Of which zone the hours and weekdays of times are, where times have one; and of which
    addresses only the networks are used."""
    fields = list(fields)
    whole = {f.source for f in fields if f.part is None}
    found = []
    for source in dict.fromkeys(map(source_of_networks, fields)):
        if source and source not in whole:
            names = ", ".join(f.name for f in fields if source_of_networks(f) == source)
            found.append(f'addresses in "{source}" hardly repeat: their networks are used, {names}')
    for name, zone in {f.source: f.zone for f in fields if f.part is not None and f.zone}.items():
        if time_zone is None and zone_of(name) == SEVERAL:
            found.append(
                f'the times in "{name}" have several offsets, so that their hours and weekdays are '
                f"in UTC; {option('time_zone', 'Europe/Berlin')} gives those of a zone"
            )
        else:
            found.append(f'hours and weekdays of "{name}" are those of {zone}' + _if_clocks(zone))
    if time_zone is not None and not any(f.zone for f in fields):
        found.append(
            f"no times have a zone, so that {time_zone} changes nothing: their hours and weekdays "
            "are as they are written"
        )
    return found


def _if_clocks(zone: str) -> str:
    """An offset alone does not know of daylight saving."""
    if not fixed_offset(zone):
        return ""
    return f"; where clocks change, {option('time_zone', 'Europe/Berlin')} follows them"


def _check_names(known: Collection[str], names: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise no_such_column(name, known, "the data")


def new_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _kind_of(raw: Array) -> Kind:
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
    if marked_numbers(texts) is not None:
        return "number"
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


def _why_useless(name: str, raw: Array, was: str, kind: str) -> str | None:
    """Why a column cannot help: constant, empty, or an identifier; None where it can."""
    if was == "described":
        return "its values are lists, records or of several types"
    missing = is_missing(raw)
    n_seen = len(raw) - int(missing.sum())
    if n_seen == 0:
        return "all values are missing"
    seen = raw if n_seen == len(raw) else raw[~missing]
    is_plain = kind == "number" and was not in MEASURES
    if is_plain and _may_be_key(name, raw, n_seen) and (why := _why_key(name, seen)) is not None:
        return why
    if kind in ("number", "time") and raw.dtype.kind != "O":
        constant = bool((seen == seen[0]).all())
    else:
        counts = Counter(seen.tolist())
        constant = len(counts) == 1
        if kind == "category" and (why := why_identifier(counts.values())) is not None:
            odd = no_numbers_among([v for v in seen.tolist() if isinstance(v, str)])
            return f"names, for {_no_numbers(odd)}, and {why}" if odd else why
    return "all values are the same" if constant and n_seen == len(raw) else None


def _may_be_key(name: str, raw: Array, n_seen: int) -> bool:
    """Whether whole numbers are held as such: as floats only where some are missing, or where the
    name says what they are."""
    is_float = raw.dtype.kind == "f"
    if is_float and n_seen == len(raw) and not has_key_name(name):
        return False
    return raw.dtype.kind in "iu" or whole_numbers(raw)


def _why_key(name: str, seen: Array) -> str | None:
    """Why whole numbers that are all there are a key."""
    values, counts = np.unique(seen, return_counts=True)
    if (why := why_identifier(counts.tolist())) is None:
        return None
    low, high = int(values[0]), int(values[-1])
    pairs = expected_pairs(len(seen), low, high)
    return A_KEY + why if is_key(name, low, high, len(seen) - len(values), pairs) else None


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


def _is_infinite(value: object) -> bool:
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
    lists: Lists = LISTS,
    *,
    list_codes: bool = False,
    time_windows: bool = False,
) -> Table:
    """Fields as columns of codes. The labels help to choose the terms of a text and the values of a
    category that may be named, and nothing else.

    With `list_codes` whole numbers that are codes rather than amounts, such as ports, have a second
    column, in which single values may be named. A clause on a time has one bound, unless windows
    are asked for: some hours of one day are a coincidence.
    """
    usual = np.bincount(labels).argmax() if len(labels) else 0
    sides = ANY_SIDE if time_windows else ONE_SIDE
    columns: list[Column] = []
    codes: list[NDArray[np.float64]] = []

    def add(column: Column, code: Array) -> None:
        columns.append(column)
        codes.append(code)

    attributes = schema.attributes
    for place in schema.in_order():  # what is equally good is chosen by name
        field, attribute = schema.fields[place], attributes[place]
        array, name = values[field.name], field.name
        if field.kind == "number":
            gone = is_missing(array)
            whole = field.is_whole and are_whole(array)  # more rows may have more than a sample
            add(*_ranked(Numbers(name, attribute, whole), array, gone))
            if list_codes and field.type == "whole" and field.part is None:
                numbers, code = _number_codes(array, gone)
                n_rows = np.bincount(code[~gone].astype(np.intp), minlength=len(numbers))
                if are_codes(name, numbers, n_rows.tolist()):
                    column = Categories(name, attribute, numbers)
                    add(*_named(column, code, labels != usual, lists))
        elif field.kind == "time":
            gone = np.isnat(array)
            whole_days = bool((array == array.astype("datetime64[D]"))[~gone].all())
            times = Times(name, attribute, whole_days, sides)
            add(*_ranked(times, array.astype(np.int64), gone))
        elif field.kind == "category":
            names, code = _category_codes(array)
            column = Categories(name, attribute, names, of=source_of_networks(field))
            if field.part == "weekday":  # seven that all may be named, as all hours may be cut
                add(column, code)
            else:
                add(*_named(column, code, labels != usual, lists))
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


def in_order(table: Table) -> tuple[list[Ordered], NDArray[np.float64]]:
    """The columns for a tree that divides nothing but numbers: each value of a category that may be
    named is a column of its own, and times are ranks, which 32 bits can tell apart."""
    columns: list[Ordered] = []
    codes: list[NDArray[np.float64]] = []
    for j, column in enumerate(table.columns):
        code = table.codes[:, j]
        gone = np.isnan(code)
        if isinstance(column, Categories):
            has_gaps = bool(gone.any())
            for k, value in enumerate(column.values):
                columns.append(OneOf(column.name, column.attribute, value, has_gaps, column.of))
                codes.append((code == k).astype(np.float64))
            if has_gaps:
                columns.append(Absence(column.name, column.attribute))
                codes.append(gone.astype(np.float64))
        elif isinstance(column, Times):
            distinct, rank = np.unique(code[~gone], return_inverse=True)
            each = tuple(distinct.tolist())
            columns.append(Binned(column, each, each))
            codes.append(np.full(len(code), math.nan))
            codes[-1][~gone] = rank
        else:
            columns.append(column)
            codes.append(code)
    if all(isinstance(column, Numbers | Binned) for column in table.columns):
        return columns, table.codes
    if not columns:
        raise StairError("no value is in enough rows to be named, so there is nothing to cut")
    return columns, np.column_stack(codes)


def _ranked(
    column: Numbers | Times, numbers: Array, missing: NDArray[np.bool_]
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


def _category_codes(array: Array) -> tuple[tuple[object, ...], NDArray[np.float64]]:
    listed = array.tolist()
    names = sorted({v for v in listed if v is not None}, key=value_order)
    place: dict[object, float] = {v: float(k) for k, v in enumerate(names)}
    place[None] = math.nan
    return tuple(names), np.fromiter(map(place.__getitem__, listed), np.float64, len(listed))


def _number_codes(
    array: Array, gone: NDArray[np.bool_]
) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """Whole numbers as categories."""
    code = np.full(len(array), math.nan)
    distinct, code[~gone] = np.unique(array[~gone], return_inverse=True)
    return tuple(map(int, distinct.tolist())), code


def _named(
    column: Categories, code: NDArray[np.float64], is_wanted: NDArray[np.bool_], lists: Lists
) -> tuple[Column, NDArray[np.float64]]:
    """A column in which all values that may not be named are one."""
    size = len(column.values)
    if column.is_closed:
        return column, code
    here = ~np.isnan(code)
    places = code[here].astype(np.intp)
    n_rows = np.bincount(places, minlength=size)
    own = namable(n_rows, np.bincount(places[is_wanted[here]], minlength=size), lists)
    if len(own) == size:
        return column, code
    new = np.full(size, float(len(own)))
    new[own] = np.arange(len(own))
    code = code.copy()
    code[here] = new[places]
    values = tuple(column.values[k] for k in own.tolist())
    return replace(column, values=values, has_others=True), code


def _terms(
    array: Array, labels: NDArray[np.int32], most: int
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
