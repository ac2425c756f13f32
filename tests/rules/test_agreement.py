"""Rules on new rows: the labels that they give, and how well these agree with the truth."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score
from typer.testing import CliRunner

import stair
from stair import cli
from stair.data import write_table
from stair.export import load
from stair.verdict.labels import read_labels


def rows(n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two planted kinds of outlier, a few of each without reason."""
    random = np.random.default_rng(seed)
    x, z = random.normal(size=n), random.normal(size=n)
    kind = np.where(x > 1.4, 1, np.where(z < -1.4, 2, 0))
    kind = np.where(random.random(n) < 0.02, 1, kind)
    return {"x": x, "z": z}, kind


OLD, WAS = rows(900, 0)
NEW, IS = rows(700, 1)
CODINGS: list[tuple[Any, Any]] = [
    (0, 1), (1, -1), ("ok", "fraud"), (False, True), (0.0, 1.0), ("0", "1"), ("a", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("inlier", "outlier"), CODINGS, ids=str)
def test_labels_come_back_as_they_were_given(inlier: Any, outlier: Any) -> None:
    """ "fraud" in, "fraud" out; and the score is that of these labels."""
    labels = np.where(WAS == 1, outlier, inlier)
    truth = np.where(IS == 1, outlier, inlier)
    positive = "b" if outlier == "b" else None
    summary = stair.summarize(
        OLD, labels, positive=positive, validate=0, method=stair.DistilledStair(effort="fast")
    )
    predicted = summary.predict(NEW)
    assert set(predicted.tolist()) == {inlier, outlier}
    assert predicted.dtype.kind == np.array([inlier, outlier]).dtype.kind or inlier == 0.0
    expected = f1_score(truth == outlier, predicted == outlier)
    assert summary.score(NEW, truth) == pytest.approx(expected)
    assert summary.score(OLD, labels) == pytest.approx(summary.score)
    assert summary.score({**NEW, "truth": truth}, "truth") == pytest.approx(expected)
    again = pickle.loads(pickle.dumps(summary.score))
    assert again == summary.score


def test_rows_of_any_form_get_the_same_labels(tmp_path: Path) -> None:
    """Also an array that has a column which was left out in learning."""
    X = np.column_stack([OLD["x"], np.ones(900), OLD["z"]])
    summary = stair.summarize(
        X, (WAS == 1).astype(int), validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert summary.left_out
    new = np.column_stack([NEW["x"], np.ones(700), NEW["z"]])
    predicted = summary.predict(new)
    frame = pd.DataFrame(new, columns=["x0", "x1", "x2"])
    np.testing.assert_array_equal(summary.predict(frame), predicted)
    np.testing.assert_array_equal(summary.predict(new.tolist()), predicted)
    np.testing.assert_array_equal(summary.predict(new[:, [0, 2]]), predicted)
    write_table(tmp_path / "new.csv", dict(frame))
    np.testing.assert_array_equal(summary.predict(tmp_path / "new.csv"), predicted)
    with pytest.raises(stair.StairError, match="y has 3 values, but there are 700 rows"):
        summary.score(new, [0, 1, 0])


def test_kinds_are_scored_one_by_one() -> None:
    """A kind that came later is none of those that were learned, and no error."""
    names = np.array(["fine", "scan", "worm", "new"], dtype=object)
    summary = stair.summarize(
        OLD, names[WAS], validate=0, min_score=0.7, method=stair.DistilledStair(effort="fast")
    )
    predicted = summary.predict(NEW)
    assert set(predicted) <= {"fine", "scan", "worm"}
    truth = names[IS]
    truth[:5] = "new"
    scores = summary.score(NEW, truth)
    assert isinstance(scores, dict)
    assert set(scores) == {"scan", "worm"}
    for name, score in scores.items():
        assert score == pytest.approx(f1_score(truth == name, predicted == name))
    accurate = stair.summarize(
        OLD,
        names[WAS],
        positive=stair.AllBut(),
        validate=0,
        method=stair.DistilledStair(effort="fast"),
    )
    assert accurate.score(NEW, names[IS]) == pytest.approx(
        (accurate.predict(NEW) == names[IS]).mean()
    )


def test_one_of_many_values_against_the_others() -> None:
    """Neither side is one value, so labels are outlier and inlier; other values are inliers, or
    with `negative` outliers."""
    names = np.array(["fine", "scan", "worm", "new"], dtype=object)
    one = stair.summarize(
        OLD, names[WAS], positive="scan", validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert set(one.predict(NEW)) == {"inlier", "outlier"}
    is_outlier = one.predict(NEW) == "outlier"
    assert one.score(NEW, names[IS]) == pytest.approx(f1_score(IS == 1, is_outlier))
    truth = names[IS]
    truth[IS == 2] = "new"
    assert one.score(NEW, truth) == one.score(NEW, names[IS])
    every = stair.summarize(
        OLD, names[WAS], positive=stair.AllBut("fine"), method="stair", validate=0
    )
    is_outlier = every.predict(NEW) == "outlier"
    assert every.score(NEW, truth) == pytest.approx(f1_score(IS > 0, is_outlier))


def test_labels_of_other_values_are_refused() -> None:
    summary = stair.summarize(OLD, WAS == 1, validate=0, method=stair.DistilledStair(effort="fast"))
    with pytest.raises(stair.StairError, match='has the value "even", but the rules were learned'):
        summary.score(NEW, np.where(IS == 1, "odd", "even"))
    assert summary.score(NEW, (IS == 1).astype(int)) == summary.score(NEW, IS == 1)
    missing = np.where(IS == 1, 1.0, 0.0)
    missing[:100] = np.nan
    expected = summary.score({k: v[100:] for k, v in NEW.items()}, IS[100:] == 1)
    assert summary.score(NEW, missing) == expected


@given(st.lists(st.sampled_from(["ok", "Fraud", "1", "x", None]), min_size=3, max_size=30))
def test_a_codebook_reads_labels_as_they_were_read(values: list[str | None]) -> None:
    """The same labels, and the same labels in another order, get the same classes again."""
    if len({v for v in values if v is not None}) < 2:
        return
    labels = read_labels(values)
    assert labels.codebook is not None
    np.testing.assert_array_equal(labels.codebook.codes(values, "y"), labels.codes)
    np.testing.assert_array_equal(labels.codebook.codes(values[::-1], "y"), labels.codes[::-1])


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_every_engine_gives_labels_back(engine: str, tmp_path: Path) -> None:
    write_table(
        tmp_path / "old.csv", {**OLD, "y": np.where(WAS == 1, "bad", "good").astype(object)}
    )
    summary = stair.summarize(
        tmp_path / "old.csv", "y", engine=engine, method=stair.DistilledStair(effort="fast")
    )
    assert set(summary.predict(NEW)) == {"bad", "good"}
    assert summary.score(tmp_path / "old.csv", "y") == pytest.approx(summary.score)
    predicted, truth = summary.predict(OLD) == "bad", WAS == 1
    assert summary.precision == pytest.approx(precision_score(truth, predicted))
    assert summary.recall == pytest.approx(recall_score(truth, predicted))


# --- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules about one kind, rules about two, and new rows with the truth."""
    folder = tmp_path_factory.mktemp("agreement")
    names = np.array(["fine", "scan", "worm"], dtype=object)
    method = stair.DistilledStair(effort="fast", min_score=0.7)
    options: dict[str, Any] = {"method": method, "validate": 0}
    stair.summarize(OLD, (WAS == 1).astype(int), **options).to_json(folder / "one.json")
    stair.summarize(OLD, names[WAS], **options).to_json(folder / "kinds.json")
    stair.summarize(OLD, names[WAS], positive=stair.AllBut(), **options).to_json(
        folder / "all.json"
    )
    word = np.where(IS == 1, "odd", "even").astype(object)
    truth = {"flagged": (IS == 1).astype(int), "kind": names[IS], "word": word}
    write_table(folder / "new.csv", {**NEW, **truth})
    return folder


def _apply(folder: Path, *words: str) -> str:
    paths = [str(folder / word) if word.endswith((".json", ".csv")) else word for word in words]
    done = CliRunner().invoke(cli.app, ["apply", *paths])
    assert done.exit_code in (0, 2)
    return done.output


def test_apply_says_how_the_rules_do_beside_the_truth(folder: Path) -> None:
    """All rules together and each, when learned and now."""
    saved = load(folder / "one.json")
    said = _apply(folder, "one.json", "new.csv", "--label", "flagged")
    predicted, truth = saved.rules.predict(NEW) == "outlier", IS == 1
    now = [score(truth, predicted) for score in (precision_score, recall_score, f1_score)]
    facts = saved.facts
    then = [facts["precision"], facts["recall"], facts["score"]]
    figures = "  ".join(f"{a:.2f} → {b:.2f}" for a, b in zip(then, now, strict=True))
    line = next(line for line in said.splitlines() if "all rules: outlier" in line)
    assert line.split("outlier")[1].split() == figures.split()
    rule = saved.rules[0]
    covered = rule.covers(NEW)
    line = next(line for line in said.splitlines()[8:] if line.startswith(" 1  "))
    assert f"{rule.precision:.2f} → {precision_score(truth, covered):.2f}" in line
    assert "Share of rows that each rule covers" in said


def test_apply_tells_kinds_apart(folder: Path) -> None:
    said = _apply(folder, "kinds.json", "new.csv", "--label", "kind")
    saved = load(folder / "kinds.json")
    predicted = saved.rules.predict(NEW)
    names = np.array(["fine", "scan", "worm"])[IS]
    learned = {kind["label"]: kind["score"] for kind in saved.facts["kinds"]}
    for name in ("scan", "worm"):
        line = next(line for line in said.splitlines() if f"all rules: {name}" in line)
        now = f1_score(names == name, predicted == name)
        assert line.endswith(f"{learned[name]:.2f} → {now:.2f}")
    said = _apply(folder, "all.json", "new.csv", "--label", "kind")
    found = re.search(r"Accuracy of all rules together: (\S+) → (\S+)\.", said)
    assert found
    saved = load(folder / "all.json")
    assert float(found[1]) == pytest.approx(saved.facts["score"], abs=0.005)
    assert float(found[2]) == pytest.approx((saved.rules.predict(NEW) == names).mean(), abs=0.005)


def test_apply_reads_other_labels_where_somebody_says_how(folder: Path) -> None:
    same = _apply(folder, "one.json", "new.csv", "--label", "flagged")
    refused = _apply(folder, "one.json", "new.csv", "--label", "word")
    assert "say which value is the outlier with --positive" in refused
    for words in (["--positive", "odd"], ["--negative", "even"]):
        said = _apply(folder, "one.json", "new.csv", "--label", "word", *words)
        assert said.replace("word", "flagged").split() == same.split()
    several = _apply(folder, "one.json", "new.csv", "--label", "kind", "--positive", "scan")
    assert several.replace("kind", "flagged").split() == same.split()
    said = _apply(folder, "kinds.json", "new.csv", "--label", "kind", "--positive", "scan")
    assert "--positive and --negative are for rules about one kind of outlier" in said
    assert "name them with --label" in _apply(folder, "one.json", "new.csv", "--positive", "1")
    assert 'no column "flaged"' in _apply(folder, "one.json", "new.csv", "--label", "flaged")


def test_rules_of_an_older_stair_are_judged_as_well(folder: Path, tmp_path: Path) -> None:
    """Their files do not say which values mean what, nor how all rules together did."""
    document = json.loads((folder / "one.json").read_text("utf-8"))
    for name in ("label_values", "other_values", "precision", "recall"):
        del document["facts"][name]
    (tmp_path / "old.json").write_text(json.dumps(document), encoding="utf-8")
    assert load(tmp_path / "old.json").codebook is None
    said = _apply(folder, "one.json", "new.csv", "--label", "flagged")
    old = (
        CliRunner()
        .invoke(
            cli.app,
            ["apply", str(tmp_path / "old.json"), str(folder / "new.csv"), "--label", "flagged"],
        )
        .output
    )
    assert "– → " in old
    assert old.count("→") == said.count("→")
