"""Whether rules hold: what the same way of learning scores on rows that it has not seen.

Each row is judged once by rules that were learned without it. From that come the score on rows
kept aside, a conclusion in words, and for each rule how many of its rows others, learned without
them, would have found: a rule that is a memory of its rows is found again by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.rules.objective import f1, score_of_classes

Conclusion: TypeAlias = Literal["hold", "hold partly", "describe these rows only"]

# The quick check has three folds, or two where there are so many outliers that half are plenty.
MANY_OUTLIERS: Final = 1000
# Fewer outliers than this say nothing when some of them are kept aside.
FEWEST: Final = 6
# Of what rules are better than chance on the rows that they were learned from, this much must be
# left on others, for rules that hold, and that hold partly.
HOLDS: Final = 0.75
HOLDS_PARTLY: Final = 0.4
# A rule falls apart where rules learned without its rows find fewer of its outliers than this.
FOUND_AGAIN: Final = 0.5

Rows: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Check:
    """What rules learned in the same way score on rows kept aside.

    `scores` are those of the folds; `score` is that of all rows together, each judged by rules that
    were learned without it, and `chance` what so many alarms would score at random. For each rule
    `found_again` is the share of its own rows that such rules give the same label.
    """

    scores: tuple[float, ...]
    score: float
    chance: float
    learned: float  # the score on the rows that the rules were learned from
    found_again: tuple[float, ...] = ()
    of_kinds: tuple[float, ...] = ()  # the score of each kind of outlier, where there are several
    # Of what the rules of each kind are better than chance, how much is left; 1 without rules.
    left_of_kinds: tuple[float, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        left = _left(self.score, self.learned, self.chance)
        if left >= HOLDS and min(self.left_of_kinds, default=left) >= HOLDS_PARTLY:
            return "hold"
        return "hold partly" if left >= HOLDS_PARTLY else "describe these rows only"

    @property
    def falling(self) -> tuple[int, ...]:
        """The numbers (from 1) of the rules that fall apart."""
        return tuple(k for k, s in enumerate(self.found_again, start=1) if s < FOUND_AGAIN)


def _left(score: float, learned: float, chance: float) -> float:
    """Of what rules are better than chance where they were learned, the part left elsewhere."""
    better = learned - chance
    return max(0.0, (score - chance) / better) if better > 0 else 0.0


def quick_folds(n_outliers: int, *, cheaper: bool) -> int:
    """How many folds the quick check has; 0 where there are too few outliers for any.

    Its cost stays below that of learning: two folds learn from half of the rows each. Where
    learning with less effort is `cheaper` by far, there may be three.
    """
    if n_outliers < FEWEST:
        return 0
    return 3 if cheaper and n_outliers <= MANY_OUTLIERS else 2


def chance_of(
    predicted: NDArray[np.bool_],
    actual: NDArray[np.bool_],
    counts: NDArray[np.int64] | None = None,
) -> float:
    """The F1 that so many alarms have on average if they fall on rows at random; what is a row here
    may stand for more of them."""
    times = np.ones(len(actual), dtype=np.int64) if counts is None else counts
    n_rows, alarms, outliers = (int(times[which].sum()) for which in (..., predicted, actual))
    return f1(alarms * outliers / n_rows, alarms, outliers) if n_rows else 0.0


def out_of_fold(
    learn: Callable[[Rows], Callable[[Rows], NDArray[np.intp]]],
    codes: NDArray[np.int32],
    folds: int,
    say: Callable[[int], object],
) -> tuple[NDArray[np.intp], list[Rows]] | None:
    """The class of each row by rules that were learned without it, and the rows of each fold.

    `learn` takes the rows to learn from and gives what predicts others. Each class is spread over
    the folds alike. None where whoever is told has had enough.
    """
    fold = np.empty(len(codes), dtype=np.intp)
    random, start = np.random.default_rng(0), 0
    for k in range(int(codes.max()) + 1):
        rows = random.permutation(np.flatnonzero(codes == k))
        fold[rows] = (start + np.arange(len(rows))) % folds
        start += len(rows)
    predicted = np.empty(len(codes), dtype=np.intp)
    tested: list[Rows] = []
    for number in range(folds):
        if say(number + 1) is True:
            return None
        test = np.flatnonzero(fold == number)
        predicted[test] = learn(np.flatnonzero(fold != number))(test)
        tested.append(test)
    return predicted, tested


def check_of(
    predicted: NDArray[np.intp],
    tested: Sequence[Rows],
    codes: NDArray[np.int32],
    learned: NDArray[np.intp],
    positive: int | None,
    own_rows: Sequence[NDArray[np.bool_]],
    labels: Sequence[int],
    kinds: Sequence[int] = (),
    counts: NDArray[np.int64] | None = None,
) -> Check:
    """From the class of each row by rules learned without it, and by the rules themselves.

    `own_rows` are those that each rule covers rightly, `labels` its class. With several kinds of
    outlier the score is the mean of theirs. What stands for a row here may stand for more of them,
    as many as `counts` says.
    """
    times = np.ones(len(codes), dtype=np.int64) if counts is None else counts

    def score(given: NDArray[np.intp], rows: Rows) -> float:
        of = kinds or (positive,)
        return float(
            np.mean([score_of_classes(given[rows], codes[rows], k, times[rows]) for k in of])
        )

    wanted = list(kinds) if positive is None else [positive]
    chances = [chance_of(predicted == k, codes == k, times) for k in wanted]
    if wanted:
        chance = float(np.mean(chances))
    else:
        chance = float(np.bincount(codes, times).max() / times.sum())
    found_again = tuple(
        int(times[rows & (predicted == label)].sum()) / int(times[rows].sum())
        if rows.any()
        else 0.0
        for rows, label in zip(own_rows, labels, strict=True)
    )
    everything = np.arange(len(codes))
    of_kinds = tuple(score_of_classes(predicted, codes, k, times) for k in kinds)
    left_of_kinds = tuple(
        _left(score, score_of_classes(learned, codes, k, times), by_chance) if k in labels else 1.0
        for k, score, by_chance in zip(kinds, of_kinds, chances, strict=False)
    )
    return Check(
        tuple(score(predicted, rows) for rows in tested),
        score(predicted, everything),
        chance,
        score(learned, everything),
        found_again,
        of_kinds,
        left_of_kinds,
    )
