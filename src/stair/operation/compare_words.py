"""A comparison in words: for a terminal, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from stair.errors import folded, visible
from stair.export.answers import answer
from stair.export.text import fit
from stair.operation.words import numbers_of, wrapped
from stair.rules.figures import fine_percent, percent

if TYPE_CHECKING:
    from stair.operation.compare import Comparison, Difference
    from stair.operation.new_values import NewValues
    from stair.operation.statistics import Share
    from stair.rules.rule_set import Rule

NO_DIFFERENCE: Final = "No difference that would hold on other rows."
NOTHING_ELSE: Final = "Beside that no difference that would hold on other rows."


def opening(found: Comparison) -> str:
    """What is compared."""
    if found.what == "tables":
        sides = zip(found.names, found.n_rows, strict=True)
        return "   ".join(f"{name} {rows:,} rows" for name, rows in sides)
    return f"{found.source or 'data'}   {found.n_rows[0]:,} rows   {' and '.join(found.names)}"


def to_text(found: Comparison, width: int = 80) -> str:
    """As a terminal shows it."""
    lines = [visible(opening(found)), ""]
    if found.differences:
        heads, rows = ("first", "second"), []
        if found.what != "tables":
            heads = ("of them", "of all others")
        for number, each in enumerate(found.differences, start=1):
            sides = [_counted(each.own), _counted(each.others)]
            if found.what == "tables":
                where, sides = "", sides[:: 1 - 2 * each.side]
            else:
                where = f"{found.names[each.side]} alone: "
            rows.append((f"{number}  {where}{each.rule.in_words()}", *sides))
        lines += [*fit(("Rows where …", *heads), rows, width), ""]
    return "\n".join([*lines, *wrapped(sentences(found), width)])


def sentences(found: Comparison) -> list[str]:
    """What is to be said below the rules."""
    said = []
    if found.agreement is not None:
        told, (first, second) = found.agreement, found.names
        said.append(
            f"Both say the same of {fine_percent(told.share)} of the rows. Outliers: {told.both:,} "
            f"by both, {told.first:,} by {first} alone, {told.second:,} by {second} alone, "
            f"{told.neither:,} by none."
        )
    if found.rules is not None:
        rules = found.rules
        said.append(f"Rules: {_listed('in both', rules.both)}; "
                    f"{_listed(f'in {found.names[0]} alone', rules.first)}; "
                    f"{_listed(f'in {found.names[1]} alone', rules.second)}.")  # fmt: skip
    for name, columns in zip(found.names, found.only, strict=True):
        if columns:
            said.append(f"Only {name} has {folded(columns)}.")
    said += [_of_new_values(found, each) for each in found.new_values]
    known = [each.column for each in found.new_values]
    if unlike := [name for name in found.unlike if name not in known]:
        said.append(f"Other kinds of values in one than in the other: {folded(unlike)}.")
    if found.differences:
        n = len(found.differences)
        it = "It was found" if n == 1 else "They were found"
        said.append(
            f"{it} on one half of the rows and {'holds' if n == 1 else 'hold'} on the other "
            f"{found.n_aside:,}."
        )
    else:
        said.append(NOTHING_ELSE if found.of_columns else NO_DIFFERENCE)
    said += [f"Left out: {name}, {why}." for name, why in found.left_out.items()
             if why.startswith("one table ends")]  # fmt: skip
    return said + [f"Note: {note}." for note in found.notes]


def _of_new_values(found: Comparison, each: NewValues) -> str:
    """One sentence about a column, with an example of each table."""
    first, second = (f'"{text}" in {name}'
                     for text, name in zip(each.examples, found.names, strict=True))  # fmt: skip
    what = {
        "same": f"the same values are written in another way, {first} and {second}",
        "other": f"its values have another form, such as {first} and {second}",
    }.get(each.form, "most of its values are new")
    said = []
    for side in each.sides:
        rows, example = each.rows[side], each.examples[side]
        such = "" if each.form else f', such as "{example}"'
        said.append(
            f"{_counted(rows)} of the rows in {found.names[side]} have values that "
            f"{found.names[1 - side]} never has{such}"
        )
    return f"{each.column}: {what}; {' and '.join(said)}. Rules leave it out."


def _counted(share: Share) -> str:
    return f"{share.hits:,} ({percent(share.value) if share.rows else '–'})"


def _listed(where: str, rules: Sequence[Rule]) -> str:
    words = f" ({'; '.join(rule.in_words() for rule in rules)})" if rules else ""
    return f"{len(rules):,} {where}{words}"


def to_json(found: Comparison) -> str:
    """For programs: see the schema `compare`."""
    told, rules = found.agreement, found.rules
    return answer("compare", {
        "what": found.what,
        "sides": list(found.names),
        "source": found.source,
        "rows": list(found.n_rows),
        "rows_aside": found.n_aside,
        "differs": found.differs,
        "differences": [_difference(found, each) for each in found.differences],
        "agreement": None if told is None else {
            "both": told.both, "first": told.first, "second": told.second,
            "neither": told.neither, "share": told.share, "of_outliers": told.of_outliers,
        },
        "rules": None if rules is None else {
            "both": list(map(str, rules.both)), "first": list(map(str, rules.first)),
            "second": list(map(str, rules.second)),
        },
        "only": [list(columns) for columns in found.only],
        "unlike": list(found.unlike),
        "new_values": [
            {
                "column": each.column, "form": each.form or None, "examples": list(each.examples),
                "rows": list(map(numbers_of, each.rows)),
                "values": list(map(numbers_of, each.values)),
            }
            for each in found.new_values
        ],
        "left_out": dict(found.left_out),
        "notes": list(found.notes),
    })  # fmt: skip


def _difference(found: Comparison, each: Difference) -> dict[str, object]:
    return {
        "words": str(each.rule),
        "more_in": found.names[each.side],
        "own": numbers_of(each.own),
        "others": numbers_of(each.others),
        "own_aside": numbers_of(each.kept_own),
        "others_aside": numbers_of(each.kept_others),
        "chance": each.chance,
    }
