"""Numbers of bytes as people say them."""

from __future__ import annotations


def size(n_bytes: int) -> str:
    """Three digits and a unit: "1.5 GB"."""
    for unit, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {word}"
    return f"{n_bytes} bytes"
