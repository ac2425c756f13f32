"""The flags that commands share. A group of flags is one value; a new flag is one more field.

A setting of a method or an engine has no default here: it is given, or it is the value's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from stair.errors import StairError
from stair.gate import kinds, partitions, share_or_number

_VERDICT, _DISTILLED, _LOCAL = "Verdict", "Method distilled", "Method local"
_COLUMNS, _LARGE, _WISHES = "Columns", "Large data", "Wishes"


def _flag(help: str, panel: str | None = None, default: str | None = None, **more: Any) -> Any:
    """A flag with what it is by itself, where nobody gives it."""
    return typer.Option(
        help=help, rich_help_panel=panel, show_default=default is not None and default, **more
    )


class Flags:
    """Fields that are flags; `names` has those whose settings are called otherwise."""

    names: ClassVar[dict[str, str]] = {}

    @property
    def given(self) -> dict[str, Any]:
        """What was given."""
        return {
            name: value for name, value in vars(self).items() if value is not None and value != []
        }

    @property
    def settings(self) -> dict[str, Any]:
        """What was given, by the names of the settings."""
        given = {n: value for n, value in self.given.items() if n not in ("method", "engine")}
        return {self.names.get(name, name): value for name, value in given.items()}


@dataclass(frozen=True)
class TableFlags(Flags):
    """What to read of a database."""

    table: Annotated[str | None, _flag("A table of a database file.")] = None
    query: Annotated[str | None, _flag("A query on a database file.")] = None


@dataclass(frozen=True)
class VerdictFlags(Flags):
    """Who says which rows are outliers."""

    label: Annotated[str | None, _flag("The column with the verdict.", _VERDICT)] = None
    score: Annotated[str | None, _flag("The column with outlier scores.", _VERDICT)] = None
    contamination: Annotated[
        Any,
        _flag("Outliers: a share up to 0.5, or a whole number of rows.", _VERDICT,
              metavar="NUMBER", parser=share_or_number),
    ] = None  # fmt: skip
    detector: Annotated[str | None, _flag("Find outliers: lof, iforest, …", _VERDICT)] = None
    positive: Annotated[
        list[str] | None, _flag("The label that means outlier; may be repeated.", _VERDICT)
    ] = None
    negative: Annotated[
        str | None,
        _flag("The label that means normal; every other is a kind of outlier.", _VERDICT),
    ] = None
    weights: Annotated[
        str | None, _flag("The column with what each row counts, as money.", _VERDICT)
    ] = None


@dataclass(frozen=True)
class MeasureFlags(Flags):
    """What several labels are measured by."""

    measure: Annotated[
        str, _flag("With more than two labels: f1 of each kind, or accuracy.", _VERDICT, "f1")
    ] = "f1"

    def is_apart(self, negative: str | None) -> bool:
        """Whether no label is normal, as for accuracy."""
        if self.measure not in ("f1", "accuracy"):
            raise StairError(f"--measure {self.measure}; expected f1 or accuracy")
        if self.measure == "accuracy" and negative is not None:
            raise StairError("--measure accuracy is for labels of which none is normal; leave "
                             "--negative out")  # fmt: skip
        return self.measure == "accuracy"


@dataclass(frozen=True)
class MethodFlags(Flags):
    """How rules are learned."""

    names: ClassVar[dict[str, str]] = {"seed": "random_state"}

    method: Annotated[
        str, _flag("distilled, stair, refined, local, id3 or cart.", default="distilled")
    ] = "distilled"
    min_score: Annotated[
        float | None, _flag("The floor that F1 (or accuracy) must exceed.", default="0.8")
    ] = None
    max_rule_length: Annotated[
        int | None, _flag("The most attributes of one rule.", default="10")
    ] = None
    seed: Annotated[int | None, _flag("Seed of all that draws at random.", default="0")] = None
    time_windows: Annotated[
        bool | None,
        typer.Option(
            "--time-windows", help="Also times between two others, not only since or until one.",
            rich_help_panel=_COLUMNS, show_default=False,
        ),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class MoreMethodFlags(MethodFlags):
    """The same, with all that there is to say."""

    names: ClassVar[dict[str, str]] = {"seed": "random_state", "partitions": "n_partitions"}

    max_total_length: Annotated[int | None, _flag("The most attributes of all rules together.")] = (
        None
    )
    min_outliers: Annotated[
        int | None, _flag("The fewest outliers a rule may cover.", _DISTILLED)
    ] = None
    effort: Annotated[
        str | None, _flag("How long to look: normal or fast.", _DISTILLED, "normal")
    ] = None
    time_limit: Annotated[float | None, _flag("Stop looking after SECONDS.", _DISTILLED)] = None
    partitions: Annotated[
        Any,
        _flag("Partitions to start with, or auto.", _LOCAL, "auto", metavar="TEXT",
              parser=partitions),
    ] = None  # fmt: skip
    locality: Annotated[float | None, _flag("What distance weighs beside an error.", _LOCAL)] = None
    floor_on: Annotated[
        str | None, _flag("The floor is on the routed or assigned score.", _LOCAL, "routed")
    ] = None
    min_rows_per_value: Annotated[
        int | None, _flag("Rows that a value must have to be named.", _COLUMNS, "5")
    ] = None
    max_values: Annotated[
        int | None, _flag("The most values that one list has.", _COLUMNS, "12")
    ] = None


@dataclass(frozen=True)
class WishFlags(Flags):
    """What is wished of rules beside the floor, and what is known of columns."""

    min_precision: Annotated[
        float | None, _flag("Of all alerts the part that must be right, 0 to 1.", _WISHES)
    ] = None
    min_rule_precision: Annotated[
        float | None, _flag("The same, for each rule by itself.", _WISHES)
    ] = None
    min_recall: Annotated[
        float | None, _flag("The part of all outliers to explain, 0 to 1.", _WISHES)
    ] = None
    max_alerts: Annotated[
        Any,
        _flag("The most rows that rules may call outliers: a number, or a share.", _WISHES,
              metavar="NUMBER", parser=share_or_number),
    ] = None  # fmt: skip
    max_rules: Annotated[int | None, _flag("The most rules.", _WISHES)] = None
    beta: Annotated[
        float | None, _flag("The floor is on F-beta: above 1 misses count more.", _WISHES, "1")
    ] = None
    one_sided: Annotated[
        bool | None,
        typer.Option("--one-sided", help="No clause has two bounds.", rich_help_panel=_WISHES,
                     show_default=False),
    ] = None  # fmt: skip
    direction: Annotated[
        list[str] | None, _flag("COLUMN=up, down or extreme (repeat).", _WISHES)
    ] = None
    cost: Annotated[
        list[str] | None, _flag("COLUMN=N: what it adds to the length (repeat).", _WISHES)
    ] = None
    never: Annotated[list[str] | None, _flag("A column no rule may use (repeat).", _WISHES)] = None
    group: Annotated[
        list[str] | None, _flag("COLUMN=NAME: a rule uses one of each (repeat).", _WISHES)
    ] = None
    columns: Annotated[
        Path | None, _flag("The same for many columns, in a TOML or JSON file.", _WISHES)
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """What was given, but for what is said of columns."""
        others = {"direction", "cost", "group", "never", "columns"}
        return {name: value for name, value in self.given.items() if name not in others}

    @property
    def of_columns(self) -> list[tuple[str, str, Any]]:
        """What is said of columns: the column, what it is about, and what is said."""
        parts: list[tuple[str, str, Any]] = [
            (column, what, _whole(value) if what == "cost" else value)
            for what in ("direction", "cost", "group")
            for column, value in _of_columns(what, getattr(self, what) or [])
        ]
        return parts + [(column, "never", True) for column in self.never or []]


def _of_columns(what: str, given: list[str]) -> list[tuple[str, str]]:
    """COLUMN=VALUE, each as two."""
    found = []
    for each in given:
        column, equals, value = each.rpartition("=")
        if not equals or not column:
            raise StairError(f"--{what} {each}; expected COLUMN={_AS[what]}")
        found.append((column, value))
    return found


_AS = {"direction": "up, as in --direction amount=up", "cost": "NUMBER, as in --cost country=3",
       "group": "NAME, as in --group city=place --group zip=place"}  # fmt: skip


def _whole(text: str) -> int | str:
    return int(text) if text.strip().isdecimal() else text


@dataclass(frozen=True)
class ColumnFlags(Flags):
    """What rules may speak of."""

    include: Annotated[list[str] | None, _flag("Use only this column (repeat).", _COLUMNS)] = None
    exclude: Annotated[list[str] | None, _flag("Leave this column out (repeat).", _COLUMNS)] = None
    time_parts: Annotated[
        bool,
        typer.Option(
            "--time-parts/--no-time-parts", rich_help_panel=_COLUMNS,
            help="Hour and weekday of times as attributes, or not.",
        ),
    ] = True  # fmt: skip
    time_zone: Annotated[
        str | None,
        _flag("The zone of hours and weekdays, as Europe/Berlin.", _COLUMNS, "the data's"),
    ] = None


@dataclass(frozen=True)
class KindFlags(Flags):
    """Of which kind columns are."""

    kind: Annotated[
        list[str] | None, _flag("COLUMN=number|category|time|text (repeat).", _COLUMNS)
    ] = None

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column."""
        return kinds(self.kind or [])


