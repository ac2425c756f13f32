"""The rows of every table and figure, from what was computed. No seconds: they never repeat.

A row of data that is not here keeps the paper's figures, and its `status` says "not run here".
"""

from __future__ import annotations

from typing import Any

from experiments.plan import (
    LOCAL,
    NAMES,
    OURS,
    PAPERS,
    PEERS,
    budgets,
    curve_tasks,
    fit_task,
    local_tasks,
    locality_tasks,
    map_task,
    peer_task,
    q1_tasks,
    sweep_tasks,
)
from experiments.results import Results
from experiments.tasks import Task

Row = dict[str, Any]
NOT_RUN = "not run here"


def status(results: Results, data: str) -> str:
    shape = results.shapes.get(data)
    return NOT_RUN if shape is None else "made up" if shape.made_up else "run"


def best_local(results: Results, data: str, method: str) -> tuple[Task, Row] | None:
    """Of the starts of L-STAIR the shortest above the floor, else the one with the best score."""
    found = [(each, results.get(each)) for each in local_tasks(results.known, data, method)]
    done = [(each, result) for each, result in found if result is not None]
    if not done:
        return None
    score = "assigned" if method == "l-stair" else "score"
    return min(
        done,
        key=lambda pair: (
            not pair[1]["reached"],
            pair[1]["length"] if pair[1]["reached"] else -pair[1][score],
        ),
    )


def chosen(results: Results, data: str, method: str) -> Row | None:
    """The result that Q1 shows for a method."""
    if method in LOCAL:
        best = best_local(results, data, method)
        return None if best is None else best[1]
    if method in PEERS:
        return results.get(peer_task(results.known, data, method))  # type: ignore[no-any-return]
    return results.get(fit_task(results.known, data, method))  # type: ignore[no-any-return]


def q1_rows(results: Results, names: list[str]) -> list[Row]:
    rows: list[Row] = []
    for data in names:
        shape = results.shapes.get(data)
        for method in (*PAPERS, *OURS, *PEERS):
            result = chosen(results, data, method)
            if result is None and method in PEERS:
                continue
            paper = results.known.paper_length(data, method)
            rows.append(
                {
                    "data": data,
                    "rows": shape.rows if shape else None,
                    "attributes": shape.attributes if shape else None,
                    "outliers": shape.outliers if shape else None,
                    "method": NAMES[method],
                    "paper length": paper,
                    "length": _of(result, "length"),
                    "difference": _difference(_of(result, "length"), paper),
                    "rules": _of(result, "rules"),
                    "longest": _of(result, "longest"),
                    "score": _score(_of(result, "score")),
                    "assigned score": _score(_of(result, "assigned")),
                    "partitions": _of(result, "partitions"),
                    "above the floor": _yes(_of(result, "reached")),
                    "status": status(results, data),
                }
            )
    return rows


def q1_seconds(results: Results, names: list[str]) -> list[Row]:
    """What each method of Q1 took; L-STAIR all its starts together."""
    rows: list[Row] = []
    for data in names:
        for method in (*PAPERS, *OURS, *PEERS):
            tasks = (
                [peer_task(results.known, data, method)]
                if method in PEERS
                else q1_tasks(results.known, data, method)
            )
            records = [results.record(each) for each in tasks]
            if all(record is not None for record in records):
                rows.append(
                    {
                        "data": data,
                        "method": NAMES[method],
                        "seconds": round(sum(r["seconds"] for r in records), 2),
                        "cpu seconds": round(sum(r["cpu seconds"] for r in records), 2),
                    }
                )
    return rows


def q2_rows(results: Results, names: list[str]) -> list[Row]:
    """F1 at each budget. As in the paper ID3 is the first tree that is at least as long, CART the
    pruned tree closest to it; STAIR and distilled rules are never longer than the budget."""
    rows: list[Row] = []
    for data in names:
        for method, each in curve_tasks(results.known, data).items():
            result = results.get(each)
            points = [] if result is None else result["points"]
            for k, budget in enumerate(budgets(results.known, data)):
                length, score = _at(method, points, k, budget)
                rows.append(
                    {
                        "data": data,
                        "budget": budget,
                        "method": NAMES[method],
                        "length": length,
                        "score": _score(score),
                        "status": status(results, data),
                    }
                )
    return rows


def _at(
    method: str, points: list[tuple[int, float]], k: int, budget: int
) -> tuple[int | None, float | None]:
    if not points:
        return None, None
    if method == "stair":
        return points[k]
    if method == "id3":
        return next((p for p in points if p[0] >= budget), points[-1])
    if method == "cart":
        return min(points, key=lambda p: (abs(p[0] - budget), p[0]))
    within = [p for p in points if p[0] <= budget]
    return max(within, key=lambda p: (p[1], -p[0])) if within else (0, 0.0)


