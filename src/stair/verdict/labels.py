"""What a detector says about each row, in one form whatever it was said in.

Verdict come as 0/1, as -1/+1, as words, as scores, or inside a fitted detector. The learner must
not care: the same verdict in another coding has to give the same rules. So every verdict becomes
one code per row here, and what the codes meant is kept as a sentence for people.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, option
from stair.verdict.codebook import (
    Codebook,
    Value,
    canonical,
    distinct_values,
    folded,
    number_of,
    place_among,
    plain_values,
    said,
    text_of,
)

Codes: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]

TWO_CLASSES: tuple[Value, ...] = ("inlier", "outlier")
"""The classes of every verdict with two sides; the second is the outlier."""

_MOST_FRACTIONS = 20  # more different fractions than this are scores
_MOST_CLASSES = 100  # more different values than this are names of rows

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
class Verdict:
    """A class per row, which of them is the outlier, and how that was read.

    `codes` points into `classes`, and is -1 where a row has no label. `positive` is the index of
    the outlier class, or None where there are more than two classes; `negative` is then the one
    that is normal, where every other is a kind of outlier. `meaning` says what an outlier is here,
    and `notes` what was assumed or left out. The `codebook` says which values mean which class,
    where there were such values.
    """

    codes: Codes
    classes: tuple[Value, ...]
    positive: int | None
    meaning: str
    notes: tuple[str, ...] = ()
    negative: int | None = None
    codebook: Codebook | None = None


@dataclass(frozen=True)
class AllBut:
    """Every label but the normal one means outlier: what `positive=` takes where it is easier to
    say what is normal. `AllBut()` names none, so that all labels are told apart."""

    normal: object = None

    @property
    def is_nothing(self) -> bool:
        """Whether no label is normal."""
        return self.normal is None


def positive_of(positive: object, negative: object) -> object:
    """What two flags say about labels, as one value."""
    if negative is None:
        return positive
    _check_one_side(positive, negative)
    return AllBut(negative)


def sides_of(positive: object) -> tuple[object, object]:
    """The labels that mean outlier, or the one that means normal."""
    return (None, positive.normal) if isinstance(positive, AllBut) else (positive, None)


def _check_one_side(positive: object, negative: object) -> None:
    if positive is not None and negative is not None:
        raise StairError(
            f"{option('positive')} names the outliers and {option('negative')} what is normal; "
            "give one of the two"
        )


def notes_on_outliers(verdict: Verdict, counts: Sequence[int] | None = None) -> tuple[str, ...]:
    """That most rows are outliers; what is a label here may be that of so many rows."""
    known = verdict.codes >= 0
    times = np.ones(len(known)) if counts is None else np.asarray(counts)
    share = times[verdict.codes == verdict.positive].sum() / times[known].sum()
    if verdict.positive is None or not share > 0.5:
        return ()
    which = option("positive")
    return (f"more than half of the rows are outliers; {which} says which value means outlier",)


def read_labels(
    values: object,
    *,
    positive: object = None,
    negative: object = None,
    kinds: bool = False,
    name: str = "labels",
    counts: Sequence[int] | None = None,
) -> Verdict:
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
    _check_one_side(positive, negative)
    normal = None
    if negative is not None:
        (normal,) = _positions_of([negative], found, column, "negative")
    if normal is not None and (len(found) == 2 or not kinds):
        outliers = [at for at in _sorted(found) if at != normal]
        is_two = len(found) == 2
        meaning = f"{name} = {said(found[outliers[0]])}" if is_two else ""
        meaning = meaning or f"{name} ≠ {said(found[normal])}"
        return _two_sided(codes, found, outliers, meaning, notes, others=1)
    if positive is not None:
        outliers = _positions_of(positive, found, column)
        meaning = f"{name} = {' or '.join(said(found[at]) for at in outliers)}"
        n_others = len(found) - len(outliers)
        if n_others > 1:
            meaning += f", against the {n_others} other values"
        return _two_sided(codes, found, outliers, meaning, notes)
    _check_are_labels(found, column)
    if len(found) == 2:
        at, guess = outlier_of_two(found, frequency.tolist(), name=name)
        if guess:
            notes += (guess,)
        return _two_sided(codes, found, [at], f"{name} = {said(found[at])}", notes)
    order = _sorted(found)
    rank = np.empty(len(found) + 1, dtype=np.int32)
    rank[order] = np.arange(len(found), dtype=np.int32)
    rank[-1] = -1  # where code -1 points to
    classes: tuple[Value, ...] = tuple(found[i] for i in order)
    if not all(isinstance(value, int) for value in classes):
        classes = tuple(map(text_of, classes))
    codebook = Codebook(tuple((found[i],) for i in order), others=len(order))
    if normal is None and kinds:
        normal = _normal_of(found, frequency)
        if normal is not None:
            notes += (
                f"{said(found[normal])} is by far the most frequent value of {name} and taken as "
                f"normal, every other as a kind of outlier ({option('negative')} and "
                f"{option('positive')} say otherwise)",
            )
    if normal is not None:
        meaning = f"against {name} = {said(found[normal])}"
        return Verdict(rank[codes], classes, None, meaning, notes, int(rank[normal]), codebook)
    meaning = f"{name}, {len(classes)} classes"
    return Verdict(rank[codes], classes, None, meaning, notes, codebook=codebook)


def _normal_of(found: Sequence[Value], frequency: NDArray[np.int64]) -> int | None:
    """The class that has more rows than all others together, or most of all and a name that is
    known to mean normal; None where there is none."""
    most = [at for at in _sorted(found) if frequency[at] == frequency.max()]
    named = [at for at in most if _side(_word(text_of(found[at]))) < 0]
    if named:
        return named[0]
    return most[0] if 2 * frequency[most[0]] > frequency.sum() else None


def labels_from_scores(
    scores: object, contamination: float | None, *, name: str = "scores"
) -> Verdict:
    """The rows with the highest scores as outliers: a share of them, or that many.

    A row is an outlier where its score is strictly above the highest one that does not count any
    more, as in the paper: tied rows are all in or all out, so ties make outliers fewer, never more.
    """
    if contamination is None:
        raise StairError(
            "scores need a contamination; give the share of rows to call outliers, such as "
            f"{option('contamination', 0.05)}, or their number"
        )
    numbers = numbers_in(scores, name)
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
    return Verdict(codes, TWO_CLASSES, 1, f"{name}, {said} with the highest scores", notes)


def n_rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _no_value(n: int, what: str) -> str:
    return f"{n_rows(n)} {'has' if n == 1 else 'have'} no {what}"


def _left_out(n: int, what: str) -> str:
    return f"{_no_value(n, what)} and {'is' if n == 1 else 'are'} left out"


def _sorted(values: Sequence[Value]) -> list[int]:
    """The order of the values: by size where all are numbers, written or not, else by text."""
    numbers = [number_of(value) for value in values]
    places = range(len(values))
    if any(number is None for number in numbers):
        return sorted(places, key=lambda i: text_of(values[i]))
    return sorted(places, key=lambda i: (numbers[i], text_of(values[i])))


def _check_are_labels(found: Sequence[Value], column: str) -> None:
    numbers = [number_of(value) for value in found]
    fractions = sum(isinstance(x, float) and not x.is_integer() for x in numbers)
    if fractions > _MOST_FRACTIONS:
        raise StairError(
            f"{column} has {len(found):,} different numbers, which look like scores; give them as "
            f"{option('scores')} with {option('contamination')}, the share of outliers."
        )
    if len(found) > _MOST_CLASSES:
        which = "an identifier" if None in numbers else "an identifier, or scores"
        raise StairError(
            f"{column} has {len(found):,} different values, more than {_MOST_CLASSES}; is it "
            f"{which}? Give another column, or say which value is the outlier with "
            f"{option('positive')}."
        )


def _positions_of(
    positive: object, found: Sequence[Value], column: str, side: str = "positive"
) -> list[int]:
    """Where the values are that the caller calls outliers: one of them, or several."""
    named = [positive]
    if isinstance(positive, list | tuple | set | frozenset | np.ndarray):
        named = list(positive)
    places = {_position_of(each, found, column, side) for each in named}
    outliers = [at for at in _sorted(found) if at in places]
    if not outliers or len(outliers) == len(found):
        which = "names no value" if not outliers else "names all values"
        raise StairError(
            f"{option(side)} {which} of {column}, so there is nothing to tell apart. "
            f"Values: {folded([found[i] for i in _sorted(found)])}."
        )
    return outliers


def _position_of(positive: object, found: Sequence[Value], column: str, side: str) -> int:
    """Where the value is that the caller calls the outlier: as it is, as a number, or as text."""
    at = place_among(positive, found)
    if at is not None:
        return at
    texts = [text_of(value) for value in found]
    text = text_of(canonical(positive))
    by_fold = {value.casefold(): i for i, value in enumerate(texts)}
    near = difflib.get_close_matches(text.casefold(), by_fold, n=1)
    hint = f" Did you mean {said(found[by_fold[near[0]]])}?" if near else ""
    values = folded([found[i] for i in _sorted(found)])
    raise StairError(
        f"{option(side, canonical(positive))} is not a value of {column}.{hint} Values: {values}."
    )


def outlier_of_two(
    values: Sequence[object], counts: Sequence[float], *, name: str, setting: str = "positive"
) -> tuple[int, str]:
    """Which of two classes is the outlier, and a sentence where that is only a guess.

    Every entrance asks here, so that one verdict means the same everywhere: −1 of −1/+1, as
    scikit-learn's detectors have it; 1 of 0/1, as PyOD's have it; True; a word that is known to
    mean outlier, or the other one of a word that is known to mean inlier. Otherwise it is the
    smaller class by `counts`, and of two equal ones the last in order (by size where both are
    numbers, else by text). `setting` is what says otherwise.
    """
    found = [text_of(v) if (v := canonical(value)) is None else v for value in values]
    first, second = (number_of(value) for value in found)
    if first is not None and second is not None and first != second:
        larger = int(second > first)
        if {first, second} == {0, 1}:
            return larger, ""
        if {first, second} == {-1, 1}:
            return 1 - larger, ""
    else:
        words = [_word(text_of(value)) for value in found]
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
        f"{said(found[at])}, is taken as the outlier ({option(setting, found[1 - at])} says "
        "otherwise)"
    )


def outlier_among(
    classes: Sequence[object], counts: Sequence[float], chosen: object, *, name: str, setting: str
) -> tuple[int | None, str]:
    """Where the outlier is among the classes of labels that stay as they are: the chosen one, or
    one of two, with a sentence where that is a guess. Of more than two none is."""
    if len(classes) < 2:
        raise StairError(
            f"{name} has only one class ({classes[0]}), so there is nothing to tell apart; rules "
            "need at least two classes"
        )
    if chosen is None:
        if len(classes) > 2:
            return None, ""
        return outlier_of_two(classes, counts, name=name, setting=setting)
    if len(classes) > 2:
        raise StairError(
            f"{setting}={chosen!r} needs two classes, but {name} has {len(classes)}; leave it out "
            "to score by accuracy"
        )
    if chosen not in classes:
        raise StairError(f"{setting}={chosen!r} is not in {name}, which has {list(classes)}")
    return classes.index(chosen), ""


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
    codes: NDArray[np.int64],
    found: Sequence[Value],
    outliers: Sequence[int],
    meaning: str,
    notes: tuple[str, ...],
    others: int = 0,
) -> Verdict:
    """`others` is the side of values that are not among these, where these are more than two."""
    sides = np.where(codes < 0, -1, np.isin(codes, outliers)).astype(np.int32)
    inliers = [at for at in _sorted(found) if at not in outliers]
    values = tuple(tuple(found[at] for at in side) for side in (inliers, outliers))
    codebook = Codebook(values, others if len(found) > 2 else None)
    return Verdict(sides, TWO_CLASSES, 1, meaning, notes, codebook=codebook)


# Scores


def numbers_in(scores: object, name: str) -> NDArray[np.float64]:
    """Scores as numbers, NaN where missing; words, dates and flags are no scores."""
    what = f'the scores "{name}"'
    items = plain_values(scores, what)
    if isinstance(items, np.ndarray):
        if items.dtype.kind == "b":
            raise StairError(
                f"{what} are true or false; expected numbers, or give them as {option('labels')}"
            )
        return items.astype(np.float64)
    if len(items) and (quick := _as_numbers(items)) is not None:
        return quick
    cleaned = [canonical(item) for item in items]
    odd = next((x for x in cleaned if isinstance(x, bool | str)), None)
    if odd is not None:
        raise StairError(f"{what} hold {said(odd)}, which is not a number; expected numbers")
    return np.array([math.nan if x is None else float(x) for x in cleaned], dtype=np.float64)


def _as_numbers(items: list[object]) -> NDArray[np.float64] | None:
    """The usual case, a list of nothing but numbers, without a look at each of them."""
    try:
        array = np.asarray(items)
    except ValueError:  # lists of different lengths
        return None
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        return None
    return array.astype(np.float64)


def wanted_outliers(contamination: object, n_rows: int) -> tuple[int, str]:
    """How many rows to call outliers, and that in words: an int is their number, a float their
    share."""
    number = contamination.item() if isinstance(contamination, np.generic) else contamination
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= n_rows / 2:
        return number, "the row" if number == 1 else f"the {number:,} rows"
    if isinstance(number, float) and 0 < number <= 0.5:
        return max(1, round(number * n_rows)), f"the {100 * number:.4g}%"
    most = f" (at most half of the {n_rows:,})" if isinstance(number, int) and number > 1 else ""
    raise StairError(
        f"{option('contamination', number)}; expected a share above 0 and at most 0.5, "
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
