"""`python -m benchmarks.readme` puts the committed results into README.md and docs/benchmarks.md.

With --check nothing is written; the exit code is 1 if a document is out of date.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.contenders import LIGHTGBM, SKLEARN
from benchmarks.gpu_page import render as on_gpu
from benchmarks.report import render

ROOT = Path(__file__).resolve().parents[1]
FIT = Path("benchmarks/results/fit.json")
Q1 = Path("experiments/results/q1.csv")
REVIEW = Path("benchmarks/results/review.csv")
GPU = Path("benchmarks/results/gpu.json")
IN_TOOLS = Path("benchmarks/results/tools.json")
LIMITED_API = Path("benchmarks/results/limited_api.json")
SIZES = Path("benchmarks/results/sizes.json")
PEERS = Path("experiments/results/distilled.csv")
IGUANAS = Path("experiments/results/iguanas.json")
# What is shown of them, and the column that is what you get without asking.
OF_Q1 = ("STAIR", "refined", "distilled")
OF_PAPER = {"STAIR": "paper STAIR", "L-STAIR": "paper L-STAIR"}
OF_PEERS = ("best peer tree", "best peer outlier rules", "distilled min_outliers=1")
SHOWN = (
    "data", "paper STAIR", "paper L-STAIR", "STAIR", "refined", "best peer tree",
    "best peer outlier rules", "Iguanas", "distilled", "distilled min_outliers=1",
)  # fmt: skip
DEFAULT = "distilled"
ABOUT_LENGTHS = """\
The total length of the rules, that is the attributes in all of them, that explain the verdict of
LOF with F1 above 0.8 on the data of the paper *Interpretable Outlier Summarization*; its STAIR and
L-STAIR are here too ([what its figures mean](paper.md)). Rules of STAIR, refined or not, and
of trees are disjoint and describe the inliers as well; distilled rules may overlap, and everything
else is an inlier. Peers are the shortest of other libraries' trees, and of those that learn outlier
rules alone, above that F1. Iguanas has a column of its own: the shortest of as many of
[its settings](../experiments/with_iguanas.py), drawn by chance, as are done in some seconds of a
processor, of which more may find shorter ones; "none" where no rules of those that were tried are
above that F1, a dash where it was not measured."""


WISHES = Path("benchmarks/results/wishes.json")
ABOUT_BUDGET = """\
Mammography with its true labels, at most 5% of rows alerted: three stratified folds with three
seeds, figures of the rows kept aside. Iguanas has the settings of its own benchmark, as they are
now and as they were; beside that, its settings and those of distilled rules are chosen inside the
training folds, by F1, by F2 (a missed outlier counts more than a false alert) or by recall.
Distilled rules have one bound for each clause, so that a clause is a condition."""
ABOUT_WISHES = """\
LOF labels, with little effort. A dash is a wish that was not had. skope-rules are those of imodels,
whose setting is the precision of each rule. RIPPER (wittgenstein) has a setting for the number of
conditions, here 10, and none for precision or alerts: what its rules explain stands where they
keep to the budget by themselves."""
FLOOR = 0.8
ABOUT_PEERS = """\
The figures are attributes in all rules together that explain LOF's verdict with F1 above 0.8 on
three of the paper's sets; a score stands where that was not reached, a dash where it was not
measured or there are no rules. Trees and RIPPER have their libraries' settings, Iguanas the best of
those tried in a minute; a tree describes the inliers too."""


def replaced(text: str, mark: str, body: str) -> str:
    """The text with this body between the two marks, each of which must be there once."""
    opening, closing = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, begin, rest = text.partition(opening)
    _, end, after = rest.partition(closing)
    if not begin or not end or opening in rest or closing in before or closing in after:
        raise ValueError(f"expected one {opening} and, after it, one {closing}")
    inside = f"\n\n{body.strip()}\n\n" if body.strip() else "\n"
    return f"{before}{opening}{inside}{closing}{after}"


def lengths(q1: Path, peers: Path, iguanas: Path) -> str:
    """Total rule length on the paper's data: what `stair reproduce q1` wrote, beside peers.

    Nothing where it was not measured yet.
    """
    if not q1.is_file():
        return ""
    found: dict[str, dict[str, str]] = {}
    for row in _rows(q1, ("data", "method", "length", "paper length", "status")):
        if row["status"] != "run":
            continue
        line = found.setdefault(row["data"], {"data": row["data"]})
        if row["method"] in OF_Q1:
            line[row["method"]] = row["length"]
        if row["method"] in OF_PAPER:
            line[OF_PAPER[row["method"]]] = row["paper length"]
    for row in _rows(peers, ("data", *OF_PEERS)):
        if row["data"] in found:
            found[row["data"]] |= {name: row[name] for name in OF_PEERS}
    told = _by_iguanas(iguanas)
    for name, line in found.items():
        line["Iguanas"] = _shortest(told, name)
    if any(name not in line for line in found.values() for name in SHOWN):
        raise ValueError(f"{q1.name} and {peers.name} do not have all of {', '.join(SHOWN)}")
    marked = {name: "**{}**" if name == DEFAULT else "{}" for name in SHOWN}
    ordered = sorted(found.values(), key=lambda line: int(line["paper L-STAIR"]))
    shown = [[marked[name].format(line[name]) for name in SHOWN] for line in ordered]
    lines = [SHOWN, ["---", *["---:"] * (len(SHOWN) - 1)], *shown]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    tried = _tried(told, [line["data"] for line in ordered])
    return f"{ABOUT_LENGTHS}\n\n{table}{tried}"


def _by_iguanas(path: Path) -> dict[str, Any]:
    """What `experiments.with_iguanas` wrote; no sets where it was not measured yet."""
    if not path.is_file():
        return {}
    sets: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["sets"]
    return sets


def _shortest(iguanas: dict[str, Any], name: str) -> str:
    """The length of Iguanas' shortest rules above the floor; a dash where it was not measured."""
    tried = iguanas.get(name)
    if tried is None:
        return "–"
    return str(tried["found"]["length"]) if tried["found"] else "none"


