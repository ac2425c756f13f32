"""What is usual among inliers, as it stands in a rules file: read with nothing believed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from stair.rules.schema import Field
from stair.rules.usual import STEPS, Habit, Presence, Shares, Spread, Usual

Mapped = dict[str, object]

_SPREAD = ("points", "below", "upto", "n", "missing", "low", "high", "steps", "tenths", "side")
_SHARES = ("values", "counts", "others", "most", "missing")
_PRESENCE = ("n", "missing")


def read_usual(
    given: Mapped,
    fields: dict[str, Field],
    whole: Callable[[object], int],
    number: Callable[[object], float],
    category: Callable[[Field, object], object],
) -> Usual:
    """The figures of each field; `whole`, `number` and `category` read one value or refuse it."""
    _check_keys(given, ("of", "fields"))
    who, listed = given["of"], given["fields"]
    if who not in ("inliers", "rows") or not isinstance(listed, list):
        raise ValueError("it is not said of whom the usual figures are")
    found: dict[str, Habit] = {}
    for each in listed:
        if not isinstance(each, dict):
            raise ValueError("the usual figures of a field are no object")
        field = fields.get(str(each.get("field")))
        if field is None or field.name in found:
            raise ValueError(f"usual figures are given of {each.get('field')!r}, which is no field "
                             "or stands twice")  # fmt: skip
        found[field.name] = _habit(each, field, whole, number, category)
    return Usual(found, str(who))


def _habit(
    given: Mapped,
    field: Field,
    whole: Callable[[object], int],
    number: Callable[[object], float],
    category: Callable[[Field, object], object],
) -> Habit:
    def listed(key: str, read: Callable[[object], object]) -> list[object]:
        values = given[key]
        if not isinstance(values, list):
            raise ValueError(f"the usual figures of {field.name!r} have no list of {key}")
        return [read(value) for value in values]

    wanted = {"number": _SPREAD, "time": _SPREAD, "category": _SHARES, "text": _PRESENCE}
    _check_keys(given, ("field", *wanted[field.kind]))
    if field.kind == "text":
        return Presence(whole(given["n"]), whole(given["missing"]))
    if field.kind == "category":
        values = [category(field, value) for value in listed("values", lambda value: value)]
        counts = [int(str(n)) for n in listed("counts", whole)]
        if len(set(values)) < len(values) or len(counts) != len(values):
            raise ValueError(f"the usual values of {field.name!r} do not go with their counts")
        left = (whole(given[key]) for key in ("others", "most", "missing"))
        return Shares(tuple(values), tuple(counts), *left)
    numbers = {key: [float(str(x)) for x in listed(key, number)] for key in ("points", "tenths")}
    counts_of = {
        key: [int(str(n)) for n in listed(key, whole)] for key in ("below", "upto", "steps")
    }
    spread = Spread(
        tuple(numbers["points"]), tuple(counts_of["below"]), tuple(counts_of["upto"]),
        whole(given["n"]), whole(given["missing"]), number(given["low"]), number(given["high"]),
        tuple(counts_of["steps"]), tuple(numbers["tenths"]), 1 if given["side"] == 1 else -1,
    )  # fmt: skip
    if given["side"] not in (1, -1) or not _is_sound(spread):
        raise ValueError(f"the usual figures of {field.name!r} contradict each other")
    return spread


def _is_sound(spread: Spread) -> bool:
    """Whether values that rows have could be so."""
    in_order = all(a < b for a, b in pairwise(spread.points)) and all(
        a <= b for a, b in pairwise(spread.tenths)
    )
    if not len(spread.points) == len(spread.below) == len(spread.upto):
        return False
    ranks = [n for pair in zip(spread.below, spread.upto, strict=True) for n in pair]
    rising = all(a <= b for a, b in pairwise([0, *ranks, spread.n]))
    right_size = len(spread.steps) == STEPS and len(spread.tenths) in (0, STEPS)
    return in_order and rising and right_size and spread.low <= spread.high


def _check_keys(given: Mapped, keys: tuple[str, ...]) -> None:
    if set(given) != set(keys):
        odd = sorted(set(given) ^ set(keys))[0]
        raise ValueError(f"{odd!r} is missing or not known in the usual figures")
