# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The hot loops of the matcher: each number among the bounds of a column, and its row's rules less
those that the bounds rule out. `_match_twin.py` does the same slowly in numpy and is the oracle in
the tests.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc


cdef enum:
    TOGETHER = 16  # rows that are looked up side by side: no one waits for another


def narrow(
    uint64_t[:, ::1] bits, const double[::1] x, const double[::1] edges,
    const uint64_t[:, ::1] table
):
    """Keep of each row's rules those that its number leaves possible: the cell of a number is how
    many edges lie below it, and one more than all where it is missing."""
    cdef Py_ssize_t n = x.shape[0], words = bits.shape[1], n_edges = edges.shape[0]
    cdef Py_ssize_t i, k, w, start, here, size = 1, step
    cdef Py_ssize_t cells[TOGETHER]
    cdef double values[TOGETHER]
    while size <= n_edges:
        size *= 2
    # As many as a search by halves looks at, so that it takes the same steps for every number.
    cdef double* bounds = <double*>malloc(size * sizeof(double))
    if bounds == NULL:
        raise MemoryError("not enough memory for the bounds of a column")
    with nogil:
        for i in range(size):
            bounds[i] = edges[i] if i < n_edges else INFINITY
        start = 0
        while start < n:
            here = min(TOGETHER, n - start)
            for k in range(TOGETHER):
                values[k] = x[start + k] if k < here else 0.0
                cells[k] = 0
            step = size >> 1
            while step > 0:
                for k in range(TOGETHER):
                    cells[k] += step & -<Py_ssize_t>(bounds[cells[k] + step - 1] < values[k])
                step >>= 1
            for k in range(TOGETHER):
                if values[k] != values[k]:
                    cells[k] = n_edges + 1
            if words == 1:
                for k in range(here):
                    bits[start + k, 0] &= table[cells[k], 0]
            elif words == 2:
                for k in range(here):
                    bits[start + k, 0] &= table[cells[k], 0]
                    bits[start + k, 1] &= table[cells[k], 1]
            else:
                for k in range(here):
                    for w in range(words):
                        bits[start + k, w] &= table[cells[k], w]
            start += TOGETHER
    free(bounds)


def narrow_by_cells(
    uint64_t[:, ::1] bits, const Py_ssize_t[::1] cells, const uint64_t[:, ::1] table
):
    """The same where the cells are known."""
    cdef Py_ssize_t n = cells.shape[0], words = bits.shape[1], i, w
    with nogil:
        for i in range(n):
            for w in range(words):
                bits[i, w] &= table[cells[i], w]


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int lowest_bit(unsigned long long word) {
        unsigned long place = 0;
    #if defined(_M_X64) || defined(_M_ARM64)
        _BitScanForward64(&place, word);
    #else
        if (_BitScanForward(&place, (unsigned long)word)) return (int)place;
        _BitScanForward(&place, (unsigned long)(word >> 32));
        place += 32;
    #endif
        return (int)place;
    }
    #else
    static int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    #endif
    """
    int lowest_bit(uint64_t word) nogil


def first_of(const uint64_t[:, ::1] bits, Py_ssize_t[::1] found):
    """The place of the first bit that is set in each row, or −1."""
    cdef Py_ssize_t n = bits.shape[0], words = bits.shape[1], i, w, place
    with nogil:
        for i in range(n):
            place = -1
            for w in range(words):
                if bits[i, w]:
                    place = 64 * w + lowest_bit(bits[i, w])
                    break
            found[i] = place