def _tried(iguanas: dict[str, Any], names: Iterable[str]) -> str:
    """How long Iguanas had for each set, and how many settings that was."""
    if not iguanas:
        return ""
    parts = [
        f"{name} {iguanas[name]['tried']:,} in {iguanas[name]['seconds']:.0f} s"
        for name in names
        if name in iguanas
    ]
    told = f"\n\nSettings of Iguanas that were tried: {', '.join(parts)}."
    others = {
        name: iguanas[name]["settings"] for name in names if "settings" in iguanas.get(name, {})
    }
    for settings in dict.fromkeys(others.values()):
        of = [name for name, own in others.items() if own == settings]
        told += f" Those for {', '.join(of[:-1])}{' and ' * (len(of) > 1)}{of[-1]} are {settings}."
    return told


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    if not rows or any(row.get(name) is None for row in rows for name in columns):
        raise ValueError(f"{path.name} is not a table with {', '.join(columns)}")
    return rows


# What each is for; the name by which it is measured, where it is. Rules can be as long as they like
# where there are none.
OTHERS = (
    ("**stair**", "distilled", "short rules for all outliers, to be read, judged and run as SQL",
     "somebody has to act on outliers, whoever found them"),
    ("CART, `export_text`", "CART", "a tree whose leaves describe every row, the inliers too",
     "you want to predict, in milliseconds, and nobody reads all leaves"),
    ("RIPPER (wittgenstein)", "RIPPER", "a list of rules for one class, grown and pruned",
     "rules are the classifier and its own idea of when to stop is fine"),
    ("skope-rules", None, "rules of many trees above a precision, with their recall",
     "you want a large pool of precise rules to choose from by hand"),
    ("Iguanas", None, "rules for fraud under a budget of alerts, combined and monitored",
     "true labels are there, columns are numbers, and alerts cost money; nearest to this"),
    ("SHAP", None, "what each attribute adds to the score of one row",
     "one row or one model is in question, not a group; no rule is claimed"),
    ("PyOD's explainers", None, "the attributes that made a row stand out, for some detectors",
     "you are inside one detector and want it in its own terms"),
)  # fmt: skip
MEASURED = ("PageBlock", "Pendigits", "SpamBase")


