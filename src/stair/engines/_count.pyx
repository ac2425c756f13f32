# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The hot kernel: sorted columns, scanned for their best cut and divided with their rows.

Each column is an array of entries, sorted by code once: the code of a value, the row, and in the
last bit whether the row is of the second class. They are 32 bits wide where that is enough, else
64. A group of rows is the same slice [start, end) of every column, so that a scan reads memory in
order and a division is one stable pass. `_twin.py` does the same slowly in numpy and is the oracle
in the tests.

Counts are integers (weights are fixed-point integers), so no sum depends on the order of rows.
"""

from libc.math cimport NAN, isnan, log2
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy as np

cdef enum:
    DIGIT_BITS = 11
    DIGITS = 6
    BUCKETS = 2048

ctypedef fused Entry:
    uint32_t
    uint64_t


cdef struct Best:
    double gain
    int64_t cut
    int missing_left


cdef inline uint64_t sort_key(double x) noexcept nogil:
    """Bits that sort like the number: NaN last, and −0 equal to 0."""
    cdef uint64_t bits
    if isnan(x):
        return ~<uint64_t>0
    x = x + 0.0
    memcpy(&bits, &x, 8)
    if bits >> 63:
        return ~bits
    return bits | (<uint64_t>1 << 63)


def sort_columns(const double[:, :] X, const int64_t[::1] columns, const int32_t[::1] labels):
    """For each of these columns: its entries in order of the values, and the code of missing (−1).

    A radix sort of the numbers' bits. A wide column keeps one of the sort's buffers as its own.
    """
    cdef Py_ssize_t n = X.shape[0], k
    cdef int below = bits_for(n) + 1  # the bits below the code: row and label
    cdef uint64_t[::1] first, second
    cdef uint32_t[::1] narrow
    cdef bint in_first
    cdef int64_t missing
    cdef uint64_t n_codes
    found = []
    if n == 0:
        return [(np.empty(0, dtype=np.uint32), -1) for _ in range(columns.shape[0])]
    cdef uint32_t* rows = <uint32_t*>malloc(2 * n * sizeof(uint32_t))
    cdef uint32_t* histogram = <uint32_t*>malloc(BUCKETS * sizeof(uint32_t))
    cdef uint32_t* sorted_rows
    if rows == NULL or histogram == NULL:
        free(rows)
        free(histogram)
        raise MemoryError("not enough memory to sort a column")
    try:
        first_array, second_array = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
        for k in range(columns.shape[0]):
            first, second = first_array, second_array
            with nogil:
                in_first = sort_column(X, columns[k], &first[0], &second[0], rows, histogram)
                sorted_rows = rows if in_first else rows + n
                if not in_first:
                    first, second = second, first
                missing = -1
                n_codes = codes_in_place(&first[0], n, &missing)
            if below + bits_for(<Py_ssize_t>n_codes) <= 32:
                narrow_array = np.empty(n, dtype=np.uint32)
                narrow = narrow_array
                with nogil:
                    pack(&first[0], sorted_rows, &labels[0], n, below, &narrow[0])
                found.append((narrow_array, missing))
            else:
                with nogil:
                    pack(&first[0], sorted_rows, &labels[0], n, below, &first[0])
                found.append((first_array if in_first else second_array, missing))
                if k + 1 < columns.shape[0]:
                    if in_first:
                        first_array = np.empty(n, dtype=np.uint64)
                    else:
                        second_array = np.empty(n, dtype=np.uint64)
    finally:
        free(rows)
        free(histogram)
    return found


def bits_for(Py_ssize_t n):
    """How many bits it takes to number n things from 0."""
    return max(1, (n - 1).bit_length())


cdef bint sort_column(
    const double[:, :] X, Py_ssize_t column, uint64_t* keys, uint64_t* other_keys, uint32_t* rows,
    uint32_t* bucket,
) noexcept nogil:
    """Sort a column's keys with their rows; whether the result is in the first of the buffers."""
    cdef Py_ssize_t n = X.shape[0], i, digit
    cdef uint64_t* swap_keys
    cdef uint32_t* other_rows = rows + n
    cdef uint32_t* swap_rows
    cdef uint32_t total, count, place
    cdef uint64_t key, differs = 0
    cdef int shift
    cdef bint in_first = True
    for i in range(n):
        key = sort_key(X[i, column])
        keys[i] = key
        rows[i] = <uint32_t>i
        differs |= key ^ keys[0]
    for digit in range(DIGITS):
        shift = <int>digit * DIGIT_BITS
        if (differs >> shift) & (BUCKETS - 1) == 0:
            continue  # all keys agree in this digit
        memset(bucket, 0, BUCKETS * sizeof(uint32_t))
        for i in range(n):
            bucket[(keys[i] >> shift) & (BUCKETS - 1)] += 1
        total = 0
        for i in range(BUCKETS):
            count = bucket[i]
            bucket[i] = total
            total += count
        for i in range(n):
            key = keys[i]
            place = bucket[(key >> shift) & (BUCKETS - 1)]
            bucket[(key >> shift) & (BUCKETS - 1)] += 1
            other_keys[place] = key
            other_rows[place] = rows[i]
        swap_keys = keys
        keys = other_keys
        other_keys = swap_keys
        swap_rows = rows
        rows = other_rows
        other_rows = swap_rows
        in_first = not in_first
    return in_first


