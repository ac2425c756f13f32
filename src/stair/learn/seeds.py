"""Whatever is given as a random state, as one seed."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from stair.errors import StairError, option

LARGEST: Final = 2**32 - 1  # of NumPy's older generators, and so of scikit-learn

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


def check_random_state(random_state: object) -> None:
    """Refuse what is no random state, and draw nothing from one."""
    if random_state is None or isinstance(
        random_state, np.random.RandomState | np.random.Generator
    ):
        return
    is_whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_whole or not 0 <= int(random_state) <= LARGEST:  # type: ignore[call-overload]
        raise StairError(
            f"{option('random_state', random_state)}; expected a whole number from 0 to {LARGEST}, "
            "or in Python a NumPy generator or None"
        )


def seed_of(random_state: RandomState) -> int:
    """None is the same as 0; a generator gives a seed, and goes on by one number."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return 0 if random_state is None else int(random_state)
