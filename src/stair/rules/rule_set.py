"""Rules as values: what a rule is, what it covers, what it predicts and why.

A rule is immutable data, never a string and never a tree node. A rule set carries the schema that
it was learned with, and reads whatever it is asked about by that schema.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data import atomic_write
from stair.data.frame import Array, Value
from stair.errors import StairError, folded, no_such_column
from stair.rules import notebook
from stair.rules.alone import Reference, reference_of
from stair.rules.clauses import (
    Among,
    Clause,
    Interval,
    Mentions,
    Period,
    clause_in_words,
    objection,
    reason,
    side_by_side,
)
from stair.rules.document import document_of
from stair.rules.figures import fine_percent
from stair.rules.match import all_matches, first_covering, first_match
from stair.rules.matches import Matches
from stair.rules.reasons import Reasons, reasons_of
from stair.rules.routing import NO_ROUTING, Partition, Routing
from stair.rules.schema import Schema, Values
from stair.rules.usual import Usual, usual_of

Label: TypeAlias = Value

__all__ = [
    "Among",
    "Clause",
    "Explanation",
    "Interval",
    "Mentions",
    "Period",
    "Rule",
    "RuleSet",
]


# Rules that a notebook shows of a set.
MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, repr=False)
class Rule:
    """A conjunction of clauses with a label, and the training rows of each class it covers."""

    clauses: tuple[Clause, ...]
    label: Label
    counts: tuple[tuple[Label, float], ...] = field(default=(), repr=False)

    @property
    def length(self) -> int:
        """L(r): the number of distinct attributes. Two bounds on one attribute are one clause."""
        return len({clause.attribute for clause in self.clauses})

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True  # a rule without clauses is still a rule

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(clause.feature for clause in self.clauses))

    @property
    def rows(self) -> float:
        """Training rows (or their weight) that the rule covers."""
        return sum(count for _, count in self.counts)

    @property
    def hits(self) -> float:
        """Those among them that have the rule's own label."""
        return sum(count for label, count in self.counts if label == self.label)

    @property
    def precision(self) -> float:
        """How often the rule is right; NaN where it covers nothing."""
        return self.hits / self.rows if self.rows else float("nan")

    def covers(self, X: object, features: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Which rows of a table the rule covers; an array needs the names of its columns.

        What the columns are is told from the clauses; a `RuleSet` knows it.
        """
        names = self.features if features is None else tuple(features)
        if features is None and isinstance(X, np.ndarray | list | tuple):
            raise StairError("an array has no column names; pass features=[...]")
        schema = Schema.of_clauses(names, self.clauses)
        return RuleSet((self,), (self.label,), schema, self.label, (0.0,)).covers(X)[:, 0]

    def __str__(self) -> str:
        return " and ".join(side_by_side([*map(str, self.clauses)])) or "everything"

    def in_words(self) -> str:
        """For people to read: as `str`, with thousands separated."""
        texts = [*map(clause_in_words, self.clauses)]
        return " and ".join(side_by_side(texts)) or "everything"

    def __repr__(self) -> str:
        return f"Rule({self} -> {self.label})"

    def _repr_html_(self) -> str:
        figures = ""
        if self.rows:
            figures = (
                f"{self.rows:,.6g} row{'s' * (self.rows != 1)}, {_share(self.precision)} right"
            )
        texts = side_by_side([*map(clause_in_words, self.clauses)])
        return notebook.sentence(texts, str(self.label), figures)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why one row got its label.

    `number` counts the rules from 1, None where no rule covers the row. For a row that is no
    outlier, `nearest` is the outlier rule that it misses by the fewest clauses, and `misses` says
    which ones. Where an `exception` (from 1) covers a row of another label, `would_be` is the rule
    that it takes the row from, whose `reasons` these are, and `because` is why it does.
    """

    label: Label
    name: str
    number: int | None
    reasons: tuple[str, ...]
    nearest: int | None = None
    misses: tuple[str, ...] = ()
    partition: str = ""  # where the rules are local
    exception: int | None = None
    would_be: int | None = None
    would_be_name: str = ""
    because: tuple[str, ...] = ()

    def __str__(self) -> str:
        reasons = "; ".join(self.reasons) or "it covers all"
        if self.exception is not None:
            return f"{self._verdict()} ({reasons}), {self._but()}."
        text = f"{self._verdict()}." if self.number is None else f"{self._verdict()}: {reasons}."
        return f"{text} {self._nearest()}." if self.nearest is not None else text

    def _verdict(self) -> str:
        who = self.name[:1].upper() + self.name[1:]
        if self.partition:
            who = f"{who} in {self.partition}"
        if self.exception is not None:
            return f"{who}: would be {_a(self.would_be_name)} by rule {self.would_be}"
        return (
            f"{who}: no rule covers it" if self.number is None else f"{who} by rule {self.number}"
        )

    def _but(self) -> str:
        return f"but exception {self.exception}: {'; '.join(self.because) or 'it covers all'}"

    def _nearest(self) -> str:
        return f"Nearest outlier rule {self.nearest}: {'; '.join(self.misses)}"

    def __repr__(self) -> str:
        return f"Explanation({self})"

    def _repr_html_(self) -> str:
        more = () if self.nearest is None else (self._nearest(),)
        if self.exception is not None:
            more = (self._but(),)
        return notebook.listed(self._verdict(), (*self.reasons, *more))


@dataclass(frozen=True, slots=True, repr=False)
class RuleSet:
    """Rules over the fields of `schema`; a row that no rule covers gets the `default` label.

    The rules of STAIR are disjoint and cover every training row. `positive` is the outlier
    class, or None where there are more than two classes; `totals` are the training rows (or
    weights) of each class. Where names are given in place of a schema, what they are is told from
    the clauses. A row is held against the rules of its own partition alone, which stand one after
    the other in `rules`; where nobody asked for more there is one partition.

    `exceptions` are rules for the default label, whose rows get it even where rules with other
    labels cover them, in every partition. What a rule `covers` its clauses alone say; what it
    decides, and all that is counted of it, is less what exceptions take from it.
    """

    rules: tuple[Rule, ...]
    classes: tuple[Label, ...]
    schema: Schema
    default: Label
    totals: tuple[float, ...]
    positive: Label | None = None
    routing: Routing = NO_ROUTING
    exceptions: tuple[Rule, ...] = ()
    usual: Usual | None = field(default=None, compare=False)  # among the inliers learned from

    def __post_init__(self) -> None:
        given: Any = self.schema
        if not isinstance(given, Schema):
            object.__setattr__(self, "schema", Schema.of_clauses(given, self.clauses))
        if self.exceptions and self.default == self.positive:
            raise StairError(
                f"every row is {_a(self.label_name(self.default))} unless a rule says otherwise, "
                "so exceptions to these rules would say nothing"
            )
        for exception in self.exceptions:
            if exception.label != self.default:
                raise StairError(
                    f"the exception {exception} has the label {exception.label!r}, but what "
                    f"exceptions cover gets the default label, {self.default!r}"
                )

    @property
    def clauses(self) -> Iterator[Clause]:
        """All clauses of rules and exceptions, one after the other."""
        return (c for rule in (*self.rules, *self.exceptions) for c in rule.clauses)

    def with_exceptions(self, exceptions: Iterable[Rule | Sequence[Clause]]) -> RuleSet:
        """These rules with these exceptions: rules, of which the clauses count, or clauses."""
        found = tuple(
            replace(each, label=self.default)
            if isinstance(each, Rule)
            else Rule(tuple(each), self.default)
            for each in exceptions
        )
        for exception in found:
            for clause in exception.clauses:
                if clause.feature not in self.features:
                    raise no_such_column(clause.feature, self.features, "what the rules may say")
        return replace(self, exceptions=found)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the fields."""
        return self.schema.names

    @property
    def used(self) -> frozenset[str]:
        """The names of the fields that must be known to label a row."""
        mine = frozenset(clause.feature for clause in self.clauses)
        return mine | {dimension.feature for dimension in self.routing.space.dimensions}

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The parts of the data that have rules of their own: one where all rows are together."""
        return self.routing.partitions or (Partition((), sum(self.totals), len(self.rules)),)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where the rules of each partition start and end."""
        ends = np.cumsum([0, *(partition.n_rules for partition in self.partitions)]).tolist()
        return tuple(pairwise(ends))

    @property
    def partition_of(self) -> tuple[int, ...]:
        """The number of the partition of each rule, from 0."""
        return tuple(k for k, (start, stop) in enumerate(self.spans) for _ in range(start, stop))

    def route(self, X: object) -> NDArray[np.intp]:
        """The number of the partition of each row, from 0."""
        values = self.read(X)
        return self.routing.of(values.__getitem__, values.n_rows)

    def parts(self, values: Values) -> Iterator[tuple[range, NDArray[np.intp] | slice, Values]]:
        """For each partition the numbers of its rules, and its rows with their values."""
        if not self.routing:
            yield range(len(self.rules)), slice(None), values
            return
        routed = self.routing.of(values.__getitem__, values.n_rows)
        for number, (start, stop) in enumerate(self.spans):
            rows = np.flatnonzero(routed == number)
            yield range(start, stop), rows, values.take(rows)

    def read(self, table: object) -> Values:
        """What the rules need of a table of any kind, as they compare it."""
        return self.schema.read(table, self.used)

    def with_rules(self, numbers: Sequence[int]) -> RuleSet:
        """As if there were these rules alone (from 0), in this order; those of one partition stay
        beside each other."""
        owners = Counter(self.partition_of[number] for number in numbers)
        partitions = tuple(
            replace(partition, n_rules=owners[k])
            for k, partition in enumerate(self.routing.partitions)
        )
        rules = tuple(self.rules[number] for number in numbers)
        return replace(self, rules=rules, routing=replace(self.routing, partitions=partitions))

    def __len__(self) -> int:
        return len(self.rules)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(self.rules)

    def __getitem__(self, number: int) -> Rule:
        return self.rules[number]

    def place_of(self, rule: int | Rule) -> int:
        """Where a rule stands in `rules`, given itself or by its number, which counts from 1."""
        if isinstance(rule, Rule):
            if rule not in self.rules:
                raise StairError(f"{rule} is none of these rules")
            return self.rules.index(rule)
        if isinstance(rule, bool) or not 1 <= rule <= len(self.rules):
            raise StairError(f"there are rules 1 to {len(self.rules)}, but not {rule!r}")
        return int(rule) - 1

    @property
    def total_length(self) -> int:
        """Σ L(r) over all rules: the headline figure, the shorter the better."""
        return sum(rule.length for rule in self.rules)

    @property
    def n_bounds(self) -> int:
        """How many numbers and values a person has to read in all rules."""
        return sum(clause.n_bounds for rule in self.rules for clause in rule.clauses)

    @property
    def longest(self) -> int:
        return max((rule.length for rule in self.rules), default=0)

    @property
    def gives_way(self) -> tuple[bool, ...]:
        """For each rule whether exceptions take rows from it: its label is not the default."""
        return tuple(rule.label != self.default for rule in self.rules)

    @property
    def outlier_rules(self) -> tuple[Rule, ...]:
        """The rules of the outlier class; all rules where there is no such class."""
        if self.positive is None:
            return self.rules
        return tuple(rule for rule in self.rules if rule.label == self.positive)

    def share(self, rule: Rule) -> float:
        """Of all training rows with the rule's label, the part that this rule covers."""
        total = self.totals[self.classes.index(rule.label)]
        return rule.hits / total if total else float("nan")

    def label_name(self, label: Label) -> str:
        """What a person calls this label: outlier and inlier, or the label's own word."""
        if self.positive is None or isinstance(label, str):
            return str(label)
        return "outlier" if label == self.positive else "inlier"

    def assign(self, X: object) -> NDArray[np.intp]:
        """The number of the rule that decides about each row, the first that covers it, −1 where
        none does or an exception covers it too."""
        values = self.read(X)
        if self.exceptions:
            return self.matches(values).numbers
        if not self.routing:
            return first_match(self.rules, values.__getitem__, values.n_rows)
        numbers = np.full(values.n_rows, -1, dtype=np.intp)
        for own, rows, here in self.parts(values):
            found = first_match(self.rules[own.start : own.stop], here.__getitem__, here.n_rows)
            numbers[rows] = np.where(found >= 0, found + own.start, -1)
        return numbers

    def covers(self, X: object) -> NDArray[np.bool_]:
        """A (rows × rules) matrix: which rule covers which row, exceptions or not."""
        values = self.read(X)
        covered = np.zeros((values.n_rows, len(self.rules)), dtype=np.bool_)
        for own, rows, here in self.parts(values):
            rules = self.rules[own.start : own.stop]
            covered[rows, own.start : own.stop] = all_matches(rules, here.__getitem__, here.n_rows)
        return covered

    def matches(self, X: object) -> Matches:
        """What rules and exceptions cover of some rows, and what that comes to."""
        values = self.read(X)
        excepted = np.empty((values.n_rows, 0), dtype=np.bool_)
        if self.exceptions:
            excepted = all_matches(self.exceptions, values.__getitem__, values.n_rows)
        return Matches(self.covers(values), excepted, np.array(self.gives_way, dtype=np.bool_))

    def predict(self, X: object) -> Array:
        """The label of each row."""
        return self.labels_of(self.assign(X))

    def labels_of(self, numbers: NDArray[np.intp]) -> Array:
        """The labels of rule numbers, where −1 stands for the default."""
        labels = np.array([*(rule.label for rule in self.rules), self.default])
        return labels[numbers]

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """The share of each class among the training rows of the rule that covers the row."""
        shares = np.zeros((len(self.rules) + 1, len(self.classes)))
        for number, rule in enumerate(self.rules):
            counts = dict(rule.counts)
            shares[number] = [counts.get(label, 0.0) for label in self.classes]
            if not rule.rows:
                shares[number, self.classes.index(rule.label)] = 1.0
        shares[-1, self.classes.index(self.default)] = 1.0
        shares /= shares.sum(axis=1, keepdims=True)
        return shares[self.assign(X)]

    def explain(self, row: object) -> Explanation:
        """Which rule decides about this row, and why; or what keeps it from an outlier rule."""
        values = self.read(one_row(row, self.schema))
        place = int(self.routing.of(values.__getitem__, 1)[0])
        own = range(*self.spans[place])
        number, label = None, self.default
        reasons: tuple[str, ...] = ()
        first = first_match(self.rules[own.start : own.stop], values.__getitem__, 1)[0]
        if first >= 0:
            number = own[int(first)] + 1
            rule = self.rules[number - 1]
            label = rule.label
            reasons = _reasons(rule, values)
        if self.exceptions and label != self.default:
            matches = self.matches(values)
            if matches.lifted[0].any():
                return self._excepted(values, matches, place)
        nearest, misses = (None, ()) if label == self.positive else self._nearest(values, own)
        name, partition = self.label_name(label), self.routing.heading(place)
        return Explanation(label, name, number, reasons, nearest, misses, partition)

    def reasons(
        self, X: object, flagged: object = None, *, among: Reference | None = None
    ) -> Reasons:
        """Why each row is flagged: the rule that decides, and what is unusual about the row.

        `flagged` says (True or 1) which rows somebody else calls outliers, by default those that
        the rules do. Each of those that no rule covers gets a rule of its own, from these rows or
        from others that are given as `among`.
        """
        known = () if self.usual is None else self.usual.fields
        values = self.schema.read(one_row(X, self.schema), self.used, wished=known)
        if flagged is None:
            return reasons_of(self, values)
        is_flagged = np.asarray(flagged).astype(np.bool_)
        if is_flagged.shape != (values.n_rows,):
            raise StairError(
                f"flagged has the shape {is_flagged.shape}; expected one value for each of the "
                f"{values.n_rows:,} rows"
            )
        among = among or reference_of(self.schema.fields, values, is_flagged)
        return reasons_of(self, values, is_flagged, among)

    def _excepted(self, values: Values, matches: Matches, place: int) -> Explanation:
        """Why a row that a rule covers has the default label: an exception covers it."""
        number, would_be = int(matches.numbers[0]), int(matches.would_be[0])
        exception = int(first_covering(matches.lifted)[0])
        return Explanation(
            self.default, self.label_name(self.default), None if number < 0 else number + 1,
            _reasons(self.rules[would_be], values),
            partition=self.routing.heading(place),
            exception=exception + 1,
            would_be=would_be + 1,
            would_be_name=self.label_name(self.rules[would_be].label),
            because=_reasons(self.exceptions[exception], values),
        )  # fmt: skip

    def _nearest(self, values: Values, own: range) -> tuple[int | None, tuple[str, ...]]:
        """The outlier rule with the fewest clauses that the row does not meet, and those; of the
        rules of the row's own partition."""
        failing = [
            (number + 1, [c for c in rule.clauses if not c.covers(values[c.feature])[0]])
            for number in own
            if self.positive is not None and (rule := self.rules[number]).label == self.positive
        ]
        if not failing:
            return None, ()
        number, clauses = min(failing, key=lambda pair: len(pair[1]))
        return number, tuple(objection(c, _plain(values[c.feature][0])) for c in clauses)

    def save(self, path: str | Path) -> None:
        """Write the rules to a file, which `stair.load` reads."""
        atomic_write(Path(path), document_of(self, {"total_length": self.total_length}))

    def __str__(self) -> str:
        lines = []
        for k, (partition, (start, stop)) in enumerate(
            zip(self.partitions, self.spans, strict=True), start=1
        ):
            if self.routing:
                lines.append(f"partition {k}, {partition.rows:g} rows: {partition.description}")
            lines += [f"{rule} → {self.label_name(rule.label)}" for rule in self.rules[start:stop]]
            lines.append(f"otherwise → {self.label_name(self.default)}")
        name = self.label_name(self.default)
        lines += [f"but {exception} → {name}" for exception in self.exceptions]
        return "\n".join(lines)

    def _size(self) -> str:
        n, more = len(self.rules), len(self.exceptions)
        return (
            f"{n:,} rule{'s' * (n != 1)}, total length {self.total_length:,}, "
            f"{self.n_bounds:,} bound{'s' * (self.n_bounds != 1)}"
            + f", {more:,} exception{'s' * (more != 1)}"
            * bool(more)
        )

    def __repr__(self) -> str:
        return f"RuleSet({self._size()}; otherwise {self.label_name(self.default)})"

    def _repr_html_(self) -> str:
        rows = [
            (str(k), rule.in_words(), str(self.label_name(rule.label)), f"{rule.rows:,.6g}",
             _share(rule.precision))
            for k, rule in enumerate(self.rules[:MOST_SHOWN], start=1)
        ]  # fmt: skip
        more = len(self.rules) - len(rows)
        rows += [("", f"{more:,} more", "", "", "")] if more else []
        name = str(self.label_name(self.default))
        rows += [
            (f"exception {k}", f"but not where {rule.in_words()}", name,
             f"{rule.rows:,.6g}" if rule.rows else "", _share(rule.precision))
            for k, rule in enumerate(self.exceptions, start=1)
        ]  # fmt: skip
        rows.append(("", "everything else", name, "", ""))
        return notebook.table(self._size(), ("", "rows where …", "label", "rows", "right"), rows, 3)


def with_usual(
    rules: RuleSet,
    values: Values,
    codes: NDArray[np.int32],
    weights: NDArray[np.int64] | None = None,
) -> RuleSet:
    """Rules that know what is usual of the rows that they were learned from, by their classes."""
    if rules.positive is not None:
        is_inlier, who = codes != rules.classes.index(rules.positive), "inliers"
    elif any(rule.label == rules.default for rule in rules):  # classes side by side
        is_inlier, who = codes >= 0, "rows"
    else:
        is_inlier, who = codes == rules.classes.index(rules.default), "inliers"
    used = [f.name for f in rules.schema.fields if f.name in rules.used]
    return replace(rules, usual=usual_of(rules.schema, values, is_inlier, used, weights, who))


class Leaf(NamedTuple):
    """A rule before its label has a name: clauses, class index, weight of each class."""

    clauses: tuple[Clause, ...]
    label: int
    counts: tuple[float, ...]


def rule_set_of(
    leaves: Sequence[Leaf],
    classes: tuple[Label, ...],
    schema: Schema,
    default: int,
    positive: int | None,
) -> RuleSet:
    """Leaves that cover all rows, as rules: outlier rules first, and the largest first."""
    ordered = sorted(leaves, key=lambda leaf: (leaf.label != positive, -leaf.counts[leaf.label]))
    rules = [
        Rule(leaf.clauses, classes[leaf.label], (*zip(classes, leaf.counts, strict=True),))
        for leaf in ordered
    ]
    outlier = None if positive is None else classes[positive]
    totals = tuple(map(sum, zip(*(leaf.counts for leaf in leaves), strict=True)))
    return RuleSet(tuple(rules), classes, schema, classes[default], totals, outlier)


def one_row(row: object, schema: Schema) -> object:
    """A row as a table of one row: a sequence of values, a mapping, a pandas Series, a frame."""
    if isinstance(row, Values):
        return row
    if hasattr(row, "to_dict") and getattr(row, "ndim", 2) == 1:
        row = row.to_dict()
    if isinstance(row, Mapping):
        is_table = row and all(isinstance(v, np.ndarray) and v.ndim for v in row.values())
        return row if is_table else [dict(row)]
    if isinstance(row, list | tuple | np.ndarray) and np.ndim(row) == 1:
        names = schema.sources
        if len(row) != len(names):
            raise StairError(
                f"the row has {len(row)} values, expected {len(names)} ({folded(names)}); "
                "give it as a mapping of names to values"
            )
        return [dict(zip(names, row, strict=True))]
    return row


def _share(share: float) -> str:
    """A share as a person reads it, and nothing where there is none; never rounded up to all."""
    return "" if math.isnan(share) else fine_percent(share)


def _reasons(rule: Rule, values: Values) -> tuple[str, ...]:
    """The clauses of a rule with the values of the one row that meets them."""
    return tuple(reason(c, _plain(values[c.feature][0])) for c in rule.clauses)


def _a(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
