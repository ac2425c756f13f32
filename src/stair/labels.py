"""What a detector says about each row, in one form whatever it was said in.

Labels come as 0/1, as -1/+1, as words, as scores, or inside a fitted detector. The learner must
not care: the same verdict in another coding has to give the same rules. So every verdict becomes
one code per row here, and what the codes meant is kept as a sentence for people.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError

Value: TypeAlias = str | int | float | bool
Codes: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]

TWO_CLASSES: tuple[Value, ...] = ("inlier", "outlier")
"""The classes of every verdict with two sides; the second is the outlier."""

_MOST_FRACTIONS = 20  # more different fractions than this are scores
_MOST_CLASSES = 100  # more different values than this are names of rows
_MOST_SHOWN = 8  # values that an error lists

# fmt: off
_OUTLIER_WORDS = frozenset({
    "outlier", "outliers", "outlying", "anomaly", "anomalies", "anomalous", "abnormal", "fraud",
    "fraudulent", "attack", "malicious", "malware", "intrusion", "bad", "yes", "true", "1",
    "positive", "pos", "fault", "faulty", "defect", "defective", "failure", "failed", "fail",
    "error", "novelty", "novel", "noise", "suspicious", "suspect", "spam", "rare", "unusual",
    "alarm", "alert",
})
_INLIER_WORDS = frozenset({
    "inlier", "inliers", "inlying", "normal", "regular", "ordinary", "usual", "benign", "legit",
    "legitimate", "genuine", "good", "no", "false", "0", "negative", "neg", "ok", "okay", "pass",
    "passed", "clean", "valid", "healthy", "ham", "safe",
})
# fmt: on
_LETTERS = ({"y", "n"}, {"t", "f"})  # only together: m and f mean something else


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per row.

    `codes` points into `classes`, and is -1 where a row has no label. `positive` is the index of
    the outlier class, or None where there are more than two classes; `negative` is then the one
    that is normal, where every other is a kind of outlier. `meaning` says what an outlier is here,
    and `notes` what was assumed or left out.
    """

    codes: Codes
    classes: tuple[Value, ...]
    positive: int | None
    meaning: str
    notes: tuple[str, ...] = ()
    negative: int | None = None


def read_labels(
    values: Any,
    *,
    positive: Any = None,
    negative: Any = None,
    kinds: bool = False,
    name: str = "labels",
    counts: Sequence[int] | None = None,
) -> Labels:
    """The labels in a column of any kind, however its two sides are written.

    Two values become inlier and outlier, so that 0/1 and "ok"/"fraud" lead to the same rules. Where
    the coding leaves open which value is the outlier, a note says which was taken and how to say
    otherwise. More than two values stay classes of their own, unless `positive` picks one of them
    or several. Where one of them is normal, because `negative` says so, or it is by far the
    largest and `kinds` are looked for, the others are kinds of outlier. Where the values are the
    different ones of a larger table, `counts` says how often each occurs.
    """
    column = f'the label column "{name}"'
    found, codes = distinct_values(values, column)
    if len(codes) == 0:
        raise StairError(f"{column} is empty; expected one label per row.")
    if not found:
        raise StairError(f"{column} has only missing values; expected one label per row.")
    times = np.ones(len(codes), np.int64) if counts is None else np.array(counts, np.int64)
    frequency = np.zeros(len(found), dtype=np.int64)
    np.add.at(frequency, codes[codes >= 0], times[codes >= 0])
    n_missing = int(times[codes < 0].sum())
    notes: tuple[str, ...] = ()
    if n_missing:
        notes = (_left_out(n_missing, "label"),)
    if len(found) == 1:
        hint = f" {_no_value(n_missing, 'label')}; fill in what a missing label means."
        raise StairError(
            f"{column} has only one value ({said(found[0])}), so there is nothing to tell apart."
            + (hint if n_missing else "")
        )
    if positive is not None and negative is not None:
        raise StairError(
            "positive names the outliers and negative what is normal; give one of the two"
        )
    normal = None
    if negative is not None:
        (normal,) = _positions_of([negative], found, column, "negative")
    if normal is not None and (len(found) == 2 or not kinds):
        outliers = [at for at in _sorted(found) if at != normal]
        is_two = len(found) == 2
        meaning = f"{name} = {said(found[outliers[0]])}" if is_two else ""
        return _two_sided(codes, outliers, meaning or f"{name} ≠ {said(found[normal])}", notes)
    if positive is not None:
        outliers = _positions_of(positive, found, column)
        meaning = f"{name} = {' or '.join(said(found[at]) for at in outliers)}"
        n_others = len(found) - len(outliers)
        if n_others > 1:
            meaning += f", against the {n_others} other values"
        return _two_sided(codes, outliers, meaning, notes)
    _check_are_labels(found, column)
    if len(found) == 2:
        at, guess = outlier_of_two(found, frequency.tolist(), name=name)
        if guess:
            notes += (guess,)
        return _two_sided(codes, [at], f"{name} = {said(found[at])}", notes)
    order = _sorted(found)
    rank = np.empty(len(found) + 1, dtype=np.int32)
    rank[order] = np.arange(len(found), dtype=np.int32)
    rank[-1] = -1  # where code -1 points to
    classes: tuple[Value, ...] = tuple(found[i] for i in order)
    if not all(isinstance(value, int) for value in classes):
        classes = tuple(map(_text, classes))
    if normal is None and kinds:
        normal = _normal_of(found, frequency)
        if normal is not None:
            notes += (
                f"{said(found[normal])} is by far the most frequent value of {name} and taken as "
                "normal, every other as a kind of outlier (negative and positive say otherwise)",
            )
    if normal is not None:
        meaning = f"against {name} = {said(found[normal])}"
        return Labels(rank[codes], classes, None, meaning, notes, int(rank[normal]))
    return Labels(rank[codes], classes, None, f"{name}, {len(classes)} classes", notes)