def sweep_rows(results: Results, names: list[str], by: str) -> list[Row]:
    """Q3: the total length at each L_m or floor."""
    rows: list[Row] = []
    for data in names:
        for method, value, each in sweep_tasks(results.known, data, by):
            result = results.get(each)
            rows.append(
                {
                    "data": data,
                    "method": NAMES[method],
                    "L_m" if by == "length" else "floor": value,
                    "length": _of(result, "length"),
                    "score": _score(_of(result, "score")),
                    "assigned score": _score(_of(result, "assigned")),
                    "above the floor": _yes(_of(result, "reached")),
                    "status": status(results, data),
                }
            )
    return rows


def q4_rows(results: Results, names: list[str]) -> list[Row]:
    """L-STAIR from each start: the paper's protocol, then the floor on the routed score."""
    rows: list[Row] = []
    for method in LOCAL:
        for data in names:
            for n, each in zip(
                results.known["starts"], local_tasks(results.known, data, method), strict=True
            ):
                result = results.get(each)
                paper = results.known.paper_partitions(data, n) if method == "l-stair" else None
                row: Row = {"data": data, "method": NAMES[method], "n": n}
                for place, name in enumerate(("length", "rules", "partitions")):
                    published = None if paper is None else paper[place]
                    row[f"paper {name}"] = published
                    row[name] = _of(result, name)
                    row[f"{name} difference"] = _difference(_of(result, name), published)
                row |= {
                    "assigned score": _score(_of(result, "assigned")),
                    "routed score": _score(_of(result, "score")),
                    "with nearest center": _score(_of(result, "with nearest center")),
                    "above the floor": _yes(_of(result, "reached")),
                    "status": status(results, data),
                }
                rows.append(row)
    return rows


def locality_rows(results: Results, names: list[str]) -> list[Row]:
    """L-STAIR by the paper's protocol at each λ."""
    return [
        {
            "data": data,
            "n": results.known.paper_start(data),
            "λ": value,
            "paper length": results.known.paper_length(data, "l-stair"),
            "length": _of(result, "length"),
            "rules": _of(result, "rules"),
            "partitions": _of(result, "partitions"),
            "assigned score": _score(_of(result, "assigned")),
            "routed score": _score(_of(result, "score")),
            "with nearest center": _score(_of(result, "with nearest center")),
            "above the floor": _yes(_of(result, "reached")),
            "status": status(results, data),
        }
        for data in names
        for value, result in (
            (value, results.get(each)) for value, each in locality_tasks(results.known, data)
        )
    ]


def map_rows(results: Results, names: list[str]) -> list[Row]:
    """Q5: the points of the maps."""
    rows: list[Row] = []
    for data in names:
        result = results.get(map_task(results.known, data))
        if result is not None:
            columns = ("row", "x", "y", "partition", "label")
            rows += [
                {"data": data, **dict(zip(columns, point, strict=True))}
                for point in zip(*(result[name] for name in columns), strict=True)
            ]
    return rows


def map_share_rows(results: Results, names: list[str]) -> list[Row]:
    """Q5 in numbers: is a row's neighbour on the map in the same partition?"""
    rows: list[Row] = []
    for data in names:
        result = results.get(map_task(results.known, data))
        rows.append(
            {
                "data": data,
                "partitions": _of(result, "partitions"),
                "rows on the map": None if result is None else len(result["row"]),
                "with nearest center": _score(_of(result, "with nearest center")),
                "neighbour in the same partition": _score(_of(result, "like neighbour")),
                "by chance": _score(_of(result, "by chance")),
                "status": status(results, data),
            }
        )
    return rows


def trace_rows(results: Results, names: list[str]) -> list[Row]:
    """Q6: M and what goes with it after each split, up to the rules that were kept."""
    rows: list[Row] = []
    for data in names:
        result = results.get(fit_task(results.known, data, "stair"))
        if result is None:
            continue
        columns = ("rules", "M", "S", "length", "score")
        for step in result["trace"]:
            if step[0] <= result["rules"]:
                values = dict(zip(columns, step, strict=True))
                rows.append(
                    {
                        "data": data,
                        **values,
                        "M": float(f"{values['M']:.6g}"),
                        "S": float(f"{values['S']:.6g}"),
                        "score": _score(values["score"]),
                    }
                )
    return rows


def _of(result: Row | None, name: str) -> Any:
    return None if result is None else result.get(name)


def _difference(ours: int | None, paper: int | None) -> int | None:
    return None if ours is None or paper is None else ours - paper


def _score(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