def peers(q1: Path, iguanas: Path) -> str:
    """Other ways to understand outliers: what they are for, and how long where measured."""
    told = _by_iguanas(iguanas)
    found = {(row["data"], row["method"]): row for row in _rows(q1, ("length", "score"))}
    lines = [
        ["", "what you get", "take it when", *MEASURED],
        ["---"] * 3 + ["---:"] * len(MEASURED),
    ]
    for name, method, gives, when in OTHERS:
        cells = []
        for data in MEASURED:
            if name == "Iguanas":
                cells.append(_shortest(told, data))
                continue
            row = found.get((data, method or ""))
            low = row and float(row["score"] or 0) <= FLOOR
            score = f" (F1 {float(row['score']):.2f})" if row and low else ""
            cells.append(f"{row['length']}{score}" if row and row["length"] else "–")
        lines.append([name, gives, when, *cells])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{ABOUT_PEERS}"


def speed(results: dict[str, Any]) -> str:
    """How Stair's fit time compares, in a sentence."""
    parts = []
    for name, rival in ((SKLEARN, "scikit-learn's tree"), (LIGHTGBM, "LightGBM's")):
        ratios = [row["ratio"][name] for row in results["fit"] if row["ratio"].get(name)]
        if ratios:
            parts.append(f"{min(ratios):.2f} to {max(ratios):.2f} of the time of {rival}")
    biggest = max(results["fit"], key=lambda row: row["rows"] * row["attributes"])
    return (
        f"On {len(results['fit'])} sets, up to {biggest['rows']:,} rows × "
        f"{biggest['attributes']}, `Stair` takes {' and '.join(parts)} for as many leaves."
    )


