"""What counts of then and now allow to say: a share with its interval, a fall that is no chance.

Both sides are uncertain: a rule that was right in 60 of 60 rows is not right for certain. So shares
are compared by Fisher's test, with half of the probability of what was seen (mid-p: the test by
itself says too rarely that something has changed), and as one of many rules will look bad by
chance, all of a kind are corrected together (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

# Of batches in which nothing has changed at most so many raise an alarm. Most of it is for the
# question that has least rows.
LEVEL: Final = 0.05
FOR_PRECISION: Final = 0.04
FOR_COVERAGE: Final = 0.01
# Rules were chosen because they were good on the rows that they were learned from, so that they are
# a little worse on any others. A fall by less than this part of the share is none.
KEPT: Final = 0.98
# So many times the quantile of a normal distribution on both sides: 95%.
_Z: Final = 1.959963984540054
_BLOCK: Final = 4096
# Terms below this part of the sum so far do not change it.
_NOTHING: Final = 1e-18


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, and where the share behind them is with 95% confidence (Wilson)."""

    hits: int
    rows: int

    @property
    def value(self) -> float:
        return self.hits / self.rows if self.rows else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """From nothing to all where there is no row."""
        if not self.rows:
            return 0.0, 1.0
        n, share, z = self.rows, self.value, _Z
        middle = share + z * z / (2 * n)
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        whole = 1 + z * z / n
        low, high = (middle - half) / whole, (middle + half) / whole
        return (0.0 if not self.hits else max(low, 0.0),
                1.0 if self.hits == n else min(high, 1.0))  # fmt: skip


def chance_of_fall(then: Share, now: Share, kept: float = KEPT) -> float:
    """How likely it is to see so few hits now, or fewer, if the share is at least the part `kept`
    of what it was."""
    if not then.rows or not now.rows:
        return 1.0
    hits = math.floor(kept * then.hits + 0.5)
    return _lower_tail(now.hits, now.rows, hits, then.rows)


def chance_of_rise(then: Share, now: Share, times: float) -> float:
    """The same for so many hits or more, if the share is at most so many times what it was."""
    return chance_of_fall(now, then, 1 / times)


def chance_of_part(then: Share, now: Share, part: float) -> float:
    """How likely it is to see so few hits now, or fewer, if the share is at least this part of what
    it was: by the score test for a ratio of shares (Koopman), for which counts need not be few. It
    is never below what Fisher's test says of the two shares as they are, which holds of any counts.
    """
    if not then.rows or not now.rows or not then.hits:
        return 1.0
    # The likeliest share then, if that now were just this part of it.
    a = part * (now.rows + then.rows)
    b = now.hits + part * then.hits + part * now.rows + then.rows
    share = (b - math.sqrt(max(b * b - 4 * a * (now.hits + then.hits), 0.0))) / (2 * a)
    less = part * share
    variance = less * (1 - less) / now.rows + part * part * share * (1 - share) / then.rows
    fall = (now.value - part * then.value) / math.sqrt(variance)
    by_score = math.erfc(-fall / math.sqrt(2)) / 2
    return max(by_score, chance_of_fall(then, now, 1.0))


def can_tell(then: Share, rows: int, level: float) -> bool:
    """Whether so many rows are enough to see a fall at all: it would be seen if none were right."""
    return chance_of_fall(then, Share(0, rows)) <= level


def holm(chances: Sequence[float], level: float) -> list[bool]:
    """Which of these are no chance: with all of them together at most `level` of wrong alarms."""
    found = [False] * len(chances)
    for place, k in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[k] > level / (len(chances) - place):
            break
        found[k] = True
    return found


def _lower_tail(seen: int, draws: int, hits: int, others: int) -> float:
    """Of `draws` rows and `others`, `seen` of the former and `hits` of the latter are hits: the
    chance that among the draws there are fewer hits, and half of that of as many."""
    from scipy.special import gammaln

    good, total = seen + hits, draws + others
    bad = total - good
    least = max(0, draws - bad)

    def logs(k: np.ndarray) -> np.ndarray:
        inside: np.ndarray = (
            gammaln(good + 1) - gammaln(k + 1) - gammaln(good - k + 1)
            + gammaln(bad + 1) - gammaln(draws - k + 1) - gammaln(bad - draws + k + 1)
            - (gammaln(total + 1) - gammaln(draws + 1) - gammaln(others + 1))
        )  # fmt: skip
        return inside

    tail = 0.5 * math.exp(float(logs(np.array([float(seen)]))[0]))
    k = seen - 1
    while k >= least:
        here = np.exp(logs(np.arange(k, max(least, k - _BLOCK + 1) - 1, -1, dtype=np.float64)))
        tail += float(here.sum())
        k -= len(here)
        if here[-1] < _NOTHING * tail and here[-1] <= here[0]:
            break  # they only get smaller
    return min(tail, 1.0)