cdef uint64_t codes_in_place(uint64_t* keys, Py_ssize_t n, int64_t* missing) noexcept nogil:
    """Sorted keys become codes 0, 1, …; how many there are, and the code of missing."""
    cdef uint64_t previous = keys[0], key, code = 0
    cdef Py_ssize_t i
    for i in range(n):
        key = keys[i]
        if key != previous:
            code += 1
            previous = key
        keys[i] = code
    if previous == ~<uint64_t>0:
        missing[0] = <int64_t>code
    return code + 1


cdef void pack(
    const uint64_t* codes, const uint32_t* rows, const int32_t* labels, Py_ssize_t n, int below,
    Entry* out,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t row
    for i in range(n):
        row = rows[i]
        out[i] = <Entry>((codes[i] << below) | (row << 1) | <uint64_t>(labels[row] == 1))


cdef class Kernel:
    """Sorted columns with the labels of their rows; see the module's words."""

    cdef list columns  # keeps the entries alive
    cdef void** entries
    cdef uint8_t* narrow
    cdef Py_ssize_t n_rows
    cdef int below
    cdef uint64_t row_mask  # of the row, once the label's bit is shifted out
    cdef uint8_t[::1] side
    cdef const int32_t[::1] labels
    cdef const int64_t[::1] weights
    cdef const double[::1] table
    cdef const int64_t[::1] missing
    cdef const uint8_t[::1] unordered
    cdef int n_classes
    cdef bint weighted
    cdef bint tabled
    cdef bint two

    def __cinit__(self, list columns, *_):
        self.entries = <void**>malloc((len(columns) + 1) * sizeof(void*))
        self.narrow = <uint8_t*>malloc(len(columns) + 1)
        if self.entries == NULL or self.narrow == NULL:
            raise MemoryError("not enough memory for the columns")

    def __dealloc__(self):
        free(self.entries)
        free(self.narrow)

    def __init__(self, list columns, labels, weights, table, int n_classes, missing, unordered):
        cdef uint32_t[::1] narrow
        cdef uint64_t[::1] wide
        cdef Py_ssize_t j
        n = len(labels)
        self.columns = columns
        self.n_rows = n
        self.below = bits_for(n) + 1
        self.row_mask = (<uint64_t>1 << (self.below - 1)) - 1
        for j in range(len(columns)):
            self.narrow[j] = columns[j].dtype == np.uint32
            self.entries[j] = NULL
            if n and self.narrow[j]:
                narrow = columns[j]
                self.entries[j] = &narrow[0]
            elif n:
                wide = columns[j]
                self.entries[j] = &wide[0]
        self.side = np.zeros(n, dtype=np.uint8)
        self.labels = labels
        self.weighted = weights is not None
        self.weights = weights if weights is not None else np.empty(0, dtype=np.int64)
        self.tabled = table is not None
        self.table = table if table is not None else np.empty(0)
        self.n_classes = n_classes
        self.two = n_classes == 2 and not self.weighted and self.tabled
        self.missing = missing
        self.unordered = unordered

    def root(self):
        return (0, self.n_rows)

    def counts(self, group):
        """The weight of each class among the rows of the root."""
        cdef Py_ssize_t i
        result = np.zeros(self.n_classes, dtype=np.int64)
        cdef int64_t[::1] out = result
        for i in range(self.n_rows):
            out[self.labels[i]] += self.weights[i] if self.weighted else 1
        return tuple(result.tolist())

    def scan(self, group, const int64_t[::1] columns, tuple totals):
        """For each column: gain in bits of its best cut (NaN if none), the cut, the missing side."""
        cdef Py_ssize_t start, end, k, m = columns.shape[0]
        cdef int64_t j
        start, end = group
        # Room for: totals, left, one value's counts, missing, trial.
        cdef int64_t* room = <int64_t*>malloc(5 * self.n_classes * sizeof(int64_t))
        cdef Best* best = <Best*>malloc((m + 1) * sizeof(Best))
        if room == NULL or best == NULL:
            free(room)
            free(best)
            raise MemoryError("not enough memory to scan a group")
        try:
            for k in range(self.n_classes):
                room[k] = totals[k]
            with nogil:
                for k in range(m):
                    j = columns[k]
                    best[k].gain = NAN
                    best[k].cut = 0
                    best[k].missing_left = 0
                    if self.unordered[j]:
                        with gil:
                            self.scan_sets(j, start, end, &best[k])
                    elif self.narrow[j]:
                        if self.two:
                            self.scan_two(<uint32_t*>self.entries[j], j, start, end, room, &best[k])
                        else:
                            self.scan_many(<uint32_t*>self.entries[j], j, start, end, room, &best[k])
                    elif self.two:
                        self.scan_two(<uint64_t*>self.entries[j], j, start, end, room, &best[k])
                    else:
                        self.scan_many(<uint64_t*>self.entries[j], j, start, end, room, &best[k])
            return (
                [best[k].gain for k in range(m)],
                [best[k].cut for k in range(m)],
                [best[k].missing_left for k in range(m)],
            )
        finally:
            free(room)
            free(best)

    cdef inline double xlog2x(self, int64_t k) noexcept nogil:
        if self.tabled:
            return self.table[k]
        return k * log2(<double>k) if k else 0.0

    cdef double negentropy(self, const int64_t* counts) noexcept nogil:
        cdef int64_t total = counts[0]
        cdef double result = self.xlog2x(counts[0])
        cdef int k
        for k in range(1, self.n_classes):
            result += self.xlog2x(counts[k])
            total += counts[k]
        return result - self.xlog2x(total)

    cdef void scan_two(
        self, const Entry* e, Py_ssize_t column, Py_ssize_t start, Py_ssize_t end,
        const int64_t* totals, Best* found,
    ) noexcept nogil:
        """Two classes and no weights: the case that must be fast."""
        cdef int shift = self.below
        cdef const double* g = &self.table[0]
        cdef Py_ssize_t i = start, j, values_end = end
        cdef int64_t t0 = totals[0], t1 = totals[1], a = 0, b = 0, p, m0 = 0, m1 = 0, here
        cdef int64_t missing = self.missing[column]
        cdef Entry code, last = 0
        cdef int kind, previous = 3
        cdef double base = g[t0] + g[t1] - g[t0 + t1], gain, best = NAN
        if missing >= 0:
            while values_end > start and <int64_t>(e[values_end - 1] >> shift) == missing:
                values_end -= 1
                m1 += e[values_end] & 1
            m0 = end - values_end - m1
        while i < values_end:
            code = e[i] >> shift
            p = 0
            j = i
            while j < values_end and (e[j] >> shift) == code:
                p += e[j] & 1
                j += 1
            here = j - i
            kind = 0 if p == 0 else (1 if p == here else 2)
            # Within a run of one class no cut is ever best: the gain is convex there.
            if i > start and (kind == 2 or kind != previous):
                gain = ((g[a] + g[b] - g[a + b])
                        + (g[t0 - a] + g[t1 - b] - g[t0 + t1 - a - b])) - base
                if not gain <= best:
                    best = gain
                    found.cut = <int64_t>last
                    found.missing_left = 0
                if m0 + m1:
                    gain = ((g[a + m0] + g[b + m1] - g[a + m0 + b + m1])
                            + (g[t0 - a - m0] + g[t1 - b - m1]
                               - g[t0 + t1 - a - m0 - b - m1])) - base
                    if gain > best:
                        best = gain
                        found.cut = <int64_t>last
                        found.missing_left = 1
            a += here - p
            b += p
            previous = kind
            last = code
            i = j
        if m0 + m1 and values_end > start:
            gain = ((g[a] + g[b] - g[a + b]) + (g[m0] + g[m1] - g[m0 + m1])) - base
            if not gain <= best:
                best = gain
                found.cut = <int64_t>last
                found.missing_left = 0
        found.gain = best

    cdef inline double gain_of(
        self, const int64_t* totals, const int64_t* left, int64_t* trial, double base,
    ) noexcept nogil:
        cdef int k
        for k in range(self.n_classes):
            trial[k] = totals[k] - left[k]
        return (self.negentropy(left) + self.negentropy(trial)) - base

    cdef void scan_many(
        self, const Entry* e, Py_ssize_t column, Py_ssize_t start, Py_ssize_t end, int64_t* room,
        Best* found,
    ) noexcept nogil:
        """Any number of classes, with or without weights."""
        cdef int shift = self.below
        cdef Entry mask = <Entry>self.row_mask
        cdef int n_classes = self.n_classes, k, kind, previous = -2
        cdef const int64_t* totals = room
        cdef int64_t* left = room + n_classes
        cdef int64_t* value = room + 2 * n_classes
        cdef int64_t* absent = room + 3 * n_classes
        cdef int64_t* trial = room + 4 * n_classes
        cdef Py_ssize_t i = start, values_end = end
        cdef int64_t missing = self.missing[column]
        cdef bint any_missing
        cdef Entry code, row, last = 0
        cdef double base = self.negentropy(totals), gain, best = NAN
        memset(left, 0, 3 * n_classes * sizeof(int64_t))
        if missing >= 0:
            while values_end > start and <int64_t>(e[values_end - 1] >> shift) == missing:
                values_end -= 1
                row = (e[values_end] >> 1) & mask
                absent[self.labels[row]] += self.weights[row] if self.weighted else 1
        any_missing = values_end < end
        while i < values_end:
            code = e[i] >> shift
            memset(value, 0, n_classes * sizeof(int64_t))
            kind = self.labels[(e[i] >> 1) & mask]
            while i < values_end and (e[i] >> shift) == code:
                row = (e[i] >> 1) & mask
                if self.labels[row] != kind:
                    kind = -1
                value[self.labels[row]] += self.weights[row] if self.weighted else 1
                i += 1
            if previous != -2 and (kind == -1 or kind != previous):
                gain = self.gain_of(totals, left, trial, base)
                if not gain <= best:
                    best = gain
                    found.cut = <int64_t>last
                    found.missing_left = 0
                if any_missing:
                    for k in range(n_classes):
                        left[k] += absent[k]
                    gain = self.gain_of(totals, left, trial, base)
                    for k in range(n_classes):
                        left[k] -= absent[k]
                    if gain > best:
                        best = gain
                        found.cut = <int64_t>last
                        found.missing_left = 1
            for k in range(n_classes):
                left[k] += value[k]
            previous = kind
            last = code
        if any_missing and values_end > start:
            gain = self.gain_of(totals, left, trial, base)
            if not gain <= best:
                best = gain
                found.cut = <int64_t>last
                found.missing_left = 0
        found.gain = best

    cdef int scan_sets(
        self, Py_ssize_t column, Py_ssize_t start, Py_ssize_t end, Best* found,
    ) except -1:
        """A column whose codes have no order: counted here, searched in Python (few codes)."""
        from stair.engines.search import best_set

        counts, codes = self.counts_by_code(column, start, end)
        best = best_set(counts, np.asarray(self.table) if self.tabled else None)
        if best is not None:
            found.gain, found.cut = best
        return 0

    def counts_by_code(self, Py_ssize_t column, Py_ssize_t start, Py_ssize_t end):
        """Class counts of each code that the group has, and those codes."""
        entries = self.columns[column][start:end].astype(np.int64)
        codes, places = np.unique(entries >> self.below, return_inverse=True)
        rows = (entries >> 1) & <int64_t>self.row_mask
        counts = np.zeros((len(codes), self.n_classes), dtype=np.int64)
        weights = np.asarray(self.weights)[rows] if self.weighted else 1
        np.add.at(counts, (places, np.asarray(self.labels)[rows]), weights)
        return counts, codes

    def codes_of(self, group, Py_ssize_t column):
        start, end = group
        return self.counts_by_code(column, start, end)

    def mark(self, group, Py_ssize_t column, int64_t cut, bint missing_left, left_codes=None):
        """Note for each row of a group whether it goes left: code ≤ cut, or in left_codes.

        Returns the class counts of the left side, how many rows it has, a row next to the cut on
        each side (−1 where there is none), and how many rows miss the value.
        """
        cdef bint by_set = left_codes is not None
        cdef const uint8_t[::1] chosen
        cdef const uint8_t* first_chosen = NULL
        if by_set:  # to look at an array takes longer than to mark a few rows
            chosen = left_codes
            first_chosen = &chosen[0]
        cdef int64_t found[4]
        cdef Py_ssize_t start, end, k
        cdef int64_t* counts = <int64_t*>calloc(self.n_classes, sizeof(int64_t))
        if counts == NULL:
            raise MemoryError("not enough memory to divide a group")
        start, end = group
        with nogil:
            if self.narrow[column]:
                self.mark_entries(<uint32_t*>self.entries[column], column, start, end, cut,
                                  missing_left, by_set, first_chosen, counts, found)
            else:
                self.mark_entries(<uint64_t*>self.entries[column], column, start, end, cut,
                                  missing_left, by_set, first_chosen, counts, found)
        left_counts = tuple([counts[k] for k in range(self.n_classes)])
        free(counts)
        return left_counts, found[0], found[1], found[2], found[3]

    cdef void mark_entries(
        self, const Entry* e, Py_ssize_t column, Py_ssize_t start, Py_ssize_t end, int64_t cut,
        bint missing_left, bint by_set, const uint8_t* chosen, int64_t* counts, int64_t* found,
    ) noexcept nogil:
        cdef int64_t missing = self.missing[column], code, below = -1, above = -1, absent = 0
        cdef int64_t n_left = 0, second = 0
        cdef Py_ssize_t i, middle, first_above = end
        cdef uint64_t row
        cdef uint8_t* side = &self.side[0]
        cdef uint8_t s
        if self.two and not by_set and <int64_t>(e[end - 1] >> self.below) != missing:
            # Nothing is missing and the column is in order: look for the cut, mark both sides.
            i = start
            while i < first_above:
                middle = (i + first_above) // 2
                if <int64_t>(e[middle] >> self.below) <= cut:
                    i = middle + 1
                else:
                    first_above = middle
            for i in range(start, first_above):
                side[(e[i] >> 1) & self.row_mask] = 1
                second += e[i] & 1
            for i in range(first_above, end):
                side[(e[i] >> 1) & self.row_mask] = 0
            counts[0], counts[1] = first_above - start - second, second
            found[0], found[3] = first_above - start, 0
            found[1] = <int64_t>((e[first_above - 1] >> 1) & self.row_mask)
            found[2] = <int64_t>((e[first_above] >> 1) & self.row_mask) if first_above < end else -1
            return
        for i in range(start, end):
            code = <int64_t>(e[i] >> self.below)
            row = (e[i] >> 1) & self.row_mask
            if by_set:
                s = chosen[code]
            elif code == missing:
                s = missing_left
                absent += 1
            elif code <= cut:
                s = 1
                below = <int64_t>row
            else:
                s = 0
                if above < 0:
                    above = <int64_t>row
            side[row] = s
            n_left += s
            if s:
                counts[self.labels[row]] += self.weights[row] if self.weighted else 1
        found[0], found[1], found[2], found[3] = n_left, below, above, absent

    def partition(
        self, group, const int64_t[::1] columns, Py_ssize_t n_left, bint need_left, bint need_right
    ):
        """In each of these columns, the rows that were marked as left first; both in order.

        A side that will not be looked at again need not be moved. Only the smaller side is set
        aside, so that half of the group's size is enough room.
        """
        cdef Py_ssize_t start, end, k
        start, end = group
        cdef Py_ssize_t room = min(n_left, end - start - n_left)
        # One more than the smaller side: the branch-free loop writes one place ahead.
        cdef void* spare = malloc((room + 1) * sizeof(uint64_t))
        if spare == NULL:
            raise MemoryError("not enough memory to divide a group")
        with nogil:
            for k in range(columns.shape[0]):
                if self.narrow[columns[k]]:
                    self.partition_entries(<uint32_t*>self.entries[columns[k]], start, end, n_left,
                                           room, need_left, need_right, <uint32_t*>spare)
                else:
                    self.partition_entries(<uint64_t*>self.entries[columns[k]], start, end, n_left,
                                           room, need_left, need_right, <uint64_t*>spare)
        free(spare)

    cdef void partition_entries(
        self, Entry* e, Py_ssize_t start, Py_ssize_t end, Py_ssize_t n_left, Py_ssize_t room,
        bint need_left, bint need_right, Entry* spare,
    ) noexcept nogil:
        cdef Py_ssize_t i, kept, aside = 0
        cdef const uint8_t* side = &self.side[0]
        cdef Entry entry, mask = <Entry>self.row_mask
        cdef uint8_t s
        if not need_right:
            kept = start
            for i in range(start, end):
                entry = e[i]
                e[kept] = entry
                kept += side[(entry >> 1) & mask]
        elif not need_left:
            kept = end - 1
            for i in range(end - 1, start - 1, -1):
                entry = e[i]
                e[kept] = entry
                kept -= 1 - side[(entry >> 1) & mask]
        elif n_left >= end - start - n_left:
            kept = start
            for i in range(start, end):
                entry = e[i]
                s = side[(entry >> 1) & mask]
                e[kept] = entry
                spare[aside] = entry
                kept += s
                aside += 1 - s
            memcpy(e + kept, spare, aside * sizeof(Entry))
        else:
            kept = end - 1
            for i in range(end - 1, start - 1, -1):
                entry = e[i]
                s = side[(entry >> 1) & mask]
                e[kept] = entry
                spare[room - aside] = entry
                kept -= 1 - s
                aside += s
            memcpy(e + start, spare + room - aside + 1, aside * sizeof(Entry))

    def sides(self, group, Py_ssize_t n_left):
        """The two groups of a group that was divided."""
        start, end = group
        return (start, start + n_left), (start + n_left, end)
