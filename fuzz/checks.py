"""What must hold of every table. Each check counts its comparisons and tells what it found."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import library, oracle, reasons, wishes
from fuzz.case import Case, Column, Table
from fuzz.containers import NoSuchTableError, built
from fuzz.result import Finding, Result, last_lines, origin, sentence_kind
from fuzz.targets import Target
from stair import StairError
from stair.learn.methods import method_of

# Containers that keep the type of every value; the others have to guess.
FAITHFUL = frozenset({"dict", "pandas", "polars", "arrow", "parquet", "duckdb"})
# What a user's table loses there: times are texts, flags are numbers.
LOSES_TYPES = frozenset({"sqlite"})
# Code that can refuse a column, and the sentences that say that its type cannot be meant.
CODE = frozenset({"python", "pandas", "polars", "onnx"})
OTHER_TYPE = ("make times of them first", "has times; read it", "when the rules were learned, but")
# Errors that are loud, but for want of memory or time.
UNBOUNDED = frozenset({"MemoryError", "QueryCanceled", "OutOfMemoryException"})
# PostgreSQL ends a query whose arithmetic leaves the range of doubles, as distances to partitions
# do near 1e308: nothing wrong comes out.
OVERFLOWS = frozenset({"NumericValueOutOfRange"})
ENDINGS = ("to_text", "to_html", "to_sentences", "to_markdown", "to_json")
DIALECTS = ("spark", "bigquery", "snowflake", "sqlserver", "mysql")


@dataclass(slots=True)
class Checker:
    """One case with all that is worked out about it."""

    case: Case
    folder: Path
    targets: dict[str, Target]
    only: str | None = None
    result: Result = field(default_factory=Result)

    def wants(self, check: str) -> bool:
        return self.only is None or self.only == check

    # --- one call of the library ------------------------------------------------------------------

    @contextmanager
    def guarded(self, check: str, target: str, *, loud_is_fine: bool = False) -> Iterator[None]:
        """Errors inside: sentences and loud errors are counted, anything else is a finding."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
        except NoSuchTableError:
            self.result.count(check, target, "no such table")
        except StairError as error:
            self.result.count(check, target, "refused")
            self._check_sentence(check, target, str(error))
        except Exception as error:
            name = type(error).__name__
            if name in OVERFLOWS or (loud_is_fine and name not in UNBOUNDED):
                self.result.count(check, target, "loud")
            else:
                self.result.found(
                    Finding(check, target, origin(error), "an error that is no sentence",
                            "an answer or one sentence", last_lines(error))
                )  # fmt: skip
        for warning in caught:
            if "/stair/" in warning.filename or warning.filename.startswith("<exported"):
                place = f"{Path(warning.filename).name}:{warning.lineno}"
                self.result.found(
                    Finding("quiet", target, f"{warning.category.__name__} at {place}",
                            f"a warning while: {check}", "none", str(warning.message)[:300])
                )  # fmt: skip

    def _check_sentence(self, check: str, target: str, text: str) -> None:
        self.result.tallies[f"said / {check} / {target}: {sentence_kind(text)}"] += 1
        if not text.strip() or "\n" in text or "Traceback" in text or "\x1b" in text:
            self.result.found(
                Finding("sentence", target, f"{check}: {sentence_kind(text)}",
                        "a refusal is one clear sentence", "one line", text[:600])
            )  # fmt: skip

    def compare(
        self, check: str, target: str, expected: Any, got: Any, story: str, kind: str = "differs"
    ) -> bool:
        """Count a comparison row by row, or as a whole."""
        same = _equal(expected, got)
        self.result.count(check, target, "compared")
        if not same:
            self.result.found(
                Finding(check, target, kind, f"{story}{_where(expected, got)}",
                        _shown(expected), _shown(got))
            )  # fmt: skip
        return same

    # --- the whole --------------------------------------------------------------------------------

    def run(self) -> Result:
        case = self.case
        try:
            data, reading = built(case.table, self.folder)
        except NoSuchTableError:
            self.result.count("drawn", case.table.container, "no such table")
            return self.result
        self.result.count("drawn", case.table.container, "tables")
        self.result.count("drawn", case.method, "method")
        self.result.count("drawn", case.verdict.kind, "verdict")
        summary: Any = None
        with self.guarded("learn", case.method):
            summary = library.learn(case, data, reading)
            self.result.count("learn", case.method, "learned")
        if summary is None:
            return self.result
        saved, document = self._saved(summary)
        if saved is None:
            return self.result
        self.result.digest = library.digest_of(document)
        if document["rules"]:
            self.result.count("learn", case.method, "with rules")
        if summary.kinds:
            self.result.count("learn", "several kinds", "with rules")
        for form in _forms(document):
            self.result.count("rules", form, "clauses")
        frame = library.read_frame(data, reading, saved)
        numbers = self._training(summary, saved, document, frame, data)
        self._figures(summary, document, frame)
        self._wishes(summary, document, frame)
        self._endings(summary, saved)
        if numbers is None:
            return self.result
        exported = self._exported(saved)
        names = list(frame.columns)
        seen = case.table if case.table.container in FAITHFUL else table_of(frame)
        seen = renamed(seen, names)
        answer = ([oracle.label_of(document, n) for n in numbers], numbers)
        for name, code in exported.items():
            self._labels(name, code, saved, document, seen, "training", answer)
        self._new_table(saved, document, exported, names)
        for extra in case.extras:
            check = _EXTRAS.get(extra)
            part = self.only is not None and self.only.startswith(f"{extra} ")
            if check is not None and (self.wants(extra) or part):
                check(self, summary, saved, document, frame, numbers)
        return self.result

    def _saved(self, summary: Any) -> tuple[Any, dict[str, Any]]:
        """Saved and loaded rules are the same rules, and save to the same file."""
        with self.guarded("saved", "json"):
            text = library.to_json(summary)
            saved = library.from_json(text)
            self.compare("saved", "json", text, library.to_json(saved), "saved again is otherwise")
            self.compare("saved", "rules", summary.rules, saved.rules, "loaded rules are others")
            return saved, library.document_of(saved)
        return None, {}

    def _training(
        self, summary: Any, saved: Any, document: dict[str, Any], frame: Any, data: Any
    ) -> list[int] | None:
        """predict = loaded rules = in batches = the oracle, on the table learned from."""
        found: list[int] | None = None
        with self.guarded("predict", "loaded"):
            found = library.apply(saved, frame)[1]
        if found is None:
            self.result.found(
                Finding("predict", "loaded", "refuses its own table",
                        "rules cannot be applied to the table that they were learned from")
            )  # fmt: skip
            return None
        with self.guarded("predict", "summary"):
            own = (summary.rules.assign(summary._values) + 1).tolist()
            rows = summary._rows.tolist()
            self.compare("predict", "summary", [found[r] for r in rows], own,
                         "predict while learning and of loaded rules differ")  # fmt: skip
        with self.guarded("predict", "batches"):
            size = max(1, frame.n_rows // 3)
            self.compare("predict", "batches", found,
                         library.apply_in_batches(saved, frame, size)[1],
                         "apply in batches of rows differs")  # fmt: skip
        with self.guarded("predict", "oracle"):
            columns, blame = self._plain(self.case.table, frame), _blame(document, self.case.table)
            second = self._oracle(document, columns, frame.n_rows)
            if second is not None:
                self.compare("predict", "oracle", second, found, f"another meaning ({blame})")
        with self.guarded("predict", "explain"):
            self._explain(summary, saved, found)
        with self.guarded("predict", "labels as given"):
            self._as_given(summary, document, data, found)
        return found

    def _as_given(
        self, summary: Any, document: dict[str, Any], data: Any, found: list[int]
    ) -> None:
        """predict speaks as the labels did, and the score on the same rows is the same."""
        verdict, case = self.case.verdict, self.case
        if len(set(case.table.names)) < len(case.table.columns):
            return
        said = [oracle.label_of(document, number) for number in found]
        if verdict.kind not in ("classes", "scores", "detector"):
            written = dict(zip(verdict.truth, verdict.values, strict=True))
            said = [written[label] for label in said]
        self.compare("predict", "labels as given", said, summary.predict(data).tolist(),
                     "predict does not speak as the labels did")  # fmt: skip
        if verdict.kind in ("scores", "detector"):
            return
        again = summary.score(data, list(verdict.values))
        again = min(again.values()) if summary.kinds else again
        self.compare("predict", "score again", float(summary.score), again,
                     "the score on the same rows is another")  # fmt: skip

    def _explain(self, summary: Any, saved: Any, found: list[int]) -> None:
        values = summary._values
        rows = summary._rows.tolist()
        numbers = summary.rules.assign(values)
        for place in sorted({0, len(rows) // 2, len(rows) - 1}):
            said = saved.rules.explain(summary._values.take(np.array([place])))
            self.compare("predict", "explain", found[rows[place]], said.number or 0,
                         "explain names another rule")  # fmt: skip
            str(said)
        for number in range(1, min(4, len(summary.rules) + 1)):
            first = [row for row, n in zip(rows, numbers.tolist(), strict=True) if n + 1 == number]
            matching = set(summary.matching_rows(number).tolist())
            self.compare("predict", "matching_rows", True, matching.issuperset(first),
                         "a row of a rule is not among those that match it")  # fmt: skip
        if self.case.table.container in FAITHFUL and self.case.table.container != "numpy":
            row = {c.name: c.values[rows[0]] for c in self.case.table.columns}
            if len(row) == len(self.case.table.columns):
                said = summary.explain(row)
                self.compare("predict", "explain a row", found[rows[0]], said.number or 0,
                             "explain of a row as a dict names another rule")  # fmt: skip

    def _plain(self, table: Table, frame: Any) -> dict[str, list[Any]]:
        """The columns as the oracle gets them: as they were drawn where nothing was guessed."""
        if table.container in FAITHFUL:
            drawn = zip(frame.columns, table.columns, strict=True)
            return {name: list(column.values) for name, column in drawn}
        return library.plain_columns(frame)

    def _oracle(self, document: dict[str, Any], columns: Any, n_rows: int) -> Any:
        try:
            return oracle.assigned(document, columns, n_rows)
        except oracle.RefusedError:
            return "refused"
        except oracle.UnsureError:
            return None

    def _figures(self, summary: Any, document: dict[str, Any], frame: Any) -> None:
        """Every figure of a summary, counted anew."""
        if not self.wants("figures"):
            return
        case = self.case
        with self.guarded("figures", case.method):
            truth, outlier, normal = self._truth(summary)
            columns = self._plain(case.table, frame)
            try:
                own = oracle.figures(document, columns, truth, outlier, normal)
            except (oracle.RefusedError, oracle.UnsureError):
                return
            evidence = [(e.rows, e.hits, e.alone) for e in summary.evidence]
            said = {
                "rows": summary.n_rows,
                "totals": [int(n) for n in summary.rules.totals],
                "score": summary.score,
                "unexplained": summary.unexplained,
                "evidence": evidence,
                "rest": (summary.rest.rows, summary.rest.hits),
                "total_length": summary.rules.total_length,
                "kinds": {str(k.label): (k.rows, k.score, k.reached) for k in summary.kinds},
            }
            for name, value in own.items():
                if name == "score":
                    same = math.isclose(value, said[name], rel_tol=1e-12, abs_tol=1e-12)
                    value = said[name] if same else value
                self.compare("figures", name, value, said[name], f"{name} is wrong")

    def _wishes(self, summary: Any, document: dict[str, Any], frame: Any) -> None:
        """What was wished is had or said not to be, and rules say nothing against what is known."""
        case = self.case
        if not case.wishes or not self.wants("wishes"):
            return
        with self.guarded("wishes", case.method):
            found = list(wishes.contradictions(document, case.wishes))
            self.compare("wishes", "columns", [], found, "rules contradict what is known")
            told = {each.name: (each.got, bool(each.is_met)) for each in summary.outcomes}
            named = {*case.wishes} - {"column_wishes", "one_sided", "beta", "min_score"}
            if case.verdict.kind == "classes" or case.method != "distilled":
                return
            if named - {"max_total_length"}:
                self.compare("wishes", "told", [], sorted(named - {*told}),
                             "nothing is said of a wish")  # fmt: skip
            truth, outlier, _ = self._truth(summary)
            try:
                own = wishes.recounted(
                    document, self._plain(case.table, frame), truth, outlier, case.wishes
                )
            except (oracle.RefusedError, oracle.UnsureError):
                return
            for name, (got, is_met) in told.items():
                near = own[name][0] == got or math.isclose(own[name][0], got, rel_tol=1e-12)
                self.compare("wishes", name, own[name],
                             (own[name][0] if near or got != got != own[name][0] else got, is_met),
                             f"{name} is wrong")  # fmt: skip
            if told:
                self.compare("wishes", "floor", all(m for _, m in told.values()),
                             bool(summary.floor_reached), "floor_reached is wrong")  # fmt: skip

    def _truth(self, summary: Any) -> tuple[Sequence[Any], Any, Any]:
        """The class of each row, that of the outliers, and what is normal; a detector's verdict is
        what it said."""
        truth, outlier, normal = self.case.verdict.meaning(self.case.method)
        if not truth:
            truth = tuple("outlier" if o else "inlier" for o in summary.is_outlier().tolist())
        return truth, outlier, normal

    def _reasons(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """What is said of each outlier is true of it, and of as many others."""
        del saved
        with self.guarded("reasons", self.case.method):
            columns = self._plain(self.case.table, frame)
            truth = self._truth(summary)[0]
            for name, expected, got in reasons.untrue(summary, document, columns, truth, numbers):
                self.compare("reasons", name, expected, got, f"a reason is not true: {name}")

    def _endings(self, summary: Any, saved: Any) -> None:
        """Texts and pages can be written, or are refused in one sentence."""
        if not self.wants("endings") or (self.only is None and self.case.number % 8):
            return
        for name in ENDINGS:
            with self.guarded("endings", name):
                getattr(summary, name)()
                self.result.count("endings", name, "written")
        with self.guarded("endings", "pmml"):
            saved.to_pmml()
            self.result.count("endings", "pmml", "written")
        for dialect in DIALECTS:
            with self.guarded("endings", dialect):
                saved.to_sql("data", dialect=dialect)
                self.result.count("endings", dialect, "written")

    # --- exports ----------------------------------------------------------------------------------

    def _exported(self, saved: Any) -> dict[str, Any]:
        found = {}
        names = {f.source for f in saved.fields}
        for name, target in self.targets.items():
            check = f"export {name}"
            whens = ("training", "new", "exceptions")
            if not (self.wants(check) or any(self.wants(f"{when} {name}") for when in whens)):
                continue
            with self.guarded(check, name):
                try:
                    found[name] = target.export(saved)
                except StairError as error:
                    if not any(_letters(n)[:20] in _letters(str(error)) for n in names) and not any(
                        word in str(error) for word in ("no column", "partition", "years 1 to")
                    ):
                        self.result.found(
                            Finding(check, name, f"unnamed: {sentence_kind(str(error))}",
                                    "a refusal names the column", "a name", str(error))
                        )  # fmt: skip
                    raise
        return found

    def _labels(
        self,
        name: str,
        exported: Any,
        saved: Any,
        document: dict[str, Any],
        table: Table,
        when: str,
        answer: Any = None,
    ) -> None:
        """An export's labels of a table, against the rules on what really is in it."""
        check = f"{when} {name}"
        if not self.wants(check):
            return
        got: Any = None
        expected: Any = None
        why = ""
        target = self.targets[name]
        blame = _blame(document, table)
        with ExitStack() as stack:
            try:
                native = stack.enter_context(target.table(table))
            except NoSuchTableError:
                self.result.count(check, name, "no such table")
                return
            with self.guarded(check, name, loud_is_fine=when == "new" or _needs_a_cast(blame)):
                got = target.run(exported, native)
            if got is None:
                return
            really = target.really(native)
            with self.guarded(f"{when} reference", name):
                try:
                    expected = library.apply(saved, library.read_frame(really, {}))
                except StairError as error:
                    expected, why = "refused", str(error)
        if expected is None:
            return
        if expected == "refused":
            self.result.count(check, name, "answers where the rules refuse")
            if name in CODE and any(words in why for words in OTHER_TYPE):
                self.result.found(
                    Finding(check, name, "answers where the rules refuse",
                            f"a column of a type that cannot be meant is labelled ({blame})",
                            why, _shown(got))
                )  # fmt: skip
            if when == "training" and name not in LOSES_TYPES:
                self.compare(check, name, answer, got, f"labels differ ({blame})")
            return
        self.compare(check, name, expected, got, f"labels differ ({blame})")
        if when == "training" and name not in LOSES_TYPES:
            self.compare("containers", name, answer, expected,
                         f"the rules read the same table otherwise ({blame})")  # fmt: skip

    def _new_table(
        self, saved: Any, document: dict[str, Any], exported: dict[str, Any], names: list[str]
    ) -> None:
        """The same on a table with other types and unseen values."""
        new = self.case.new
        if len(set(self.case.table.names)) < len(names):
            return
        try:
            data, reading = built(new, self.folder, "new")
        except NoSuchTableError:
            self.result.count("new", new.container, "no such table")
            return
        frame: Any = None
        with self.guarded("new read", new.container):
            frame = library.read_frame(data, reading, saved)
        if frame is None:
            return
        found: Any = "refused"
        if self.wants("new predict"):
            with self.guarded("new predict", "loaded"):
                try:
                    found = library.apply(saved, frame)[1]
                except StairError as error:
                    self._check_sentence("new predict", "loaded", str(error))
                columns = self._plain(new, frame)
                second = self._oracle(document, columns, frame.n_rows)
                typed = found == "refused" and any(
                    all(map(oracle.is_missing, values)) for values in columns.values()
                )  # a column without values may be refused by its type alone
                if second is not None and not typed:
                    self.compare("new predict", "oracle", second, found,
                                 f"another meaning ({_blame(document, new)})")  # fmt: skip
        seen = new if new.container in FAITHFUL else table_of(frame)
        for name, code in exported.items():
            self._labels(name, code, saved, document, renamed(seen, list(frame.columns)), "new")

    # --- the dearer checks ------------------------------------------------------------------------

    def _order(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """The same rules for the same rows in another order, and for another order of columns."""
        del summary, saved, frame, numbers
        case = self.case
        rng = np.random.default_rng([case.seed, case.number, 5])
        rows = rng.permutation(case.table.n_rows).tolist()
        columns = rng.permutation(len(case.table.columns)).tolist()
        tables = {"rows": case.table.take(rows)}
        if case.table.container != "numpy" and len(set(case.table.names)) == len(columns) > 1:
            tables["columns"] = replace(
                case.table, columns=tuple(case.table.columns[j] for j in columns)
            )
        if case.verdict.detector is not None:
            return
        for name, table in tables.items():
            if name == "rows" and case.method == "distilled":
                self.result.count("order", name, "distilled draws rows by place, as documented")
                continue
            verdict = case.verdict.take(rows) if name == "rows" else case.verdict
            with self.guarded("order", name):
                data, reading = built(table, self.folder, "order")
                other = library.learn(replace(case, table=table, verdict=verdict), data, reading)
                self.compare("order", name, library.digest_of(document),
                             library.digest_of(library.document_of(other)),
                             f"other rules for another order of {name}, method {case.method}",
                             case.method)  # fmt: skip

    def _containers(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """The rules say the same of the same rows in every container that keeps types."""
        del summary
        case = self.case
        if case.table.container not in FAITHFUL:
            return
        for container in sorted(FAITHFUL - {case.table.container}):
            with self.guarded("containers", container):
                table = renamed(replace(case.table, container=container), list(frame.columns))
                data, reading = built(table, self.folder, "other")
                other = library.read_frame(data, reading, saved)
                self.compare(
                    "containers", container, numbers, library.apply(saved, other)[1],
                    f"the same rows in {container} are labelled otherwise "
                    f"({_blame(document, case.table)})",
                )  # fmt: skip

    def _exceptions(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """Exceptions, and rules that are retired, mean the same everywhere."""
        del summary, document, numbers
        case = self.case
        rng = np.random.default_rng([case.seed, case.number, 9])
        changed = library.with_exceptions(saved, rng)
        if changed is None:
            return
        with self.guarded("exceptions", "loaded"):
            text = library.to_json(changed)
            again = library.from_json(text)
            self.compare("exceptions", "json", text, library.to_json(again), "saved otherwise")
            document = library.document_of(again)
            found = library.apply(again, frame)[1]
            size = max(1, frame.n_rows // 3)
            self.compare("exceptions", "batches", found,
                         library.apply_in_batches(again, frame, size)[1],
                         "apply in batches of rows differs")  # fmt: skip
            second = self._oracle(document, self._plain(case.table, frame), frame.n_rows)
            blame = _blame(document, case.table)
            if second is not None:
                self.compare("exceptions", "oracle", second, found, f"another meaning ({blame})")
            names = list(frame.columns)
            seen = case.table if case.table.container in FAITHFUL else table_of(frame)
            seen = renamed(seen, names)
            for name, code in self._exported(again).items():
                self._labels(name, code, again, document, seen, "exceptions")

    def _duckdb(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """The engine for large data gives the rules that memory gives."""
        del summary, saved, numbers
        case = self.case
        self._engine("duckdb", document, frame, case)

    def _dask(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        del summary, saved, numbers
        self._engine("dask", document, frame, self.case)

    def _command(
        self, summary: Any, saved: Any, document: Any, frame: Any, numbers: list[int]
    ) -> None:
        """`stair apply -o` labels a file as the rules do, and leaves its columns as they are."""
        del summary, frame, numbers
        new = replace(self.case.new, container="csv")
        data, reading = built(new, self.folder, "applied")
        try:
            labels = library.apply(saved, library.read_frame(data, reading, saved))[0]
        except StairError:
            return
        with self.guarded("command", "apply"):
            rows = library.applied_by_command(saved, data, self.folder)
            given = library.csv_rows(data)
            self.compare("command", "apply: labels", [str(v) for v in labels],
                         [row[-2] for row in rows[1:]], "stair apply labels otherwise")  # fmt: skip
            self.compare("command", "apply: columns", given, [row[:-2] for row in rows],
                         "stair apply rewrites the columns of the file")  # fmt: skip
        del document

    def _engine(self, engine: str, document: Any, frame: Any, case: Case) -> None:
        if case.verdict.kind not in ("0/1", "bool", "words", "+1/-1"):
            return
        if case.table.container not in FAITHFUL or any(v is None for v in case.verdict.truth):
            return
        words = {"inlier": "inlier", "outlier": "outlier"}
        flag = Column("the verdict", "text", tuple(words[t] for t in case.verdict.truth), form=2)
        table = renamed(replace(case.table, container="parquet"), list(frame.columns))
        table = replace(table, columns=(*table.columns, flag))
        with self.guarded("engine", engine):
            data, reading = built(table, self.folder, "large")
            given: Any = data
            if engine == "dask":
                import dask.dataframe as dd

                given = dd.read_parquet(data)
            # Of long lists the engine names other values: it does not know the classes yet.
            method = method_of("stair", time_windows=case.time_windows, max_values=1000)
            options = {"labels": "the verdict", "method": method, "scores": None}
            large = library.learn(case, given, reading, engine=engine, **options)
            small = library.learn(case, data, reading, **options)
            self.compare("engine", engine, library.digest_of(library.document_of(small)),
                         library.digest_of(library.document_of(large)),
                         f"engine {engine} gives other rules than memory")  # fmt: skip
            self.compare("engine", f"{engine} score", small.score, large.score,
                         f"engine {engine} gives another score")  # fmt: skip
        del document


_EXTRAS: dict[str, Callable[..., None]] = {
    "exceptions": Checker._exceptions,
    "reasons": Checker._reasons,
    "order": Checker._order,
    "containers": Checker._containers,
    "duckdb": Checker._duckdb,
    "dask": Checker._dask,
    "command": Checker._command,
}


# --- small things ---------------------------------------------------------------------------------


def table_of(frame: Any) -> Table:
    """A frame that was read as plain columns, whose types are those that were guessed."""
    columns = []
    for name, array in frame.columns.items():
        was = frame.types.get(name, "").split(" ")[0]
        values = library.plain_values(array, was)
        kind = (
            was
            if was in ("zoned", "duration", "clock")
            else {"f": "real", "i": "whole", "u": "whole", "b": "flag", "M": "naive"}.get(
                array.dtype.kind, ""
            )
        )
        if not kind:
            seen = {type(v) for v in values if v is not None}
            kind = {frozenset({bool}): "flag", frozenset({int}): "whole"}.get(
                frozenset(seen), "text" if seen <= {str} else "mixed"
            )
        columns.append(Column(name, kind, tuple(values)))
    return Table(tuple(columns), "dict")


def renamed(table: Table, names: Sequence[str]) -> Table:
    """The table with the names that the library gave to its columns."""
    columns = zip(table.columns, names, strict=True)
    return replace(table, columns=tuple(replace(c, name=name) for c, name in columns))


def _blame(document: dict[str, Any], table: Table) -> str:
    """The fields that the rules need, with what is in the table for them."""
    used = oracle.needed(document)
    types = {column.name: column.type for column in table.columns}
    said = []
    for f in document["fields"]:
        if f["name"] in used:
            source = f.get("source", f["name"])
            learned = oracle.type_of(f, document) or "?"
            part = f".{f['part']}" if f.get("part") else ""
            said.append(f"{f['kind']}{part} {learned} from {types.get(source)}")
    return ", ".join(sorted(set(said)))


def _forms(document: dict[str, Any]) -> Iterator[str]:
    """What each clause asks of a column: a network, an hour in a zone, a number by name, and so
    on."""
    fields = {f["name"]: f for f in document["fields"]}
    for rule in document["rules"]:
        for clause in rule["clauses"]:
            field = fields[clause["feature"]]
            zone = " in a zone" if field.get("zone") and field.get("part") else ""
            named = " by name" if field["kind"] == "number" and {"in", "not in"} & {*clause} else ""
            part = "network" if clause.get("networks_of") else field.get("part")
            yield f"{part or field['kind']}{zone}{named}"


def _needs_a_cast(blame: str) -> bool:
    """Whether stair reads a column as something that a database would not: times and numbers that
    are text there, numbers that are true and false, text that is numbers. It says so by an
    error."""
    parts = [part.split(" from ") for part in blame.split(", ") if " from " in part]
    return any(
        ((what.startswith("time") or ("." in what and "./" not in what)) and was == "text")
        or (what.startswith("number") and was in ("text", "flag", "mixed"))
        or (what.startswith("text") and was != "text")
        for what, was in parts
    )  # fmt: skip


def _letters(text: str) -> str:
    """A name, whatever a sentence did to its other characters."""
    text = text.replace("\\n", "").replace("\\t", "").replace("\\x1b", "")
    return "".join(c for c in text if c.isascii() and c.isalnum())


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, tuple) and isinstance(got, tuple):
        return len(expected) == len(got) and all(map(_equal, expected, got))
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(_equal, expected, got))
    if isinstance(expected, float) and isinstance(got, float) and expected != expected:
        return got != got
    return bool(expected == got)


def _where(expected: Any, got: Any) -> str:
    """How many rows differ, and which is the first."""
    if isinstance(expected, tuple) and isinstance(got, tuple) and len(expected) == 2:
        expected, got = expected[1], got[1]
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        rows = [k for k, pair in enumerate(zip(expected, got, strict=True)) if not _equal(*pair)]
        if rows:
            return f": {len(rows)} of {len(expected)} rows, the first is {rows[0]}"
    return ""


def _shown(value: Any, most: int = 1500) -> Any:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}…"
