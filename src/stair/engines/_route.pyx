# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The hot loops of counting by level: which rule a row belongs to, and one more for its codes.

`counting.py` has the same in plain numpy, which is the oracle in the tests.
"""

from libc.math cimport INFINITY, log2
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc

import numpy as np

ctypedef fused Code:
    uint8_t
    uint16_t


def route(
    list codes,
    const uint8_t[::1] labels,
    const int32_t[::1] column,
    const int32_t[::1] cut,
    const int64_t[::1] table,
    const uint8_t[::1] left_of,
    const int32_t[::1] left,
    const int32_t[::1] right,
    const int32_t[::1] slot,
    int64_t per_slot,
    Py_ssize_t start,
    Py_ssize_t stop,
):
    """The rows from start to stop that are counted, and where the counts of their class begin."""
    cdef Py_ssize_t n_columns = len(codes), i, j, found = 0
    cdef int32_t node, at
    cdef int64_t code
    cdef const uint8_t[::1] narrow
    cdef const uint16_t[::1] wide
    rows_array = np.empty(stop - start, dtype=np.int32)
    places_array = np.empty(stop - start, dtype=np.int64)
    cdef int32_t[::1] rows = rows_array
    cdef int64_t[::1] places = places_array
    cdef const uint8_t** narrows = <const uint8_t**>malloc(n_columns * sizeof(void*))
    cdef const uint16_t** wides = <const uint16_t**>malloc(n_columns * sizeof(void*))
    if narrows == NULL or wides == NULL:
        free(narrows)
        free(wides)
        raise MemoryError("not enough memory to count")
    try:
        for j in range(n_columns):
            narrows[j] = NULL
            wides[j] = NULL
            if codes[j].shape[0] == 0:
                continue
            if codes[j].dtype == np.uint8:
                narrow = codes[j]
                narrows[j] = &narrow[0]
            else:
                wide = codes[j]
                wides[j] = &wide[0]
        with nogil:
            for i in range(start, stop):
                node = 0
                at = column[0]
                while at >= 0:
                    code = wides[at][i] if wides[at] != NULL else narrows[at][i]
                    if table[node] < 0:
                        node = left[node] if code <= cut[node] else right[node]
                    else:
                        node = left[node] if left_of[table[node] + code] else right[node]
                    at = column[node]
                if slot[node] >= 0:
                    rows[found] = <int32_t>i
                    places[found] = slot[node] * per_slot + labels[i]
                    found += 1
    finally:
        free(narrows)
        free(wides)
    return rows_array[:found], places_array[:found]


def tally(
    const Code[::1] codes,
    const int32_t[::1] rows,
    const int64_t[::1] places,
    int64_t start,
    int64_t n_classes,
    int64_t[::1] counts,
):
    """One more for the code of each of these rows."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(rows.shape[0]):
            counts[places[i] + start + codes[rows[i]] * n_classes] += 1


def bin_numbers(const double[::1] values, const double[::1] edges, int missing, Code[::1] codes):
    """The first bin whose edge is not below each value: a search without branches to miss."""
    cdef Py_ssize_t i, n_edges = edges.shape[0], low, length, half
    cdef double x
    with nogil:
        for i in range(values.shape[0]):
            x = values[i]
            if x != x:
                codes[i] = <Code>missing
                continue
            low = 0
            length = n_edges
            while length > 0:
                half = length >> 1
                low += (length - half) * (edges[low + half] < x)
                length = half
            codes[i] = <Code>low


cdef inline double xlog2x(int64_t count) noexcept nogil:
    return count * log2(<double>count) if count > 0 else 0.0


def near_best(
    const int64_t[:, ::1] counts,
    const int64_t[::1] starts,
    const uint8_t[::1] wanted,
    double share,
    int32_t[:, ::1] codes,
    uint8_t[:, ::1] sides,
    int64_t[:, :, ::1] lefts,
    int32_t[::1] found,
):
    """Of each column that is wanted the cuts whose gain is the largest, or so near to it that only
    exact sums can tell: their codes and sides, and the counts on the left. One that is so many that
    there is no room for them is found -1 times."""
    cdef Py_ssize_t n_columns = wanted.shape[0], n_classes = counts.shape[1], most = codes.shape[1]
    cdef Py_ssize_t j, k, code, missing, before, widest = 0, n, side
    cdef int kind, last_kind, n_here
    cdef bint has_missing
    cdef int64_t total, part, here
    cdef double base, all_left, all_right, gain, best, least
    for j in range(n_columns):
        widest = max(widest, starts[j + 1] - starts[j])
    cdef double* gains = <double*>malloc(2 * widest * sizeof(double))
    cdef int64_t* left = <int64_t*>malloc(2 * n_classes * sizeof(int64_t))
    if gains == NULL or left == NULL:
        free(gains)
        free(left)
        raise MemoryError("not enough memory to search")
    cdef int64_t* totals = left + n_classes
    with nogil:
        for j in range(n_columns):
            found[j] = 0
            if not wanted[j]:
                continue
            missing = starts[j + 1] - 1
            has_missing = False
            total = 0
            for k in range(n_classes):
                left[k] = 0
                totals[k] = 0
                has_missing = has_missing or counts[missing, k] > 0
            for code in range(starts[j], starts[j + 1]):
                gains[2 * (code - starts[j])] = -INFINITY
                gains[2 * (code - starts[j]) + 1] = -INFINITY
                for k in range(n_classes):
                    totals[k] += counts[code, k]
            base = 0.0
            for k in range(n_classes):
                base += xlog2x(totals[k])
                total += totals[k]
            base -= xlog2x(total)
            best = -INFINITY
            before = -1
            last_kind = -1
            for code in range(starts[j], missing + 1):
                n_here = 0
                kind = -1
                if code < missing:
                    for k in range(n_classes):
                        if counts[code, k] > 0:
                            n_here += 1
                            kind = <int>k
                    if n_here == 0:
                        continue
                    if n_here > 1:
                        kind = -1
                # The value before this one, now that it is known what comes after it.
                if before >= 0 and (
                    has_missing if code == missing else kind < 0 or kind != last_kind
                ):
                    for side in range(2):
                        if side == 1 and (not has_missing or code == missing):
                            break
                        part = 0
                        all_left = 0.0
                        all_right = 0.0
                        for k in range(n_classes):
                            here = left[k] + (counts[missing, k] if side else 0)
                            part += here
                            all_left += xlog2x(here)
                            all_right += xlog2x(totals[k] - here)
                        gain = all_left - xlog2x(part) + all_right - xlog2x(total - part) - base
                        gains[2 * (before - starts[j]) + side] = gain
                        if gain > best:
                            best = gain
                if code == missing:
                    break
                for k in range(n_classes):
                    left[k] += counts[code, k]
                before = code
                last_kind = kind
            if best == -INFINITY:
                continue
            least = best - share * (total * log2(<double>total) if total > 1 else 0.0)
            n = 0
            for k in range(n_classes):
                left[k] = 0
            for code in range(starts[j], missing):
                for k in range(n_classes):
                    left[k] += counts[code, k]
                for side in range(2):
                    if gains[2 * (code - starts[j]) + side] >= least:
                        if n == most:
                            n = -1
                            break
                        codes[j, n] = <int32_t>(code - starts[j])
                        sides[j, n] = <uint8_t>side
                        for k in range(n_classes):
                            lefts[j, n, k] = left[k] + (counts[missing, k] if side else 0)
                        n += 1
                if n < 0:
                    break
            found[j] = <int32_t>n
    free(gains)
    free(left)