def large_reviews(path: Path) -> str:
    """The review page on a million rows. Nothing where it was not measured yet."""
    if not path.is_file():
        return ""
    rows = _rows(path, ("method", "slowest page ms"))
    names = [name for name in rows[0] if name not in ("rows", "columns")]
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *([r[n] for n in names] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wishes(root: Path) -> str:
    """What wishes cost, and what they are beside peers. What was not measured yet is left out."""
    results, parts = root / "experiments" / "results", []
    if (results / "budget.md").is_file():
        parts += [ABOUT_BUDGET, (results / "budget.md").read_text(encoding="utf-8").strip()]
        parts.append(_beside(json.loads((results / "budget.json").read_text(encoding="utf-8"))))
    if (results / "wishes.md").is_file():
        parts += [ABOUT_WISHES, (results / "wishes.md").read_text(encoding="utf-8").strip()]
    if (root / WISHES).is_file():
        seconds = json.loads((root / WISHES).read_text(encoding="utf-8"))
        parts.append(
            f"On {seconds['rows']:,} × {seconds['columns']} values, distilled rules with three "
            f"wishes take {seconds['ratio']:.2f} of the processors' time of those with none."
        )
    return "\n\n".join(parts)


def _beside(budget: dict[str, Any]) -> str:
    """Which of our rules find as much as Iguanas' with as few false alerts, and with which not."""
    found = []
    for setting, theirs in budget["summary"]["Iguanas 1.5"].items():
        ours = [
            name
            for name, own in budget["summary"]["distilled"].items()
            if own["recall"] >= theirs["recall"] and own["precision"] >= theirs["precision"]
        ]
        found.append(f"{setting}: {', '.join(ours) or 'none'}")
    return (
        "Distilled rules with recall and precision both at least those of Iguanas, for each of its "
        f"settings: {'; '.join(found)}."
    )


NAMES = {"dbt": "dbt", "great_expectations": "Great Expectations", "soda": "Soda",
         "sigma": "Sigma", "spark": "SQL in Spark"}  # fmt: skip


def in_tools(path: Path) -> str:
    """What tools did with rules. Nothing where it was not tried yet."""
    if not path.is_file():
        return ""
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = [["tool", "versions", "run in", "rule sets run", "checks", "refused"],
             ["---", "---", "---", "---:", "---:", "---:"]]  # fmt: skip
    for tool, name in NAMES.items():
        versions = ", ".join(f"{k} {v}" for k, v in found.get(tool, {}).get("versions", {}).items())
        for trial in found.get(tool, {}).get("trials", ()):
            counts = trial["run"], trial["checks"], sum(trial["refused"].values())
            lines.append([name, versions, trial["in"], *(f"{n:,}" for n in counts)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{ABOUT_TOOLS}\n\n{table}"


ABOUT_TOOLS = """\
Generated rule sets with hostile names, quotes, NULL, NaN, infinities, empty strings, cases of
letters, categories, times with zones, texts, exceptions, partitions and several kinds of outlier,
each run by the tool itself (`python -m benchmarks.tools`): in all of them the rows that it found
were those that the rules flag. The others were refused in a sentence that says which rule cannot be
written, and why, or that no rule flags anything. A check is a test, an expectation, a detection or
a query."""


def release(sizes: dict[str, Any], limited_api: dict[str, Any]) -> str:
    """What a release weighs, and what it costs that one wheel serves all versions of Python."""
    installed: dict[str, int] = sizes["installed"]
    whole = sum(installed.values()) + sizes["installed beside them"]
    heaviest = list(installed)[:3]
    of_them = " and ".join((", ".join(heaviest[:2]), heaviest[2]))
    settings = limited_api["settings"]
    lines = [
        f"The wheel has {_megabytes(sizes['wheel'])} ({sizes['system']}), the archive of sources "
        f"{_megabytes(sizes['sources'])}. Installed, without extras, stair has "
        f"{_megabytes(installed['stair'])} and all that it needs {_megabytes(whole)}, of which "
        f"{of_them} are {sum(installed[name] for name in heaviest) / whole:.0%}. This site has "
        f"{sizes['pages']} pages and {_megabytes(sizes['site'])}, with pictures, search and code.",
        "",
        "One wheel for each platform serves CPython 3.11 and all later ones, because the compiled "
        "kernels keep to the part of Python's C interface that stays. What that costs: processor "
        "time with this part alone over that with the whole interface, two builds in turn, "
        f"medians of {settings['rounds']} (Python {settings['python']}, "
        f"Cython {settings['cython']}).",
        "",
        "| work | ratio |",
        "| --- | ---: |",
        *(f"| {name} | {each['ratio']:.2f} |" for name, each in limited_api["work"].items()),
    ]
    return "\n".join(lines)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e7 else f"{size / 1e6:.1f} MB"


def documents(root: Path) -> Iterator[tuple[Path, str]]:
    """Each document with what it should say."""
    results = json.loads((root / FIT).read_text(encoding="utf-8"))
    if results["settings"]["quick"]:
        raise ValueError(f"{FIT.name} is of a quick run, which leaves sets out")
    readme, page = root / "README.md", root / "docs" / "benchmarks.md"
    text = replaced(readme.read_text(encoding="utf-8"), "peers", peers(root / Q1, root / IGUANAS))
    yield readme, replaced(text, "speed", speed(results))
    text = replaced(
        page.read_text(encoding="utf-8"),
        "lengths",
        lengths(root / Q1, root / PEERS, root / IGUANAS),
    )
    text = replaced(text, "wishes", wishes(root))
    text = replaced(text, "benchmark", render(results))
    found = (json.loads((root / path).read_text(encoding="utf-8")) for path in (SIZES, LIMITED_API))
    yield page, replaced(text, "release", release(*found))
    exports = root / "docs" / "exports.md"
    text = exports.read_text(encoding="utf-8")
    yield exports, replaced(text, "tools", in_tools(root / IN_TOOLS))
    scale, gpu = root / "docs" / "scale.md", json.loads((root / GPU).read_text(encoding="utf-8"))
    yield scale, replaced(scale.read_text(encoding="utf-8"), "gpu", on_gpu(gpu))
    about = root / "docs" / "review.md"
    yield about, replaced(about.read_text(encoding="utf-8"), "review", large_reviews(root / REVIEW))


def main(arguments: list[str] | None = None) -> int:
    """Bring the documents up to date, or say whether they are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    parser.add_argument("--root", type=Path, default=ROOT, help="where the repository is")
    chosen = parser.parse_args(arguments)
    try:
        wanted = dict(documents(chosen.root))
        old = {path: path.read_text(encoding="utf-8") for path in wanted}
    except (OSError, ValueError) as error:
        print(f"the documents cannot be brought up to date: {error}", file=sys.stderr)
        return 1
    outdated = [path for path in wanted if wanted[path] != old[path]]
    for path in outdated:
        if chosen.check:
            print(f"{path.name} is out of date; run python -m benchmarks.readme", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return int(bool(outdated) and chosen.check)


if __name__ == "__main__":
    sys.exit(main())
