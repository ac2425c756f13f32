"""One day of CSE-CIC-IDS2018 as its publishers give it: the paper's Thursday-01-03.

The public file has 80 columns and the paper has 68 attributes, without saying which. Here they are
all but the time, the label and ten counters that the authors' code leaves out too. Its header
comes again every so often between the rows, and a rate is written as Infinity or NaN where a
flow took no time. The paper uses a tenth of the rows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

FILENAME: Final = "Thursday-01-03-2018_TrafficForML_CICFlowMeter.csv"
SAMPLE: Final = 0.1
NOT_ATTRIBUTES: Final = frozenset({"Timestamp", "Label"})
LEFT_OUT: Final = frozenset(
    {
        "Bwd PSH Flags", "Fwd URG Flags", "Bwd URG Flags", "CWE Flag Count",
        "Fwd Byts/b Avg", "Fwd Pkts/b Avg", "Fwd Blk Rate Avg",
        "Bwd Byts/b Avg", "Bwd Pkts/b Avg", "Bwd Blk Rate Avg",
    }
)  # fmt: skip


def is_public(path: Path) -> bool:
    """Whether this is a file as CICFlowMeter writes it, and not one that somebody prepared."""
    return set(_header(path)) >= NOT_ATTRIBUTES


def read_public(
    path: Path, sample: float = SAMPLE, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[str, ...]]:
    """A sample of the rows that are complete: attributes, 1 for an attack, and names.

    The rows are drawn before incomplete ones are left out, so that which rows these are does not
    change the draw. Raises ValueError for a row that is not of this shape.
    """
    header = _header(path)
    wanted = [i for i, name in enumerate(header) if name not in NOT_ATTRIBUTES | LEFT_OUT]
    at = header.index("Label")
    n_rows = sum(1 for _ in _rows(path, header))
    drawn = np.random.default_rng(seed).permutation(n_rows)[: math.ceil(n_rows * sample)]
    chosen = np.zeros(n_rows, dtype=np.bool_)
    chosen[drawn] = True
    table, labels = [], []
    for take, (line, row) in zip(chosen, _rows(path, header), strict=True):
        if not take:
            continue
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} values, the header {len(header)} names")
        try:
            values = [float(row[i]) for i in wanted]
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        label = row[at].strip().casefold()
        if not label:
            raise ValueError(f"line {line} has no label")
        if all(map(math.isfinite, values)):
            table.append(values)
            labels.append(int(label != "benign"))
    if not table:
        raise ValueError("there is no complete row in the sample")
    names = tuple(header[i] for i in wanted)
    return np.array(table), np.array(labels, dtype=np.int64), names


def _header(path: Path) -> list[str]:
    # utf-8-sig: spreadsheets put a byte order mark before the first column's name.
    with path.open(encoding="utf-8-sig", newline="") as text:
        return [name.strip() for name in next(csv.reader(text), [])]


def _rows(path: Path, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows with their line numbers, without the headers in between."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        for row in reader:
            if row and row[0].strip() != header[0]:
                yield reader.line_num, row
