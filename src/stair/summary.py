"""From a table and a verdict to a Summary: the rules, what speaks for them, and what does not.

Every figure in a Summary is counted from its final rules on all rows, never carried along.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair import plot
from stair.data.packages import Foreign
from stair.data.source import Source
from stair.data.weights import Weights, one_kind_alone
from stair.engines.large import LargeEngine, engine_of
from stair.errors import StairError, check_count, option
from stair.evidence.findings import Findings, Settings
from stair.evidence.suspects import suspects_of
from stair.export.endings import Endings, written
from stair.export.json import to_json
from stair.export.text import figures_in_words, to_text
from stair.intake import Columns, Intake, Statement, take_in
from stair.learn.distill import Further
from stair.learn.frontier import frontier_of
from stair.learn.kinds import Kind, kinds_of
from stair.learn.known import costs_of, length_with_costs
from stair.learn.learner import Learner, check_rules
from stair.learn.method import Learned, Method
from stair.learn.methods import method_of, settings_of
from stair.learn.validation import Check
from stair.learn.wishes import Reach, column_wishes_of
from stair.progress import listener
from stair.report import to_fragment, to_html
from stair.rules.agreement import Score, classes_of
from stair.rules.counted import Counted, by_weight, count, rest_by_weight, weighed_of
from stair.rules.groups import groups_of_matches
from stair.rules.rule_set import Rule, RuleSet, with_usual
from stair.rules.schema import Values
from stair.scale.coding import Coded
from stair.scale.matching import Elsewhere
from stair.scale.rules import Learned as LargeLearned
from stair.scale.summarize import binned_note, learn_large
from stair.verdict.labels import AllBut, sides_of


class Summary(Findings, Endings):
    """Rules with their evidence and where they come from. Print it, or ask it about a row.

    The fields, and what can be asked of them, are those of `Findings`; the pictures are those of
    `stair.plot`.
    """

    plot_partitions = plot.plot_partitions
    plot_stabilizer = plot.plot_stabilizer
    plot_coverage = plot.plot_coverage
    plot_clause = plot.plot_clause
    plot_frontier = plot.plot_frontier

    def to_text(self, width: int = 80, *, every_rule: bool = False, colour: bool = False) -> str:
        """The summary as a table for a terminal."""
        return to_text(self, width, every_rule=every_rule, colour=colour)

    def to_json(self, path: str | Path | None = None) -> str:
        """The rules as JSON; written to a file where a path is given."""
        return written(to_json(self), path)

    def to_html(self, path: str | Path | None = None, examples: int = 0) -> str:
        """A page of its own with the rules and what speaks for them.

        It holds counts alone; `examples` asks for so many rows of the data under each rule.
        """
        return written(to_html(self, examples), path)

    def matches(self, rule: int | Rule) -> Foreign:
        """The rows that a rule covers, as the kind of table that was given. With an engine for
        large data they are lazy: a relation of DuckDB, a Dask or a Spark DataFrame."""
        if isinstance(self._elsewhere, Elsewhere):
            return self._elsewhere.matching(self.rules, self.rules.place_of(rule))
        return super().matches(rule)

    def unexplained_matches(self) -> Foreign:
        """The outliers that no outlier rule covers, in the same way."""
        if isinstance(self._elsewhere, Elsewhere):
            return self._elsewhere.unexplained(self.rules, self.codebook)
        return super().unexplained_matches()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Summary({self.source or 'data'}: {figures_in_words(self)})"

    def _repr_html_(self) -> str:
        return to_fragment(self)


def summarize(
    data: object,
    labels: str | ArrayLike | None = None,
    scores: str | ArrayLike | None = None,
    contamination: float | int | None = None,
    detector: object = None,
    *,
    positive: object = None,
    method: str | Method = "distilled",
    min_score: float | None = None,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    engine: str | LargeEngine = "memory",
    validate: int | None = None,
    weights: str | ArrayLike | None = None,
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
    positive : value, list of values or AllBut, optional
        The label that means outlier, or several. `stair.AllBut("ok")` names the normal one instead:
        with distilled rules every other is then a kind of outlier with rules and a floor of its
        own, as it is where one label is by far the most frequent of more than two. By
        `stair.AllBut()` none is normal: then rules tell all labels apart, as in the paper.
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
    engine : {"memory", "duckdb", "dask", "spark", "cuda"}, or a DuckDB, Dask, Spark or Cuda
        Where the rows are: in memory, in files that are read in parts, in a Dask or Spark
        DataFrame, or on a GPU. All but the first take the label as a column's name; a GPU takes an
        array of labels too. A value has settings, as in
        `stair.DuckDB(memory="1GB")`.
    validate : int, optional
        The rules are also learned on so many folds and scored on the rest; 0 leaves that out. By
        default the check is a quick one, with less effort.
    weights : str or array, optional
        How much each row counts, such as the money at stake: a column's name or an array. Shares,
        floors and the score are then of weight; rows of weight 0 are left out.

    Returns
    -------
    Summary

    How it goes is told to the function that `stair.progress.telling` has, if any.
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
    is_apart = isinstance(positive, AllBut) and positive.is_nothing
    positive, negative = sides_of(how.pos_label if positive is None else positive)
    statement = Statement(
        labels, scores, contamination, detector, positive, negative,
        how.has_kinds and not is_apart, how.random_state, weights,
    )  # fmt: skip
    settings = {
        **how.settings,
        "time_parts": source.time_parts,
        "time_zone": source.time_zone,
        "validate": validate,
    }
    if weights is not None:
        settings |= {"weights": weights if isinstance(weights, str) else "an array"}
    if where is not None:
        coded, counted = learn_large(source, statement, chosen, how, where, validate, say)
        settings |= {"engine": where.name, "bins": where.bins}
        if how.name != "stair" or validate != 0:
            settings |= {"sample": where.sample}
        where_rows_are = Elsewhere(source, where, labels if isinstance(labels, str) else "")
        return summary_of_counts(coded, counted, settings, source.name, where_rows_are)
    given = take_in(source, statement, chosen, say)
    learn = Learner(how, given.schema, given.verdict, say)
    learned = learn(given.values, given.codes, whole := whole_weights(given))
    check = check_rules(learn, learned, given.values, given.codes, validate, whole)
    say("counting")
    return summary_of(given, learned, settings, check)


def whole_weights(given: Intake) -> NDArray[np.int64] | None:
    """What each row counts in learning, where they do not count alike."""
    if given.weights is None:
        return None
    if given.verdict.negative is not None:
        raise one_kind_alone(given.weights.name)
    return given.weights.whole


def summary_of(
    given: Intake,
    learned: Learned,
    settings: Settings,
    check: Check | str = "",
) -> Summary:
    """Rules counted on the rows that were given. The settings name the method and the floor; the
    check, or why there is none, says whether they hold."""
    codes, values = given.codes, given.values
    learned = _in_true_weights(learned, given.weights)
    rules = with_usual(learned.rules, values, codes)
    negative = given.verdict.negative
    found = _figures(
        rules, values, codes, settings, negative, learned.kinds, learned.further, given.weights
    )
    return Summary(
        **found,
        method=settings["method"],
        min_score=_floor_on_score(settings),
        n_rows=len(given.rows),
        n_columns=given.n_columns,
        meaning=given.verdict.meaning,
        source=given.source,
        left_out=_with_never(given.left_out, settings),
        notes=(*given.frame.notes, *given.verdict.notes),
        settings=settings,
        versions=library_versions(),
        trace=learned.trace,
        certificate=learned.certificate,
        check=check if isinstance(check, Check) else None,
        unchecked=check if isinstance(check, str) else "",
        further=learned.further,
        codebook=given.verdict.codebook,
        _values=values,
        _rows=given.rows,
        _data=given.data,
        _weights=given.weights,
    )


def summary_again(
    summary: Summary, rules: RuleSet, codes: NDArray[np.int32], *notes: str
) -> Summary:
    """A summary with other rules and other labels of the same rows. What was found out about the
    old ones by learning, as whether they hold, is not said of them."""
    rules = with_usual(rules, summary._values, codes)
    negative = rules.classes.index(rules.default) if summary.kinds else None
    found = _figures(
        rules, summary._values, codes, summary.settings, negative, (), None, summary._weights
    )
    return replace(
        summary, **found, check=None, unchecked="the rules were changed since", further=None,
        notes=(*summary.notes, *notes),
    )  # fmt: skip


def _figures(
    rules: RuleSet,
    values: Values,
    codes: NDArray[np.int32],
    settings: Settings,
    negative: int | None,
    kinds: tuple[Kind, ...],
    further: Further | None,
    weights: Weights | None,
) -> dict[str, Any]:
    """All that is counted of rules on rows, by the names of a summary's fields."""
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
    matches = rules.matches(values)
    predicted = classes_of(rules, matches.numbers)
    groups = groups_of_matches(matches, codes)
    counted = heavy = count(rules, values, codes, matches=matches)
    heavy_groups = groups
    if weights is not None:  # the rules have the counts of rows, and weights stand beside them
        rules = counted.recounted
        rules = replace(rules, routing=rules.routing.with_rows(values.__getitem__, len(codes)))
        counted = replace(counted, rules=rules)
        heavy = count(rules, values, codes, weights.whole, matches)
        heavy_groups = groups_of_matches(matches, codes, weights.whole)
    if not kinds and negative is not None and settings["method"] == "distilled":
        kinds = kinds_of(counted, negative, settings["min_score"])
    if kinds:
        default = rules.classes.index(rules.default)
        is_outlier, missed = codes != default, (codes != default) & (predicted == default)
        score = min(kind.score for kind in kinds)
    else:
        is_outlier = codes == positive
        missed = is_outlier & (predicted != positive)
        score = heavy.score
    if settings.get("floor_on") == "assigned":
        score = rules.routing.assigned
    evidence = counted.evidence(decided=bool(kinds))  # then which rule is the first matters
    if kinds:
        wanted = {rules.classes.index(kind.label): str(kind.label) for kind in kinds}
    else:
        wanted = {} if positive is None else {positive: "the outliers"}
    rest, weighed = counted.rest, None
    if weights is not None:
        evidence = by_weight(evidence, heavy)
        rest = rest_by_weight(rest, heavy)
        weighed = weighed_of(weights.unit, heavy, counted.score)
    return {
        "rules": rules,
        "evidence": evidence,
        "rest": rest,
        "weighed": weighed,
        "exceptions": counted.of_exceptions(),
        "score": Score(score),
        "unexplained": int(missed.sum()),
        "kinds": kinds,
        "suspects": suspects_of(rules, evidence, values, codes, wanted),
        "frontier": frontier_of(rules, heavy_groups, wanted, further),
        **wished_of(settings, rules, counted, heavy, is_of_kinds=bool(kinds)),
        "_unexplained": missed,
        "_outliers": is_outlier,
        "_codes": codes,
        "_groups": groups,
    }


