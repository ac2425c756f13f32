"""What the report shows, as values: counts and words, never rows unless somebody asks for some."""

from __future__ import annotations

from dataclasses import dataclass

from stair.evidence.charts import Chart
from stair.report.contrasts import Contrast
from stair.report.coverage import Overlap
from stair.report.map import Map
from stair.report.remarks import Remarks


@dataclass(frozen=True, slots=True)
class ClauseView:
    """A clause and how unusual it is: the rows of either group that meet it."""

    text: str
    feature: str
    outliers: int
    inliers: int
    chart: Chart | None
    beside: str = ""  # the text as it stands beside other clauses


@dataclass(frozen=True, slots=True)
class Examples:
    """Typical rows that a rule covers, as text, and why each of them is flagged."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, str, tuple[str, ...]], ...]  # number from 1, label, cells
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alone:
    """Outliers that no rule covers and that the same attributes set apart, each by itself: how many
    they are, and one of them. Without attributes nothing in the table does."""

    attributes: str
    rows: int
    row: int  # from 1
    reason: str


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule with what speaks for it. `n_outliers` and `n_inliers` are the rows that its clauses
    are held against: those of its partition where the rules are local, else all."""

    number: int
    text: str
    label: str
    is_outlier: bool
    length: int
    rows: int
    hits: int
    share: float
    only: int  # rows of its label that no other rule for this label covers
    n_own: int  # all rows of its label, and all others
    n_others: int
    n_outliers: int
    n_inliers: int
    partition: int | None
    detailed: bool  # whether there was room for its evidence
    clauses: tuple[ClauseView, ...]
    sql: str | None
    examples: Examples | None
    taken: int  # rows that it covers and an earlier rule decides, of several kinds of outlier
    found_again: float | None  # by rules learned without its rows, where it falls apart
    precision: float  # of weight where rows have some, as the share


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that no rule covers, and the label they get."""

    label: str
    rows: int
    hits: int
    precision: float  # of weight where rows have some


@dataclass(frozen=True, slots=True)
class ExceptionView:
    """An exception: the rows that it takes from the rules, those of them that are no outliers, and
    the part that these are of all that rules would be wrong about."""

    number: int
    text: str
    rows: int
    hits: int
    share: float


@dataclass(frozen=True, slots=True)
class KindView:
    """One kind of outlier of several."""

    label: str
    rows: int
    n_rules: int
    score: float
    held_out: float | None  # its score on rows kept aside
    told: str  # why it has no rules above the floor, and what came nearest


@dataclass(frozen=True, slots=True)
class PartitionView:
    number: int
    description: str
    rows: int
    outliers: int
    n_rules: int


@dataclass(frozen=True, slots=True)
class Point:
    """A step of learning."""

    n_rules: int
    total_length: int
    score: float
    stabilizer: float
    objective: float


@dataclass(frozen=True, slots=True)
class Missed:
    """Outliers that no outlier rule covers: by which rules they are called something else, and
    the columns that set them apart from inliers."""

    rows: int
    taken_by: tuple[tuple[int | None, str, int, int], ...]  # rule, its words, missed, all its rows
    contrasts: tuple[Contrast, ...] | None  # None where the rows are elsewhere
    alone: tuple[Alone, ...] = ()  # where rows are asked for


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page."""

    source: str
    meaning: str
    n_rows: int
    n_columns: int
    n_outliers: int
    classes: tuple[tuple[str, int], ...]
    has_outliers: bool
    method: str
    method_name: str
    score_name: str
    score: float
    min_score: float
    floor_reached: bool
    n_rules: int
    total_length: int
    outlier_length: int
    longest: int
    false_alarms: int  # inliers that an outlier rule covers
    wrong: int  # rows whose label by the rules is another
    rules: tuple[RuleView, ...]  # of outliers, or all where there is no outlier class
    inlier_rules: tuple[RuleView, ...]
    n_outlier_rules: int
    inlier_rows: tuple[int, int]  # that the inlier rules cover, and the inliers among them
    n_detailed: int
    has_examples: bool
    explained_by: tuple[tuple[int, int], ...]  # rule, the outliers that it is the first to cover
    missed: Missed | None
    rest: Rest | None
    overlap: Overlap | None
    partitions: tuple[PartitionView, ...]
    map: Map | None
    routed: float | None
    assigned: float | None
    steps: tuple[Point, ...]
    held_out: tuple[float, ...]
    left_out: tuple[tuple[str, str], ...]
    n_left_out: int
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    n_bounds: int
    remarks: Remarks
    kinds: tuple[KindView, ...]
    n_mistaken: int  # outliers that are taken for another kind
    exceptions: tuple[ExceptionView, ...]
    frontier: tuple[tuple[int, float], ...]  # total length and score
    chosen: tuple[int, float] | None  # where the rules are on the frontier
    of_weight: str  # what shares are of, where rows have weights; else nothing
    explained: float  # of the outliers, by weight where there are weights; NaN where there are none
    costly_length: int | None  # with what columns cost, where somebody said so
    has_wishes: bool  # beside the floor on the score

    @property
    def finds_outliers(self) -> bool:
        """Whether there are outliers, of one kind or of several."""
        return self.has_outliers or bool(self.kinds)

    @property
    def n_unlisted(self) -> int:
        return self.n_rules - len(self.rules) - len(self.inlier_rules)