def _normal_of(found: Sequence[Value], frequency: NDArray[np.int64]) -> int | None:
    """The class that has more rows than all others together, or most of all and a name that is
    known to mean normal; None where there is none."""
    at = int(frequency.argmax())
    is_named = _side(_word(_text(found[at]))) < 0
    return at if is_named or 2 * frequency[at] > frequency.sum() else None


def labels_from_scores(scores: Any, contamination: float | None, *, name: str = "scores") -> Labels:
    """The rows with the highest scores as outliers: a share of them, or that many.

    A row is an outlier where its score is strictly above the highest one that does not count any
    more, as in the paper: tied rows are all in or all out, so ties make outliers fewer, never more.
    """
    if contamination is None:
        raise StairError(
            "scores need a contamination; give the share of rows to call outliers, such as "
            "contamination=0.05, or their number"
        )
    numbers = _numbers_in(scores, name)
    is_known = ~np.isnan(numbers)
    known = numbers[is_known]
    if len(numbers) == 0:
        raise StairError(f'the scores "{name}" are empty; expected one number per row.')
    if len(known) < 2:
        raise StairError(
            f'the scores "{name}" have {len(known)} numbers in {n_rows(len(numbers))}; '
            "at least 2 are needed to tell outliers apart."
        )
    wanted, said = wanted_outliers(contamination, len(known))
    threshold = np.partition(known, len(known) - wanted - 1)[len(known) - wanted - 1]
    codes = np.full(len(numbers), -1, dtype=np.int32)
    codes[is_known] = known > threshold
    n_flagged = int(np.count_nonzero(codes == 1))
    if n_flagged == 0:
        raise StairError(_all_tied(known, threshold, wanted, name))
    notes: tuple[str, ...] = ()
    n_missing = len(numbers) - len(known)
    if n_missing:
        notes = (_left_out(n_missing, "score"),)
    if n_flagged < wanted:
        notes += (
            f"{n_rows(n_flagged)} instead of {wanted:,} count as outliers, because scores are tied "
            f"at {float(threshold):g}",
        )
    return Labels(codes, TWO_CLASSES, 1, f"{name}, {said} with the highest scores", notes)


# Values and what they mean


def distinct_values(values: Any, what: str) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values that are not missing, and for each row which one it has (-1: none)."""
    items = plain_values(values, what)
    raw: list[Any]
    if isinstance(items, np.ndarray):
        unique, inverse = np.unique(items, return_inverse=True)
        raw = unique.tolist()
        codes = inverse.astype(np.int64).reshape(-1)
    else:
        index: dict[Any, int] = {}
        try:
            codes = np.fromiter(
                (index.setdefault(item, len(index)) for item in items), np.int64, len(items)
            )
        except TypeError:
            raise StairError(_several(what)) from None
        raw = list(index)
        if any(isinstance(value, tuple) for value in raw):
            raise StairError(_several(what))
    cleaned = [_canonical(value) for value in raw]
    if any(type(value) in (int, float) for value in cleaned):  # True is 1 among numbers
        cleaned = [int(value) if isinstance(value, bool) else value for value in cleaned]
    found: dict[str, Value] = {}
    place: dict[str, int] = {}
    merged = np.full(len(cleaned), -1, dtype=np.int64)
    for i, value in enumerate(cleaned):
        if value is not None:
            text = _text(value)
            found.setdefault(text, value)
            merged[i] = place.setdefault(text, len(place))
    return list(found.values()), merged[codes] if len(merged) else codes


def _several(what: str) -> str:
    return f"{what} holds lists or the like; expected a single value per row"


def plain_values(values: Any, what: str) -> NDArray[Any] | list[Any]:
    """A numeric NumPy array where the values have one, else a list of Python objects."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        sizes = " × ".join(map(str, shape)) or "a single value"
        raise StairError(f"{what} has the shape {sizes}; expected one column with a value per row")
    if isinstance(values, str | bytes | dict | set | frozenset) or values is None:
        raise StairError(f"{what} is {values!r:.60}; expected a column with one value per row")
    if isinstance(getattr(values, "dtype", None), np.dtype) and not np.ma.isMaskedArray(values):
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64) if array.dtype.itemsize > 8 else array
        if array.dtype.kind in "mM":
            return [
                None if missing else str(x)
                for x, missing in zip(array, np.isnat(array), strict=True)
            ]
        as_list: list[Any] = array.tolist()
        return as_list
    for way in ("to_pylist", "to_list", "tolist"):
        convert = getattr(values, way, None)
        if callable(convert):
            as_list = convert()
            return as_list
    if not isinstance(values, Iterable):
        raise StairError(f"{what} is {values!r:.60}; expected a column with one value per row")
    return list(values)


