"""Whatever somebody gives as a random state, as one seed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from stair.errors import StairError, option

LARGEST: Final = 2**32 - 1  # of NumPy's older generators, and so of scikit-learn


def seed_of(random_state: Any) -> int:
    """None is the same as 0; a generator gives a seed, and goes on by one number."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    is_whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_whole or not 0 <= random_state <= LARGEST:
        raise StairError(
            f"{option('random_state', random_state)}; expected a whole number from 0 to {LARGEST}, "
            "or in Python a NumPy generator or None"
        )
    return int(random_state)