def _in_true_weights(learned: Learned, weights: Weights | None) -> Learned:
    """What was learned by whole numbers, in the weights that were given."""
    if weights is None:
        return learned
    certificate, further = learned.certificate, learned.further
    if certificate is not None:
        certificate = replace(certificate, most=weights.unit.true(certificate.most))
    if further is not None:
        further = replace(further, outliers=weights.unit.true(further.outliers))
    return learned._replace(certificate=certificate, further=further)


def summary_of_counts(
    coded: Coded,
    learned: LargeLearned,
    settings: Settings,
    name: str | None,
    elsewhere: Elsewhere | None = None,
) -> Summary:
    """Rules counted where the rows are, which are not kept."""
    rounds = {"rounds": learned.n_rounds} if learned.n_rounds else {}
    return Summary(
        rules=learned.rules,
        evidence=learned.evidence,
        rest=learned.rest,
        method=settings["method"],
        score=Score(learned.score),
        min_score=_floor_on_score(settings),
        n_rows=sum(coded.totals),
        n_columns=len(coded.names) - 1,
        meaning=coded.meaning,
        source=name or coded.source,
        left_out=_with_never(coded.left_out, settings),
        notes=(*coded.notes, *binned_note(coded, settings["bins"])),
        settings={**settings, "passes": learned.n_passes, **rounds},
        versions=library_versions(),
        trace=learned.trace,
        certificate=learned.certificate,
        unexplained=learned.missed,
        codebook=coded.codebook,
        **wished_of(
            settings,
            learned.rules,
            learned.counted,
            learned.counted,
            is_of_kinds=bool(learned.kinds),
        ),
        check=learned.check if isinstance(learned.check, Check) else None,
        unchecked=learned.check if isinstance(learned.check, str) else "",
        kinds=learned.kinds,
        further=learned.further,
        suspects=learned.suspects,
        frontier=learned.frontier,
        weighed=learned.weighed,
        _tallies=learned.tallies,
        _elsewhere=elsewhere,
    )


