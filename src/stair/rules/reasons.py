"""Why each row is flagged: the rule that decides, how unusual the row is, and what sets it apart
where no rule covers it.

Reasons are values. Those of many rows are made column by column, and those of one row are the same
as if it were among many.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT
from stair.data.conversion import NETWORKS
from stair.data.frame import Array, Value
from stair.rules.alone import Own, Reference
from stair.rules.clauses import (
    Among,
    Clause,
    Interval,
    Mentions,
    Period,
    clause_in_words,
    name_in_words,
    reason,
    reasons,
)
from stair.rules.match import first_covering
from stair.rules.matches import Matches
from stair.rules.schema import Field, Values
from stair.rules.usual import UNKNOWN, Figure, Noted, as_floats

if TYPE_CHECKING:
    from stair.rules.rule_set import Label, RuleSet

NAMED: Final = 3  # attributes that a reason names, unless its rule alone has more


@dataclass(frozen=True, slots=True)
class Trait:
    """An attribute of a row: its value, how unusual that is, and the clause that it meets where one
    is about it."""

    feature: str
    value: Value
    figure: Figure
    words: str  # without the figure
    clause: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: a value beyond JSON's is its text, and a missing one null."""
        found: dict[str, object] = {"feature": self.feature, "value": _for_json(self.value)}
        if self.clause:
            found["clause"] = self.clause
        if self.figure.side:
            found |= {"side": self.figure.side, "share": self.figure.share}
        return found


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one row is flagged, or is not.

    `rule` is the number of the rule that decides, from 1, None where none does; `clauses` are those
    of that rule with the row's values. `unusual` are the attributes in which the row is most
    unusual, the most unusual first, whether a clause names them or not. `own` is what sets a
    flagged row apart that no rule covers, None where nobody looked for it. `who` is what shares are
    of: inliers. An `exception` (from 1) takes the row from the rule that it `would_be` covered by.
    """

    label: Label
    name: str
    is_flagged: bool
    rule: int | None
    words: str
    clauses: tuple[Trait, ...] = ()
    unusual: tuple[Trait, ...] = ()
    own: Own | None = None
    who: str = "inliers"
    exception: int | None = None
    would_be: int | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """In short, at most three attributes: the two in which the row is most unusual, and of
        those that decide the one in which it is most unusual, if that is not one of them."""
        decide = [trait.feature for trait in self.clauses]
        if self.own is not None:
            decide += [clause.feature for clause in self.own.clauses]
        order = [trait.feature for trait in self.unusual]
        first = [name for name in order if name in decide] or decide
        return tuple(dict.fromkeys([*order[: NAMED - 1], *first[:1]]))

    def to_dict(self) -> dict[str, Any]:
        """Values alone, as JSON has them."""
        found: dict[str, Any] = {"label": self.label, "flagged": self.is_flagged, "rule": self.rule}
        if self.is_flagged:
            found["clauses"] = [trait.to_dict() for trait in self.clauses]
            found["unusual"] = [trait.to_dict() for trait in self.unusual]
        if self.own is not None:
            found["own"] = own_to_dict(self.own)
        if self.exception is not None:
            found |= {"exception": self.exception, "would_be": self.would_be}
        return found

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return f"Reason({self.words})"


def own_to_dict(own: Own) -> dict[str, object]:
    """What sets a row apart, as JSON has it."""
    found: dict[str, object] = {
        "clauses": [str(clause) for clause in own.clauses],
        "flagged": own.flagged,
        "inliers": own.inliers,
        "apart": own.is_apart,
    }
    if own.is_drawn:
        found["drawn"] = {"flagged": own.of_flagged, "inliers": own.of_inliers}
    return found


@dataclass(frozen=True, eq=False)
class Reasons(Sequence[Reason]):
    """The reasons of many rows, which are made when they are asked for.

    `numbers` is the rule that decides each row, from 1, and 0 where none does. `told` are the rows
    that are flagged, by the rules or by whoever was asked: of the others there is little to say.
    """

    rules: RuleSet
    values: Values
    numbers: NDArray[np.intp]
    labels: Array
    told: NDArray[np.intp]
    is_covered: NDArray[np.bool_]  # by a rule for outliers
    # Rows that an exception takes from a rule: the number of that rule, and of the exception.
    lifts: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    owns: Mapping[int, Own] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, row: int) -> Reason: ...
    @overload
    def __getitem__(self, row: slice) -> list[Reason]: ...
    def __getitem__(self, row: int | slice) -> Reason | list[Reason]:
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"there are {len(self)} rows, but not {row}")
        return self._reason(row % len(self))

    def __iter__(self) -> Iterator[Reason]:
        return (self._reason(row) for row in range(len(self)))

    @property
    def who(self) -> str:
        return "inliers" if self.rules.usual is None else self.rules.usual.who

    # In columns -----------------------------------------------------------------------------------

    @cached_property
    def words(self) -> list[str]:
        """Each reason as a sentence."""
        found = self._plain(self._words_of_others)
        for row in self.lifts:
            found[row] = self._lifted_in_words(row)
        for _, place, rows in self._groups():
            texts = self._group_in_words(place, rows)
            for row, text in zip(rows.tolist(), texts, strict=True):
                found[row] = text
        return found

    @cached_property
    def documents(self) -> list[str]:
        """Each reason as JSON."""
        found = self._plain(self._document_of_others)
        for row in self.lifts:
            found[row] = self._lifted_as_json(row)
        for _, place, rows in self._groups():
            texts = self._group_as_json(place, rows)
            for row, text in zip(rows.tolist(), texts, strict=True):
                found[row] = text
        return found

    def _plain(self, text: Callable[[int, Any], str]) -> list[str]:
        """What is said of rows that are not flagged: the same of all that one rule decides."""
        known = [text(k, label) for k, label in enumerate(self._labels_by_number)]
        return np.array([*known], dtype=object)[self.numbers].tolist() if len(self) else []

    @cached_property
    def _labels_by_number(self) -> list[object]:
        return [self.rules.default, *(rule.label for rule in self.rules)]

    def _label_in_words(self, number: int, label: Value) -> str:
        """The label that a rule gives, and where its rows lie if there are partitions."""
        name = _named(self.rules.label_name(label))
        if not self.rules.routing or not number:
            return name
        return f"{name} in {self.rules.routing.heading(self.rules.partition_of[number - 1])}"

    def _words_of_others(self, number: int, label: Value) -> str:
        name = self._label_in_words(number, label)
        if not number:
            return f"{name}: no rule covers it."
        return f"{name} by rule {number}: {self.rules[number - 1].in_words()}."

    def _document_of_others(self, number: int, label: object) -> str:
        return json.dumps({"label": label, "flagged": False, "rule": number or None})

    def _lifted_in_words(self, row: int) -> str:
        rule, exception = self.lifts[row]
        other = self.rules.label_name(self.rules[rule - 1].label)
        why = self.rules.exceptions[exception - 1].in_words()
        name = _named(self.rules.label_name(self.rules.default))
        article = "an" if other[:1] in "aeiouAEIOU" else "a"
        start = f"{name}: would be {article} {other} by rule {rule}"
        return f"{start}, but exception {exception} covers it: {why}."

    def _lifted_as_json(self, row: int) -> str:
        rule, exception = self.lifts[row]
        found = {"label": self._labels_by_number[self.numbers[row]], "flagged": False,
                 "rule": int(self.numbers[row]) or None}  # fmt: skip
        return json.dumps({**found, "exception": exception, "would_be": rule})

    def _groups(self) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """The rows that are told of, by the rule that decides them: its number, where they stand
        among those that are told of, and which they are."""
        decided = self.numbers[self.told]
        order = np.argsort(decided, kind="stable")
        if not len(order):
            return
        starts = np.flatnonzero(np.append(True, np.diff(decided[order]) != 0))
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            place = order[start:stop]
            yield int(decided[place[0]]), place, self.told[place]

    # How unusual rows are -------------------------------------------------------------------------

    @cached_property
    def _fields(self) -> list[Field]:
        """The fields of which it is known what is usual, as far as the rows have them."""
        if self.rules.usual is None:
            return []
        known = self.rules.usual.fields
        return [f for f in self.rules.schema.fields if f.name in known and f.name in self.values]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """For each row that is told of the places of its most unusual fields, −1 for none."""
        fields, rows = self._fields, self.told
        scores = np.full((len(rows), len(fields)), -np.inf)
        for k, each in enumerate(fields):
            if each.kind != "time":  # next month every row is later than all that was seen
                scores[:, k] = self._surprise(each, rows)
        owner = [f.source if f.part in NETWORKS else f.name for f in fields]
        for name in {o for o in owner if owner.count(o) > 1}:  # an address and its networks are one
            same = [k for k, o in enumerate(owner) if o == name]
            best = scores[:, same].argmax(axis=1)
            for place, k in enumerate(same):
                scores[best != place, k] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        order[np.take_along_axis(scores, order, axis=1) == -np.inf] = -1
        return order

    def fields_by_surprise(self, place: int) -> list[Field]:
        """All but times, those first in which one of the rows that are told of is most unusual."""
        first = [self._fields[k] for k in self.order[place].tolist() if k >= 0]
        names = {each.name for each in first}
        others = (f for f in self.rules.schema.fields if f.name not in names)
        return [*first, *(f for f in others if f.kind != "time")]

    def _surprise(self, each: Field, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        assert self.rules.usual is not None
        array = self.values[each.name][rows]
        habit: Any = self.rules.usual.fields[each.name]
        return np.asarray(habit.surprise(_as_asked(each, array)))

    def _figures(self, name: str, rows: NDArray[np.intp]) -> tuple[Noted, list[int]]:
        """What is usual of a field, and how unusual the value of each row is: the place of its
        figure."""
        usual = self.rules.usual
        each = next((f for f in self._fields if f.name == name), None)
        if usual is None or each is None:
            return UNKNOWN, [0] * len(rows)
        habit = usual.fields[name]
        return habit, habit.places(_as_asked(each, self.values[name][rows])).tolist()

    # Sentences ------------------------------------------------------------------------------------

    def _group_in_words(self, place: NDArray[np.intp], rows: NDArray[np.intp]) -> list[str]:
        number = int(self.numbers[rows[0]])
        rule = self.rules[number - 1] if number else None
        decides = rule is not None and bool(self.is_covered[rows[0]])
        if not decides:
            also = self._also(place, rows, (), 2, "Most")
            return [self._bare(*each) for each in zip(rows.tolist(), place, also, strict=True)]
        assert rule is not None
        columns = [self._clause_in_words(clause, rows) for clause in rule.clauses]
        also = self._also(place, rows, rule.features, NAMED - rule.length)
        head = f"{self._label_in_words(number, rule.label)} by rule {number}: "
        if not columns:
            return [f"{head}it covers all.{more}" for more in also]
        return [
            f"{head}{'; '.join(parts)}.{more}" for *parts, more in zip(*columns, also, strict=True)
        ]

    def _bare(self, row: int, place: np.intp, most: str) -> str:
        """Of a row that is flagged, and not by a rule; with what is most unusual about it."""
        own = self.owns.get(row)
        kind = "rule for outliers" if self.numbers[row] else "rule"
        start = f"Flagged, and no {kind} covers it."
        if own is None:
            return f"{start}{most}"
        if not own.is_apart:
            return f"{start} Nothing in the table tells it apart from {self.who}.{most}"
        parts = [reason(c, _plain(self.values[c.feature][row])) for c in own.clauses]
        named = [clause.feature for clause in own.clauses]
        (also,) = self._also(np.array([place]), np.array([row]), named, NAMED - len(named))
        return f"{start} By itself: {' and '.join(parts)} ({own.in_words()}).{also}"

    def _also(
        self,
        place: NDArray[np.intp],
        rows: NDArray[np.intp],
        named: Sequence[str],
        most: int,
        how: str = "Also",
    ) -> list[str]:
        """What else is unusual, of the attributes that are not named yet."""
        found: list[list[str]] = [[] for _ in rows]
        fields, order = self._fields, self.order[place]
        known = {f.source if f.part in NETWORKS else f.name for f in fields if f.name in named}
        told = np.zeros(len(rows), np.intp)
        for column in order.T[: NAMED + len(known)]:
            for k in np.unique(column[column >= 0]).tolist():
                each = fields[k]
                if (each.source if each.part in NETWORKS else each.name) in known:
                    continue
                habit, places = self._figures(each.name, rows)
                rare, notes = [f.is_rare for f in habit.figures], habit.notes(self.who)
                here = np.flatnonzero(
                    (column == k) & (told < most) & np.array(rare, dtype=np.bool_)[places]
                )
                told[here] += 1
                array = self.values[each.name]
                speaker = _speaker(each)
                for at in here.tolist():
                    words = _value_in_words(speaker, _plain(array[rows[at]]))
                    found[at].append(f"{words} ({notes[places[at]]})")
        return [f" {how} unusual: {'; '.join(each)}." if each else "" for each in found]

    def _clause_in_words(self, clause: Clause, rows: NDArray[np.intp]) -> list[str]:
        habit, places = self._figures(clause.feature, rows)
        notes = habit.notes(self.who)
        listed = _listed(self.values[clause.feature][rows])
        return reasons(clause, listed, [notes[place] for place in places])

    # JSON -----------------------------------------------------------------------------------------

    def _group_as_json(self, place: NDArray[np.intp], rows: NDArray[np.intp]) -> list[str]:
        number = int(self.numbers[rows[0]])
        decides = number > 0 and bool(self.is_covered[rows[0]])
        rule = self.rules[number - 1] if decides else None
        label = json.dumps(self.rules.default if not number else self.rules[number - 1].label)
        columns = [self._clause_as_json(c, rows) for c in (rule.clauses if rule else ())]
        met = (
            [", ".join(parts) for parts in zip(*columns, strict=True)]
            if columns
            else [""] * len(rows)
        )
        unusual = self._unusual_as_json(place, rows)
        owns = [
            f', "own": {json.dumps(own_to_dict(own), ensure_ascii=False)}'
            if (own := self.owns.get(row)) is not None
            else ""
            for row in rows.tolist()
        ]
        head = f'{{"label": {label}, "flagged": true, "rule": {number or "null"}, "clauses": ['
        return [
            f'{head}{clauses}], "unusual": [{more}]{own}}}'
            for clauses, more, own in zip(met, unusual, owns, strict=True)
        ]

    def _clause_as_json(self, clause: Clause, rows: NDArray[np.intp]) -> list[str]:
        said = json.dumps(clause_in_words(clause), ensure_ascii=False)
        return self._values_as_json(clause.feature, rows, f', "clause": {said}')

    def _values_as_json(self, name: str, rows: NDArray[np.intp], more: str = "") -> list[str]:
        habit, places = self._figures(name, rows)
        start, ends = f'{{"feature": {_quoted(name)}, "value": ', habit.documents
        values = _texts_for_json(self._as_learned(name, _listed(self.values[name][rows])))
        return [
            f"{start}{value}{more}{ends[place]}"
            for value, place in zip(values, places, strict=True)
        ]

    def _as_learned(self, name: str, values: list[Value]) -> list[Value]:
        """Whole numbers as such where rules were learned from nothing else: 4, not 4.0."""
        each = next((f for f in self.rules.schema.fields if f.name == name), None)
        if each is None or not each.is_whole:
            return values
        return [
            int(v) if type(v) is float and v.is_integer() and abs(v) <= EXACT else v for v in values
        ]

    def _unusual_as_json(self, place: NDArray[np.intp], rows: NDArray[np.intp]) -> list[str]:
        found: list[list[str]] = [[] for _ in rows]
        for column in self.order[place].T[:NAMED]:
            for k in np.unique(column[column >= 0]).tolist():
                here = np.flatnonzero(column == k)
                texts = self._values_as_json(self._fields[k].name, rows[here])
                for at, text in zip(here.tolist(), texts, strict=True):
                    found[at].append(text)
        return [", ".join(parts) for parts in found]

    # One row --------------------------------------------------------------------------------------

    @cached_property
    def _place_of(self) -> dict[int, int]:
        return {row: k for k, row in enumerate(self.told.tolist())}

    def _reason(self, row: int) -> Reason:
        number, label = int(self.numbers[row]), self.labels[row]
        label = label.item() if isinstance(label, np.generic) else label
        place, name = self._place_of.get(row), self.rules.label_name(label)
        if row in self.lifts:
            would_be, exception = self.lifts[row]
            return Reason(label, name, False, number or None, self._lifted_in_words(row),
                          who=self.who, exception=exception, would_be=would_be)  # fmt: skip
        if place is None:
            words = self._words_of_others(number, label)
            return Reason(label, name, False, number or None, words, who=self.who)
        at, one = np.array([place]), np.array([row])
        decides = number > 0 and bool(self.is_covered[row])
        clauses = self.rules[number - 1].clauses if decides else ()
        traits = tuple(self._trait(c.feature, row, c) for c in clauses)
        unusual = tuple(
            self._trait(self._fields[k].name, row)
            for k in self.order[place][:NAMED].tolist()
            if k >= 0
        )
        (words,) = self._group_in_words(at, one)
        return Reason(label, name, True, number or None, words, traits, unusual,
                      self.owns.get(row), self.who)  # fmt: skip

    def _trait(self, name: str, row: int, clause: Clause | None = None) -> Trait:
        rows = np.array([row])
        habit, places = self._figures(name, rows)
        (value,) = self._as_learned(name, _listed(self.values[name][rows]))
        each = next(f for f in self.rules.schema.fields if f.name == name)
        figure = habit.figures[places[0]]
        if clause is None:
            return Trait(name, value, figure, _value_in_words(_speaker(each), value))
        return Trait(name, value, figure, reason(clause, value), clause_in_words(clause))


def reasons_of(
    rules: RuleSet,
    values: Values,
    flagged: NDArray[np.bool_] | None = None,
    reference: Reference | None = None,
    matches: Matches | None = None,
) -> Reasons:
    """The reasons of all rows. `flagged` says which of them somebody else calls outliers, by
    default those that the rules do; with rows to hold them against, each of those that no rule
    covers gets a rule of its own. What covers the rows is looked up unless `matches` say it."""
    lifts: dict[int, tuple[int, int]] = {}
    if rules.exceptions:
        matches = matches or rules.matches(values)
        numbers, would_be, by = matches.numbers, matches.would_be, first_covering(matches.lifted)
        lifts = {
            k: (int(would_be[k]) + 1, int(by[k]) + 1) for k in np.flatnonzero(by >= 0).tolist()
        }
    else:
        numbers = rules.assign(values) if matches is None else matches.numbers
    labels = rules.labels_of(numbers)
    tells = [rule.label != rules.default if rules.positive is None else rule.label == rules.positive
             for rule in rules]  # fmt: skip
    if rules.positive is None and not any(tells):
        tells = [True] * len(rules)
    is_covered = np.array([*tells, False], dtype=np.bool_)[numbers]
    is_told = is_covered.copy() if flagged is None else is_covered | flagged
    is_told[list(lifts)] = False  # a person has said why they are none
    told = np.flatnonzero(is_told)
    found = Reasons(rules, values, numbers + 1, labels, told, is_covered, lifts)
    if reference is None or flagged is None:
        return found
    owns = {
        row: reference.own(found.fields_by_surprise(place), values, row)
        for place, row in enumerate(told.tolist())
        if not is_covered[row]
    }
    return replace(found, owns=owns)


# Values in words ----------------------------------------------------------------------------------


def _named(name: str) -> str:
    return name[:1].upper() + name[1:]


def _as_asked(each: Field, array: Array) -> Array:
    return as_floats(array) if each.kind in ("number", "time") else array


def _plain(value: Value) -> Any:
    if isinstance(value, np.datetime64):
        return value
    return value.item() if isinstance(value, np.generic) else value


def _listed(array: Array) -> list[object]:
    return list(array) if array.dtype.kind == "M" else array.tolist()


def _for_json(value: Value) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if value is None or value != value:
        return None
    return str(value) if isinstance(value, float) and value - value != 0 else value


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts_for_json(values: Sequence[Value]) -> Iterator[str]:
    """Values as JSON writes them."""
    for value in values:
        if type(value) is float and value - value == 0:
            yield repr(value)
        else:
            yield json.dumps(_for_json(value), ensure_ascii=False)


def _speaker(each: Field) -> Clause:
    """A clause about a field, which knows how its values are written."""
    if each.kind == "number":
        return Interval(each.name)
    if each.kind == "time":
        return Period(each.name)
    if each.kind == "text":
        return Mentions(each.name, " ")
    return Among(each.name, of=each.source if each.part in NETWORKS else "")


def _value_in_words(speaker: Clause, value: Value) -> str:
    name, here = name_in_words(speaker.attribute), speaker.value_in_words(value)
    if here is None:
        return f"{name} is missing"
    joint = "" if not isinstance(speaker, Among) else "in " if speaker.of else "= "
    return f"{name} {joint}{here}"
