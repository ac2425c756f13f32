# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The hot loops of counting by level: which rule a row belongs to, and one more for its codes.

`counting.py` has the same in plain numpy, which is the oracle in the tests.
"""

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