def _floor_on_score(settings: Settings) -> float:
    """The floor on the score that is shown; one on F-beta is a wish of its own."""
    return float(settings["min_score"]) if settings.get("beta", 1.0) == 1 else 0.0


def _with_never(left_out: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """What is left out, and what no rule may use by wish."""
    wishes = column_wishes_of(settings.get("column_wishes"))
    return {**left_out, **{name: "never, as wished" for name, w in wishes.items() if w.never}}


def wished_of(
    settings: Settings,
    rules: RuleSet,
    counted: Counted | None,
    heavy: Counted | None,
    *,
    is_of_kinds: bool,
) -> dict[str, Any]:
    """What became of wishes, by the counts of the rules, and by the weights of rows in `heavy`; and
    how long rules are with the costs of columns, where there are any. Alerts are rows."""
    found: dict[str, object] = {}
    known = column_wishes_of(settings.get("column_wishes"))
    length = rules.total_length
    if any(wish.cost > 1 for wish in known.values()):
        length = found["costly_length"] = length_with_costs(rules, costs_of(rules, known))
    is_told = counted is not None and heavy is not None and counted.positive is not None
    if settings["method"] != "distilled" or not is_told:
        return found
    assert counted is not None and heavy is not None and counted.positive is not None
    own = {name: settings[name] for name in settings_of("distilled") if name in settings}
    wishes = method_of("distilled", **own).wishes
    if wishes.is_plain or is_of_kinds:
        return found
    alerts = counted.of_class(counted.positive).rows
    figures = heavy.of_class(counted.positive)
    got = Reach(
        figures.hits, figures.rows - figures.hits, alerts, figures.total, counted.n_rows,
        tuple(each.precision for each in heavy.of_rules), length, len(rules),
    )  # fmt: skip
    return {**found, "outcomes": wishes.outcomes(got)}


def library_versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "stair": version("stair"),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scikit-learn": version("scikit-learn"),
    }
