"""From a table and a verdict to a Summary: the rules, what speaks for them, and what does not.

Every figure in a Summary is counted from its final rules on all rows, never carried along.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.data import Frame
from stair.data.source import Source
from stair.engines.large import LargeEngine, engine_of
from stair.errors import StairError, check_count, option, spoken
from stair.evidence.distribution import Distributions
from stair.evidence.of_rules import Rest, RuleEvidence, evidence_of, rest_of
from stair.evidence.suspects import suspects_of
from stair.evidence.tallies import Tally
from stair.export.endings import Endings, written
from stair.intake import Columns, Given, Statement, take_in
from stair.learn.distill import Further
from stair.learn.frontier import frontier_of
from stair.learn.grow import Step
from stair.learn.kinds import Kind, kinds_of
from stair.learn.learner import Learner, check_rules
from stair.learn.method import Certificate, Learned, Method
from stair.learn.methods import method_of
from stair.learn.validation import Check
from stair.pictures import Pictures
from stair.progress import listener
from stair.rules.agreement import Score, Scores, predicted_classes, predicted_labels, score_on
from stair.rules.groups import groups_of
from stair.rules.objective import reaches, score_of_classes
from stair.rules.rule_set import Explanation, Rule, RuleSet
from stair.rules.schema import Field, Values
from stair.scale.coding import Coded
from stair.scale.rules import Learned as Counted
from stair.scale.summarize import binned_note, learn_large
from stair.verdict.codebook import Codebook


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Endings, Pictures):
    """Rules with their evidence and where they come from. Print it, or ask it about a row.

    `score` is the F1 of the outliers (or the accuracy) on the rows that were learned from, and
    `score(new, y)` that on others: y is an array, or the name of a column of the new rows, and is
    read as the labels were in learning; rows without a label are left out. Where there are several
    kinds of outlier it is the F1 of each by its name.
    """

    rules: RuleSet
    evidence: tuple[RuleEvidence, ...]
    rest: Rest
    method: str
    score: Score
    min_score: float
    n_rows: int
    n_columns: int
    meaning: str
    source: str
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    trace: tuple[Step, ...]
    unexplained: int  # outliers that no outlier rule covers
    certificate: Certificate | None = None  # of distilled rules: how short they could be
    check: Check | None = None  # whether the rules hold on rows kept aside
    unchecked: str = ""  # why that is not known
    kinds: tuple[Kind, ...] = ()  # where there are several kinds of outlier, how each does
    further: Further | None = None  # what one more rule would add
    suspects: tuple[str, ...] = ()  # what should be looked at twice, in sentences
    frontier: tuple[tuple[int, float], ...] = ()  # total length and score, rule by rule
    codebook: Codebook | None = None  # which values of the label mean which class
    _values: Values = field(default_factory=lambda: Values({}, 0), repr=False)
    _rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)
    _data: Any = field(default=None, repr=False)
    _unexplained: NDArray[np.bool_] = field(
        default_factory=lambda: np.empty(0, np.bool_), repr=False
    )
    _outliers: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_), repr=False)
    _codes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    _tallies: Mapping[str, Tally] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        said = {
            "notes": tuple(map(spoken, self.notes)),
            "suspects": tuple(map(spoken, self.suspects)),
            "left_out": {name: spoken(why) for name, why in self.left_out.items()},
            "unchecked": spoken(self.unchecked),
            "score": Score(self.score, self._score_on),
        }
        for name, value in said.items():
            object.__setattr__(self, name, value)

    @property
    def fields(self) -> tuple[Field, ...]:
        """What the rules may speak of."""
        return self.rules.schema.fields

    @property
    def held_out(self) -> tuple[float, ...]:
        """The score of each fold on rows kept aside; empty where that was not looked at."""
        return () if self.check is None else self.check.scores

    @property
    def floor_reached(self) -> bool:
        if self.kinds:
            return all(kind.reached for kind in self.kinds)
        return reaches(self.score, self.min_score)

    @property
    def score_name(self) -> str:
        return "F1" if self.rules.positive is not None or self.kinds else "accuracy"

    @property
    def n_outliers(self) -> int:
        """Rows of the outlier class, or of all kinds of outlier; 0 where there is none."""
        if self.kinds:
            return sum(kind.rows for kind in self.kinds)
        if self.rules.positive is None:
            return 0
        return int(self.rules.totals[self.rules.classes.index(self.rules.positive)])

    @property
    def recall(self) -> float:
        """Of all outliers, the part that the rules find; NaN where there are several classes."""
        if self.rules.positive is None:
            return math.nan
        return 1 - self.unexplained / self.n_outliers

    @property
    def precision(self) -> float:
        """Of the rows that the rules call outliers, the part that are some; NaN where there are
        several classes, or none is called so."""
        if self.rules.positive is None or self.rules.routing:
            return math.nan
        called = self.n_rows - self.rest.rows  # distilled rules may overlap, others do not
        if self.method != "distilled":
            own = (each for each in self.evidence if each.rule.label == self.rules.positive)
            called = sum(each.rows for each in own)
        return (self.n_outliers - self.unexplained) / called if called else math.nan

    def explain(self, row: Any) -> Explanation:
        """Why this row is, or is not, an outlier by the rules: a mapping, a Series, a frame."""
        return self.rules.explain(row)

    def predict(self, new: Any) -> NDArray[Any]:
        """The label of each row of a table of any kind, or of a file, by the rules.

        Labels are the values that the label column had, such as 0 and 1, -1 and 1, "ok" and
        "fraud", or the names of kinds. Where one side stands for several values (`positive` is a
        list, or one of many), and where the verdict came from scores or a detector, they are
        "inlier" and "outlier".
        """
        return predicted_labels(self.rules, self.codebook, new)

    def _score_on(self, new: Any, y: Any) -> Scores:
        is_of = [kind.label for kind in self.kinds]
        return score_on(self.rules, self.codebook, is_of, new, y)

    def matching_rows(self, rule: int | Rule) -> NDArray[np.intp]:
        """The row numbers (from 0) that a rule covers; the rule itself, or its number from 1."""
        self._check_rows()
        place = self.rules.place_of(rule)
        return self._rows[np.flatnonzero(self.rules.covers(self._values)[:, place])]

    def matches(self, rule: int | Rule) -> Any:
        """The rows that a rule covers, as the kind of table that was given."""
        return self.rows_of_data(self.matching_rows(rule))

    def rows_of_data(self, numbers: NDArray[np.intp]) -> Any:
        """Some rows by their numbers (from 0), as the kind of table that was given."""
        return _take(self._data, numbers)

    def unexplained_rows(self) -> NDArray[np.intp]:
        """The row numbers of outliers that no outlier rule covers."""
        self._check_rows()
        return self._rows[self._unexplained]

    def to_text(self, width: int = 80, *, every_rule: bool = False, colour: bool = False) -> str:
        """The summary as a table for a terminal."""
        from stair.export import to_text

        return to_text(self, width, every_rule=every_rule, colour=colour)

    def to_json(self, path: str | Path | None = None) -> str:
        """The rules as JSON; written to a file where a path is given."""
        from stair.export import to_json

        return written(to_json(self), path)

    def to_html(self, path: str | Path | None = None, examples: int = 0) -> str:
        """A page of its own with the rules and what speaks for them.

        It holds counts alone; `examples` asks for so many rows of the data under each rule.
        """
        from stair.report import to_html

        return written(to_html(self, examples), path)

    def is_outlier(self) -> NDArray[np.bool_]:
        """Which of the rows that were learned from are outliers by their labels."""
        self._check_rows()
        return self._outliers

    @property
    def has_rows(self) -> bool:
        """Whether the rows are here; an engine for large data counts them where they are."""
        return len(self._rows) == self.n_rows

    def _distributions(self) -> Distributions:
        """How the attributes of the rules are distributed: from the rows, or from what an engine
        for large data has counted of them."""
        if self._tallies:
            totals = [round(n) for n in self.rules.totals]
            return Distributions.of_tallies(self._tallies, totals)
        self._check_rows()
        return Distributions(self._values.__getitem__, self._codes, len(self.rules.classes))

    def _check_rows(self) -> None:
        if not self.has_rows:
            raise StairError(
                "the rows themselves are not kept with an engine other than memory; "
                "find them in your data with to_sql(...)"
            )

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        from stair.export.text import figures_in_words

        return f"Summary({self.source or 'data'}: {figures_in_words(self)})"

    def _repr_html_(self) -> str:
        from stair.report import to_fragment

        return to_fragment(self)


def summarize(
    data: Any,
    labels: str | ArrayLike | None = None,
    scores: str | ArrayLike | None = None,
    contamination: float | int | None = None,
    detector: Any = None,
    *,
    positive: Any = None,
    negative: Any = None,
    method: str | Method = "distilled",
    min_score: float | None = None,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    engine: str | LargeEngine = "memory",
    validate: int | None = None,
) -> Summary:
    """Rules that say which rows a detector calls outliers, and why.

    Parameters
    ----------
    data : DataFrame, Arrow table, array, dict of columns, path or Source
        The rows. A path may be CSV, Parquet, JSON lines, Excel, DuckDB or SQLite, a folder, or a
        pattern such as "data/*.csv": files with the same columns, read one after the other in the
        order of their names. A `stair.Source` says more: what to read of a database, a name for
        the data, or the zone of its times.
    labels : str or array, optional
        The verdict: a column's name or an array (0/1, bool, -1/+1, words, more classes). Where it
        is a Series that is also a column of the data, that column is left out.
    scores : str or array, optional
        Outlier scores instead, the higher the more outlying; needs `contamination`.
    contamination : float or int, optional
        The share (up to 0.5) or the number of rows to call outliers.
    detector : object or str, optional
        A fitted or unfitted PyOD or scikit-learn detector, or the name of one ("lof", ...).
    positive : value or list of values, optional
        The label that means outlier, or several.
    negative : value, optional
        The label that means normal. With distilled rules every other one is then a kind of outlier
        with rules and a floor of its own, as it is where one label is by far the most frequent of
        more than two. An empty list says that none is normal: then rules tell all labels apart, as
        in the paper.
    method : {"distilled", "stair", "refined", "local", "id3", "cart"}, or one of the estimators
        How the rules are learned: the shortest outlier rules, which may overlap; STAIR's disjoint
        rules for outliers and inliers; the same, made as short as they get; rules for partitions
        of the data; or the paper's baselines. An estimator has settings, as in
        `DistilledStair(min_outliers=8)`. With an engine for large data, distilled rules are looked
        for in samples, and chosen by the counts of all rows.
    min_score : float, optional
        The floor: F1 of the outliers (accuracy with more than two classes) must be above it. By
        default it is the method's, 0.8 where nobody said otherwise.
    include, exclude : list of column names
        What the rules may speak of; what they may not.
    kinds : dict
        The kind of a column where it should not be guessed: number, category, time or text.
    engine : {"memory", "duckdb", "dask", "spark"}, or a DuckDB, Dask or Spark
        Where the rows are: in memory, in files that are read in parts, or in a Dask or Spark
        DataFrame. All but the first take the label as a column's name. A value has settings, as in
        `stair.DuckDB(memory="1GB")`.
    validate : int, optional
        The rules are also learned on so many folds and scored on the rest; 0 leaves that out. By
        default the check is a quick one, with less effort.

    Returns
    -------
    Summary
    """
    how = method_of(method, **({} if min_score is None else {"min_score": min_score}))
    if validate is not None:
        check_count("validate", validate, 0)
        if validate == 1:
            raise StairError(
                f"{option('validate', validate)}; expected 0 (off) or at least 2 folds"
            )
    where = engine_of(getattr(how, "engine", "memory") if engine == "memory" else engine)
    source, chosen, say = Source.of(data), Columns(include, exclude, kinds), listener()
    is_apart = isinstance(negative, list | tuple) and not negative
    statement = Statement(
        labels, scores, contamination, detector, how.pos_label if positive is None else positive,
        None if is_apart else negative, how.has_kinds and not is_apart, how.random_state,
    )  # fmt: skip
    settings = {
        **how.settings,
        "time_parts": source.time_parts,
        "time_zone": source.time_zone,
        "validate": validate,
    }
    if where is not None:
        coded, counted = learn_large(source, statement, chosen, how, where, validate, say)
        settings |= {"engine": where.name, "bins": where.bins}
        if how.name != "stair" or validate != 0:
            settings |= {"sample": where.sample}
        return summary_of_counts(coded, counted, settings, source.name)
    given = take_in(source, statement, chosen, say)
    learn = Learner(how, given.schema, given.verdict, say)
    learned = learn(given.values, given.codes)
    check = check_rules(learn, learned, given.values, given.codes, validate)
    say("counting")
    return summary_of(given, learned, settings, check)


def summary_of(
    given: Given,
    learned: Learned,
    settings: Mapping[str, Any],
    check: Check | str = "",
) -> Summary:
    """Rules counted on the rows that were given. The settings name the method and the floor; the
    check, or why there is none, says whether they hold."""
    rules, codes, values = learned.rules, given.codes, given.values
    positive = given.verdict.positive
    predicted = predicted_classes(rules, values)
    groups = groups_of(rules.covers(values), codes)
    kinds, negative = learned.kinds, given.verdict.negative
    if not kinds and negative is not None and settings["method"] == "distilled":
        kinds = kinds_of(rules, groups, negative, settings["min_score"])
    if kinds:
        default = rules.classes.index(rules.default)
        is_outlier, missed = codes != default, (codes != default) & (predicted == default)
        score = min(kind.score for kind in kinds)
    else:
        is_outlier = codes == positive
        missed = is_outlier & (predicted != positive)
        score = score_of_classes(predicted, codes, positive)
    if settings.get("floor_on") == "assigned":
        score = rules.routing.assigned
    is_told_apart = bool(kinds)  # then which rule is the first matters
    evidence = evidence_of(rules, values, codes, given.verdict, decided=is_told_apart)
    if kinds:
        wanted = {rules.classes.index(kind.label): str(kind.label) for kind in kinds}
    else:
        wanted = {} if positive is None else {positive: "the outliers"}
    return Summary(
        rules=rules,
        evidence=evidence,
        rest=rest_of(rules, values, codes),
        method=settings["method"],
        score=Score(score),
        min_score=settings["min_score"],
        n_rows=len(given.rows),
        n_columns=given.n_columns,
        meaning=given.verdict.meaning,
        source=given.source,
        left_out=given.left_out,
        notes=(*given.frame.notes, *given.verdict.notes),
        settings=settings,
        versions=library_versions(),
        trace=learned.trace,
        certificate=learned.certificate,
        unexplained=int(missed.sum()),
        check=check if isinstance(check, Check) else None,
        unchecked=check if isinstance(check, str) else "",
        kinds=kinds,
        further=learned.further,
        suspects=suspects_of(rules, evidence, values, codes, wanted),
        frontier=frontier_of(rules, groups, wanted, learned.further),
        codebook=given.verdict.codebook,
        _values=values,
        _rows=given.rows,
        _data=given.data,
        _unexplained=missed,
        _outliers=is_outlier,
        _codes=codes,
    )


def summary_of_counts(
    coded: Coded, learned: Counted, settings: Mapping[str, Any], name: str | None
) -> Summary:
    """Rules counted where the rows are, which are not kept."""
    rounds = {"rounds": learned.n_rounds} if learned.n_rounds else {}
    return Summary(
        rules=learned.rules,
        evidence=learned.evidence,
        rest=learned.rest,
        method=settings["method"],
        score=Score(learned.score),
        min_score=settings["min_score"],
        n_rows=sum(coded.totals),
        n_columns=len(coded.names) - 1,
        meaning=coded.meaning,
        source=name or coded.source,
        left_out=coded.left_out,
        notes=(*coded.notes, *binned_note(coded, settings["bins"])),
        settings={**settings, "passes": learned.n_passes, **rounds},
        versions=library_versions(),
        trace=learned.trace,
        certificate=learned.certificate,
        unexplained=learned.missed,
        codebook=coded.codebook,
        check=learned.check if isinstance(learned.check, Check) else None,
        unchecked=learned.check if isinstance(learned.check, str) else "",
        kinds=learned.kinds,
        further=learned.further,
        suspects=learned.suspects,
        frontier=learned.frontier,
        _tallies=learned.tallies,
    )


def library_versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "stair": version("stair"),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scikit-learn": version("scikit-learn"),
    }


def _take(data: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a table, as the same kind of table."""
    if isinstance(data, Frame):
        return {name: array[rows] for name, array in data.columns.items()}
    if isinstance(data, Mapping):
        return {name: np.asarray(array)[rows] for name, array in data.items()}
    if isinstance(data, np.ndarray):
        return data[rows]
    if isinstance(data, list):
        return [data[row] for row in rows.tolist()]
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "take"):  # Arrow
        return data.take(rows)
    return data[rows.tolist()]
