"""Rules in dbt, built for real: models label rows as the rules do, tests count what rules flag."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from databases import postgres_dsn
from environments import python_of
from stair.data import write_table
from stair.demo import payments
from stair.errors import StairError
from stair.export.dbt import MARK, to_dbt
from stair.rules.clauses import Among, Interval
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from target_trials import try_dbt

pytestmark = [pytest.mark.xdist_group("dbt")]


@pytest.mark.parametrize(("dialect", "n"), [("duckdb", 30), ("postgres", 10)])
def test_dbt_labels_and_counts_as_the_rules_do(
    dialect: str, n: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that are Jinja, quotes, NaN, NULL, infinities, partitions: one build for all cases."""
    if dialect == "postgres":
        postgres_dsn()
    trial = try_dbt(n, tmp_path, dialect)
    assert not trial.refused
    with capsys.disabled():
        print(f"\ndbt on {dialect}: {trial}")


def _rules() -> RuleSet:
    """Of the made-up payments: what one rule flags was right often, what the other flags seldom."""
    schema = Schema((Field("amount", "number", "amount"), Field("country", "category", "country")))
    rules = (
        Rule((Interval("amount", 4350.0), Among("country", ("DE", "FR", "NL"), True)), "outlier",
             (("outlier", 69.0), ("inlier", 5.0))),
        Rule((Interval("amount", 4900.0),), "outlier", (("outlier", 1.0), ("inlier", 200.0))),
    )  # fmt: skip
    return RuleSet(rules, ("inlier", "outlier"), schema, "inlier", (4778.0, 222.0), "outlier")


def _dbt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, as whoever has exported the folder types it."""
    command = [
        python_of("dbt").with_name("dbt"),
        *words,
        "--profiles-dir",
        "..",
        "--profile",
        "own",
    ]
    quiet = {**os.environ, "DO_NOT_TRACK": "1"}
    return subprocess.run(
        command, cwd=folder, env=quiet, capture_output=True, text=True, check=False
    )


def test_a_build_passes_and_fails_where_outliers_are_planted(tmp_path: Path) -> None:
    """With as many as there were it warns. With more it fails, and with more than a variable says;
    a model of the project can be read in place of the source."""
    python_of("dbt")
    (tmp_path / "profiles.yml").write_text(
        "own: {target: here, outputs: {here: {type: duckdb, path: ../bank.duckdb, threads: 1}}}\n"
    )
    to_dbt(_rules(), tmp_path / "rules", "payments")
    write_table(tmp_path / "payments.csv", payments())
    _filled(tmp_path, "CREATE TABLE payments AS FROM read_csv('payments.csv')")
    done = _dbt(tmp_path / "rules", "build")
    assert (done.returncode, "WARN=2 ERROR=0" in done.stdout) == (0, True), done.stdout
    assert "Got 74 results, configured to warn if >0" in done.stdout
    planted = "INSERT INTO payments BY NAME SELECT 9999 AS amount, 'US' AS country FROM range(3)"
    _filled(tmp_path, planted)
    (tmp_path / "rules" / "models" / "new_payments.sql").write_text(
        "SELECT * FROM {{ source('payments_rules', 'payments') }}"
    )
    given = json.dumps({"payments_rule_1_most": 75, "payments_model": "new_payments"})
    done = _dbt(tmp_path / "rules", "build", "--vars", given)
    assert (done.returncode, "ERROR=1" in done.stdout) == (1, True), done.stdout
    assert "Got 77 results, configured to fail if >75" in done.stdout


def _filled(folder: Path, statement: str) -> None:
    """In the database that dbt's own environment reads and writes."""
    text = f"import duckdb; duckdb.connect('bank.duckdb').execute({statement!r})"
    subprocess.run([python_of("dbt"), "-c", text], cwd=folder, check=True)


def test_the_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Into a new folder, an empty one, or over an earlier export; never among other files."""
    files = to_dbt(_rules(), tmp_path / "a", "payments")
    assert {
        str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*") if p.is_file()
    } == {*files}
    (tmp_path / "b").mkdir()
    to_dbt(_rules(), tmp_path / "b", "payments")
    (tmp_path / "b" / "target").mkdir()
    (tmp_path / "b" / "target" / "more").write_text("of dbt")
    fewer = replace(_rules(), rules=_rules().rules[:1])
    new = to_dbt(fewer, tmp_path / "b", "payments")
    assert all((tmp_path / "b" / name).read_text("utf-8") == text for name, text in new.items())
    assert (tmp_path / "b" / "target" / "more").is_file()

    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").write_text("mine")
    with pytest.raises(StairError, match="has other files in it; name a new one"):
        to_dbt(_rules(), tmp_path / "c")
    with pytest.raises(StairError, match="is a file; expected the name of a folder"):
        to_dbt(_rules(), tmp_path / "c" / "thesis.txt")
    with pytest.raises(StairError, match="there is no folder"):
        to_dbt(_rules(), tmp_path / "d" / "e")

    shutil.rmtree(tmp_path / "b" / "tests")
    (tmp_path / "b" / "tests").write_text("no folder")
    with pytest.raises(StairError, match=r'cannot write the folder ".*b": .*'):
        to_dbt(_rules(), tmp_path / "b", "payments")  # after the first files were moved
    for name, text in new.items():
        assert name.startswith("tests/") or (tmp_path / "b" / name).read_text("utf-8") == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_what_dbt_is_told() -> None:
    """Warnings for a rule that is seldom right, names of any table, and no name that dbt would
    quote wrongly."""
    files = to_dbt(_rules(), None, ("bank", "2 Payments (EU)"), "snowflake")
    text = files["models/t_2_payments_eu_labelled.yml"]
    assert files["dbt_project.yml"].startswith(MARK)
    assert 'schema: "bank"' in text and 'identifier: "2 Payments (EU)"' in text
    assert text.index("severity: error") < text.index("severity: warn")
    assert '"stair_rule" = {{ number }}' in files["tests/generic/t_2_payments_eu_rule.sql"]
    assert "data_tests" not in "".join(to_dbt(replace(_rules(), rules=())).values())
    with pytest.raises(StairError, match="dbt does not quote the name of the table 'a\"b' right"):
        to_dbt(_rules(), None, 'a"b')
    with pytest.raises(StairError, match="a table with 4 names"):
        to_dbt(_rules(), None, ("a", "b", "c", "d"))