@dataclass(frozen=True)
class EngineFlags(Flags):
    """Where the rows are."""

    names: ClassVar[dict[str, str]] = {"scheduler": "client"}

    engine: Annotated[str, _flag("memory, duckdb, dask or cuda.", _LARGE, "memory")] = "memory"
    memory: Annotated[
        str | None, _flag("Keep within this, such as 1GB (duckdb; of the GPU: cuda).", _LARGE)
    ] = None
    scheduler: Annotated[str | None, _flag("A cluster, as tcp://host:8786 (dask).", _LARGE)] = None
    device: Annotated[int | None, _flag("The number of the GPU (cuda).", _LARGE, "0")] = None
    work: Annotated[
        Path | None, _flag("Folder to keep codes in (method stair; duckdb, dask).", _LARGE)
    ] = None
    bins: Annotated[int | None, _flag("The most bins of a column.", _LARGE, "1024")] = None
    sample: Annotated[
        int | None,
        _flag("Rows that methods other than stair learn from at once.", _LARGE, "100000"),
    ] = None


def in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose groups of flags are flags of their own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    expanded: list[inspect.Parameter] = []
    for name, each in inspect.signature(command).parameters.items():
        hint = hints[name]
        if not (isinstance(hint, type) and issubclass(hint, Flags)):
            expanded.append(each.replace(annotation=hint))
            continue
        group = groups[name] = hint
        own = get_type_hints(group, include_extras=True)
        expanded += [
            inspect.Parameter(
                flag.name, inspect.Parameter.KEYWORD_ONLY, annotation=own[flag.name],
                default=inspect.Parameter.empty if flag.default is MISSING else flag.default,
            )
            for flag in fields(groups[name])
        ]  # fmt: skip

    @wraps(command)
    def run(**given: object) -> None:
        made = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in expanded]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keywords}
    return run
