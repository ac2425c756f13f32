"""The demo's data: card payments with four planted kinds of fraud, the same on every machine."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from stair.data.frame import Array

N_ROWS: Final = 5000

# What was planted, in words: what good rules should find again.
KINDS_OF_FRAUD: Final = (
    "large amounts from outside DE, FR and NL",
    "electronics between midnight and five",
    "refunds of almost nothing",
    "sizeable amounts without a device",
)

_COUNTRIES = ("DE", "FR", "NL", "IT", "ES", "US", "GB", "PL", "RO", "BR")
_MERCHANTS = ("groceries", "fuel", "electronics", "travel", "clothing", "restaurant", "games")
_DEVICES = ("phone", "laptop", "terminal", "tablet")
_OPENINGS = ("weekly", "monthly", "card payment for", "order of", "thank you for the", "invoice")
_THINGS = ("shopping", "ticket", "subscription", "dinner with friends", "fuel", "new shoes", "gift")
_ENDINGS = ("paid in full", "see you soon", "order number on the receipt", "no further action")


def payments() -> dict[str, Array]:
    """About 5,000 payments; `flagged` is 1 for the fraud that a detector would have found.

    A few flags are there without any reason and a few frauds are missed, as in life.
    """
    # The old generator: its stream of numbers is frozen for all versions of numpy.
    rng = np.random.RandomState(20240229)
    n = N_ROWS

    def choose(options: tuple[str, ...], shares: list[float] | None = None) -> Array:
        return rng.choice(np.array(options, dtype=object), size=n, p=shares)

    amount = np.round(np.exp(rng.normal(3.6, 1.1, n)), 2)
    amount = np.minimum(amount, 3900.0)
    hour = np.clip(np.round(rng.normal(14, 4.5, n)), 0, 23).astype(np.int64)
    country = choose(_COUNTRIES, [0.28, 0.18, 0.14, 0.1, 0.08, 0.07, 0.06, 0.04, 0.03, 0.02])
    merchant = choose(_MERCHANTS)
    device = choose(_DEVICES, [0.5, 0.2, 0.2, 0.1])
    note = np.array(
        [
            " ".join(words)
            for words in zip(choose(_OPENINGS), choose(_THINGS), choose(_ENDINGS), strict=True)
        ],
        dtype=object,
    )
    minute = rng.randint(0, 60, n)
    day = rng.randint(0, 90, n)

    def refund() -> str:
        return (
            f"refund of {_THINGS[rng.randint(len(_THINGS))]} {_ENDINGS[rng.randint(len(_ENDINGS))]}"
        )

    kind = np.zeros(n, dtype=np.int64)
    where = rng.permutation(n)
    sizes = (75, 60, 45, 40)
    starts = np.cumsum([0, *sizes])
    for number, (start, end) in enumerate(pairwise(starts.tolist()), start=1):
        kind[where[start:end]] = number
    foreign = [name for name in _COUNTRIES if name not in ("DE", "FR", "NL")]
    for row in where[: starts[-1]]:
        if kind[row] == 1:
            amount[row] = round(float(rng.uniform(4200, 9000)), 2)
            country[row] = foreign[rng.randint(len(foreign))]
        elif kind[row] == 2:
            hour[row], merchant[row] = rng.randint(0, 5), "electronics"
        elif kind[row] == 3:
            note[row] = refund()
            amount[row] = round(float(rng.uniform(0.05, 1.95)), 2)
        else:
            device[row] = None
            amount[row] = round(float(rng.uniform(960, 3900)), 2)
    # Honest payments that look like half of a fraud: each clause alone is not enough.
    honest = where[starts[-1] :]
    large = honest[:60]
    amount[large] = np.round(rng.uniform(4200, 9000, 60), 2)
    country[large] = np.array(("DE", "FR", "NL"), dtype=object)[rng.randint(0, 3, 60)]
    for row in honest[60:360]:
        note[row] = refund()
        amount[row] = max(amount[row], 12.0)
    for row in honest[360:560]:
        device[row] = None
        amount[row] = min(amount[row], 900.0)
    late = honest[560:760]
    hour[late] = rng.randint(0, 5, len(late))
    tiny = honest[760:1060]
    amount[tiny] = np.round(rng.uniform(0.05, 1.95, len(tiny)), 2)
    sizeable = honest[1060:1460]
    amount[sizeable] = np.round(rng.uniform(960, 3900, len(sizeable)), 2)
    night = (kind == 0) & (hour < 5) & (merchant == "electronics")
    merchant[night] = "restaurant"
    unexplained = (kind == 0) & (device == None) & (amount > 900)  # noqa: E711
    amount[unexplained] = np.round(rng.uniform(5, 900, int(unexplained.sum())), 2)

    flagged = (kind > 0).astype(np.int64)
    flagged[honest[2000:2008]] = 1  # flagged for no reason
    flagged[where[:6]] = 0  # missed
    note[rng.permutation(n)[:200]] = None
    # A missing note must not hide a planted refund.
    lost = (kind == 3) & np.array([v is None for v in note.tolist()])
    note[lost] = [refund() for _ in range(int(lost.sum()))]
    paid_at = (
        np.datetime64("2024-01-01T00:00:00", "us")
        + day.astype("timedelta64[D]")
        + hour.astype("timedelta64[h]")
        + minute.astype("timedelta64[m]")
    )
    return {
        "id": np.array([f"P{number:05d}" for number in range(n)], dtype=object),
        "paid_at": paid_at,
        "amount": amount,
        "hour": hour,
        "country": country,
        "merchant": merchant,
        "device": device,
        "note": note,
        "flagged": flagged,
    }
