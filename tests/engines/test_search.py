"""The best split of one rule among what an engine finds in its columns."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import examples

from stair.engines.search import Gains, Split, best_split
from stair.rules.objective import extra_length

TINY = 0.25


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.sampled_from([math.nan, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0]), max_size=9),
    st.randoms(use_true_random=False),
    st.integers(0, 4),
)
def test_the_cheapest_split_is_found_in_one_look(
    gains: list[float], random: Random, length: int
) -> None:
    """One look at all columns finds what a search of all splits finds, of which the first of equals
    wins: the best of the rule's own attributes, the best of the others, the cheaper of these."""
    columns = random.sample(range(20), len(gains))
    used = frozenset(random.sample(range(20), random.choice([0, 0, 1, 5])))
    found = Gains(gains, [10 * k for k in range(len(gains))], [k % 2 for k in range(len(gains))])
    best: Split | None = None
    for is_new in (False, True):
        own = [k for k, column in enumerate(columns)
               if (column not in used) == is_new and gains[k] > TINY]  # fmt: skip
        if own:
            k = max(own, key=lambda k: (gains[k], -k))
            split = Split(columns[k], 10 * k, k % 2 == 1, gains[k], extra_length(length, is_new))
            if best is None or (split.price, -split.gain) < (best.price, -best.gain):
                best = split
    assert best_split(found, columns, used, length, TINY) == best