def _canonical(value: Any) -> Value | None:
    """The value as a plain Python one, whole numbers as int; None where it is missing."""
    if isinstance(value, np.generic) and not isinstance(value, str | bytes):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # pd.NA is neither equal to itself nor not, so that it is known by its name.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _number(value: Any) -> int | float | None:
    """The finite number that a value is or spells."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def said(value: Any) -> str:
    """A value in a sentence: words in quotes, numbers bare."""
    return f'"{value}"' if isinstance(value, str) else _text(value)


def n_rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _no_value(n: int, what: str) -> str:
    return f"{n_rows(n)} {'has' if n == 1 else 'have'} no {what}"


def _left_out(n: int, what: str) -> str:
    return f"{_no_value(n, what)} and {'is' if n == 1 else 'are'} left out"


def folded(values: Sequence[Any]) -> str:
    shown = ", ".join(map(said, values[:_MOST_SHOWN]))
    return shown if len(values) <= _MOST_SHOWN else f"{shown}, … ({len(values):,} in all)"


def _sorted(values: Sequence[Value]) -> list[int]:
    """The order of the values: by size where all are numbers, written or not, else by text."""
    numbers = [_number(value) for value in values]
    places = range(len(values))
    if any(number is None for number in numbers):
        return sorted(places, key=lambda i: _text(values[i]))
    return sorted(places, key=lambda i: (numbers[i], _text(values[i])))


def _check_are_labels(found: Sequence[Value], column: str) -> None:
    numbers = [_number(value) for value in found]
    fractions = sum(isinstance(x, float) and not x.is_integer() for x in numbers)
    if fractions > _MOST_FRACTIONS:
        raise StairError(
            f"{column} has {len(found):,} different numbers, which look like scores; give them as "
            "scores= (--score) with a contamination, the share of rows to call outliers."
        )
    if len(found) > _MOST_CLASSES:
        which = "an identifier" if None in numbers else "an identifier, or scores"
        raise StairError(
            f"{column} has {len(found):,} different values, more than {_MOST_CLASSES}; is it "
            f"{which}? Give another column, or say which value is the outlier with positive=."
        )


def _positions_of(
    positive: Any, found: Sequence[Value], column: str, option: str = "positive"
) -> list[int]:
    """Where the values are that the caller calls outliers: one of them, or several."""
    named = [positive]
    if isinstance(positive, list | tuple | set | frozenset | np.ndarray):
        named = list(positive)
    places = {_position_of(each, found, column, option) for each in named}
    outliers = [at for at in _sorted(found) if at in places]
    if not outliers or len(outliers) == len(found):
        which = "names no value" if not outliers else "names all values"
        raise StairError(
            f"{option} {which} of {column}, so there is nothing to tell apart. "
            f"Values: {folded([found[i] for i in _sorted(found)])}."
        )
    return outliers


def _position_of(positive: Any, found: Sequence[Value], column: str, option: str) -> int:
    """Where the value is that the caller calls the outlier: as it is, as a number, or as text."""
    canonical = _canonical(positive)
    text = _text(canonical)
    texts = [_text(value) for value in found]
    if text in texts:
        return texts.index(text)
    number = _number(canonical)
    same = [i for i, value in enumerate(found) if number is not None and _number(value) == number]
    if not same:  # --positive true for True
        same = [i for i, value in enumerate(texts) if value.casefold() == text.casefold()]
    if len(same) == 1:
        return same[0]
    by_fold = {value.casefold(): i for i, value in enumerate(texts)}
    near = difflib.get_close_matches(text.casefold(), by_fold, n=1)
    hint = f" Did you mean {said(found[by_fold[near[0]]])}?" if near else ""
    values = folded([found[i] for i in _sorted(found)])
    raise StairError(f"{option}={positive!r} is not a value of {column}.{hint} Values: {values}.")


def outlier_of_two(
    values: Sequence[Any], counts: Sequence[float], *, name: str, option: str = "positive"
) -> tuple[int, str]:
    """Which of two classes is the outlier, and a sentence where that is only a guess.

    Every entrance asks here, so that one verdict means the same everywhere: −1 of −1/+1, as
    scikit-learn's detectors have it; 1 of 0/1, as PyOD's have it; True; a word that is known to
    mean outlier, or the other one of a word that is known to mean inlier. Otherwise it is the
    smaller class by `counts`, and of two equal ones the last in order (by size where both are
    numbers, else by text). `option` is the setting that says otherwise.
    """
    found = [_text(v) if (v := _canonical(value)) is None else v for value in values]
    first, second = (_number(value) for value in found)
    if first is not None and second is not None and first != second:
        larger = int(second > first)
        if {first, second} == {0, 1}:
            return larger, ""
        if {first, second} == {-1, 1}:
            return 1 - larger, ""
    else:
        words = [_word(_text(value)) for value in found]
        if set(words) in _LETTERS:
            return int(words[1] in "yt"), ""
        sides = [_side(word) for word in words]
        if sides[0] != sides[1]:
            return int(sides[1] > sides[0]), ""
    at, why = int(counts[1] < counts[0]), "the rarer one"
    if counts[0] == counts[1]:
        at, why = _sorted(found)[1], "as they are equally frequent, the last one"
    return at, (
        f"{name} has the values {folded([found[i] for i in _sorted(found)])}; {why}, "
        f"{said(found[at])}, is taken as the outlier ({option}={found[1 - at]!r} says otherwise)"
    )


def _word(text: str) -> str:
    """The letters and digits alone, so that "Non-Fraud" and "nonfraud" are one word."""
    return "".join(c for c in text.casefold() if c.isalnum())


def _side(word: str) -> int:
    """1 for a word that means outlier, -1 for its opposite, 0 for any other."""
    if word in _OUTLIER_WORDS:
        return 1
    if word in _INLIER_WORDS:
        return -1
    for prefix in ("not", "non", "no"):
        if word.startswith(prefix) and word.removeprefix(prefix) in _OUTLIER_WORDS:
            return -1
    return 0


def _two_sided(
    codes: NDArray[np.int64], outliers: Sequence[int], meaning: str, notes: tuple[str, ...]
) -> Labels:
    sides = np.where(codes < 0, -1, np.isin(codes, outliers)).astype(np.int32)
    return Labels(sides, TWO_CLASSES, 1, meaning, notes)


# Scores


def _numbers_in(scores: Any, name: str) -> NDArray[np.float64]:
    """Scores as numbers, NaN where missing; words, dates and flags are no scores."""
    what = f'the scores "{name}"'
    items = plain_values(scores, what)
    if isinstance(items, np.ndarray):
        if items.dtype.kind == "b":
            raise StairError(f"{what} are true or false; expected numbers, or give them as labels=")
        return items.astype(np.float64)
    if len(items) and (quick := _as_numbers(items)) is not None:
        return quick
    cleaned = [_canonical(item) for item in items]
    odd = next((x for x in cleaned if isinstance(x, bool | str)), None)
    if odd is not None:
        raise StairError(f"{what} hold {said(odd)}, which is not a number; expected numbers")
    return np.array([math.nan if x is None else float(x) for x in cleaned], dtype=np.float64)


def _as_numbers(items: list[Any]) -> NDArray[np.float64] | None:
    """The usual case, a list of nothing but numbers, without a look at each of them."""
    try:
        array = np.asarray(items)
    except ValueError:  # lists of different lengths
        return None
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        return None
    return array.astype(np.float64)


def wanted_outliers(contamination: Any, n_rows: int) -> tuple[int, str]:
    """How many rows to call outliers, and that in words: an int is their number, a float their
    share."""
    number = contamination.item() if isinstance(contamination, np.generic) else contamination
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= n_rows / 2:
        return number, "the row" if number == 1 else f"the {number:,} rows"
    if isinstance(number, float) and 0 < number <= 0.5:
        return max(1, round(number * n_rows)), f"the {100 * number:.4g}%"
    most = f" (at most half of the {n_rows:,})" if isinstance(number, int) and number > 1 else ""
    raise StairError(
        f"contamination={number!r}; expected a share above 0 and at most 0.5, "
        f"or a number of rows{most}"
    )


def _all_tied(known: NDArray[np.float64], highest: float, wanted: int, name: str) -> str:
    n_tied = int(np.count_nonzero(known == highest))
    message = (
        f'the {n_tied:,} highest scores of "{name}" are all {float(highest):g}, so the top '
        f"{wanted:,} cannot be told from the others; "
    )
    if n_tied <= len(known) / 2:
        return message + f"give a contamination of at least {n_tied:,} rows."
    return message + "use other scores."
