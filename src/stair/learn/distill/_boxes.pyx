# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""The hot loops of the box search; `_twin.py` says the same in plain numpy.

A row has a gain: what covering it is worth now (0 where another rule covers it already). A box
allows some bins of some columns. For a box, `around` looks at all its neighbours at once: each
column's best bins within the box (one clause more), and the same after one clause was taken away
(that clause drawn anew, or another in its place).
"""

import sys

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static __inline int lowest_bit(unsigned long long word) {
        unsigned long place;
        _BitScanForward64(&place, word);
        return (int)place;
    }
    #else
    static inline int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    #endif
    """
    int lowest_bit(unsigned long long word) noexcept nogil

cdef int64_t NOTHING = -(<int64_t>1 << 60)
cdef uint64_t MIX = 0x9E3779B97F4A7C15
# Eight bytes that are 0 or 1, times this, have them as bits in the first byte.
cdef uint64_t PACK = 0x0102040810204080 if sys.byteorder == "little" else 0x8040201008040201
cdef int64_t CALL = 25_000  # what a call costs beside what it looks at
# The clauses whose rows are remembered as bits, and the most of them in a box that is looked at so.
cdef enum:
    SLOTS = 32
    MOST_CLAUSES = 16
# A box whose clauses leave fewer rows than one of so many is looked at row by row.
cdef int FEW = 32
# Fewer rows than one of so many are set bit by bit, more are found by a look at each.
cdef int SOME = 5
# Which runs of bins a column allows, as in `columns.Sides`.
cdef enum:
    UP_TO = 1
    MORE_THAN = 2
    BETWEEN = 4


ctypedef fused Cell:
    uint16_t
    uint64_t


cdef struct Run:
    int64_t sum
    int low
    int high


cdef inline int _n_bounds(Run run, int last) noexcept nogil:
    return 2 if 0 < run.low <= run.high < last else 1


cdef inline Run _better(Run one, Run other, int last, int64_t price) noexcept nogil:
    """Of two runs the one that is worth more when its bounds are paid for."""
    cdef int64_t net = one.sum - price * _n_bounds(one, last)
    return other if other.sum - price * _n_bounds(other, last) > net else one


cdef Run _best_run(int64_t[::1] bins, int at, int64_t price, uint8_t sides) noexcept nogil:
    """The run with the largest sum less the price of its bounds, around the bin `at` where that is
    one, among those that the sides allow. Where they are equal, one from the lower end, then one to
    the upper end goes first."""
    cdef int i, start = 0, last = <int>bins.shape[0] - 1
    cdef int64_t below = 0, above = 0, total = 0, least = 0, best = NOTHING
    cdef Run none = Run(NOTHING, 1, 0)
    cdef Run first = none, final = none, inner = none
    if last < 0:
        return first
    if at >= 0:  # from the seed to either side as far as it pays, or to the end
        inner = Run(bins[at], at, at)
        best = 0
        for i in range(at + 1, last + 1):
            above += bins[i]
            if above > best:
                best = above
                inner.high = i
        first = Run(bins[at] + best, 0, inner.high)
        inner.sum += best
        best = 0
        for i in range(at - 1, -1, -1):
            below += bins[i]
            if below > best:
                best = below
                inner.low = i
        first.sum += below
        inner.sum += best
        final = Run(bins[at] + above + best, inner.low, last)
    else:
        for i in range(last + 1):
            if bins[i] == 0 and 0 < i < last and (total > 0 or inner.sum >= 0):
                continue  # which is most of them, and changes nothing
            if below <= least:
                least = below
                final.low = i
            below += bins[i]
            if below > first.sum:
                first = Run(below, 0, i)
            if total <= 0:
                total = 0
                start = i
            total += bins[i]
            if total > inner.sum:
                inner = Run(total, start, i)
        final = Run(below - least, final.low, last)
    if not sides & UP_TO:
        first = none
    if not sides & MORE_THAN:
        final = none
    if not sides & BETWEEN:
        inner = none
    return _better(_better(first, final, last, price), inner, last, price)


cdef class Boxes:
    cdef uint16_t[:, ::1] codes
    cdef int32_t[::1] offsets  # where each column's bins begin among all bins
    cdef int32_t[::1] starts  # where each bin's rows begin in `order`, column by column
    cdef int32_t[:, ::1] order  # the rows by bin, for each column
    cdef uint8_t[::1] is_ordered
    cdef uint8_t[::1] has_missing  # the last bin is that of missing values
    cdef uint8_t[::1] sides  # which runs of bins each column allows
    cdef int64_t[::1] gains
    cdef readonly object row_gains  # the same, to be read from outside
    cdef int64_t[::1] good, bad  # the gains above and below 0 in each bin
    cdef int64_t[::1] within, less  # room for the gains in each bin within a box
    cdef int32_t[::1] near, near_which  # and for the rows that miss one clause of it
    cdef const uint16_t[:, ::1] by_column  # the codes once more, column by column
    cdef uint64_t[::1] alive  # a bit for each row that has a gain
    cdef uint64_t[:, ::1] bits  # the rows that meet each of the clauses looked at last
    cdef uint8_t[:, ::1] bins_of_bits  # the bins that these clauses allow
    cdef int column_of_bits[SLOTS]
    cdef int64_t last_use[SLOTS]
    cdef int64_t[::1] sizes  # how many rows meet each clause of the box at hand
    cdef int64_t now
    cdef int n_words
    cdef int n_rows, n_columns, n_bins
    cdef public int64_t price  # of a bound, in thousandths of a gain
    cdef readonly int64_t work  # what was looked at: the same on every machine

    def __init__(self, codes, n_bins, is_ordered, has_missing, sides, gains):
        self.codes = codes
        self.n_rows, self.n_columns = codes.shape
        self.offsets = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int32)
        self.n_bins = self.offsets[self.n_columns]
        order = np.empty((self.n_columns, self.n_rows), dtype=np.int32)
        starts = np.empty(self.n_bins + self.n_columns, dtype=np.int32)
        for j in range(self.n_columns):
            order[j] = np.argsort(codes[:, j], kind="stable")
            counts = np.bincount(codes[:, j], minlength=n_bins[j])
            begin = self.offsets[j] + j
            starts[begin : begin + n_bins[j] + 1] = np.concatenate([[0], np.cumsum(counts)])
        self.order = order
        self.starts = starts
        self.is_ordered = np.asarray(is_ordered, dtype=np.uint8)
        self.has_missing = np.asarray(has_missing, dtype=np.uint8)
        self.sides = np.asarray(sides, dtype=np.uint8)
        self.within = np.empty(self.n_bins, dtype=np.int64)
        self.less = np.empty(self.n_bins, dtype=np.int64)
        self.near = np.empty(self.n_rows, dtype=np.int32)
        self.near_which = np.empty(self.n_rows, dtype=np.int32)
        self.by_column = np.ascontiguousarray(codes.T)
        self.n_words = (self.n_rows + 63) // 64
        self.alive = np.zeros(self.n_words, dtype=np.uint64)
        self.bits = np.empty((SLOTS, self.n_words), dtype=np.uint64)
        self.bins_of_bits = np.empty((SLOTS, max(n_bins)), dtype=np.uint8)
        for j in range(SLOTS):
            self.column_of_bits[j] = -1
            self.last_use[j] = 0
        self.now = 0
        self.sizes = np.empty(self.n_columns, dtype=np.int64)
        self.work = 0
        self.price = 0
        self.load(gains)

    def load(self, gains):
        """Give every row its gain."""
        cdef int i, j
        cdef int64_t gain
        self.row_gains = gains.copy()
        self.gains = self.row_gains
        self.good = np.zeros(self.n_bins, dtype=np.int64)
        self.bad = np.zeros(self.n_bins, dtype=np.int64)
        self.alive[:] = 0
        with nogil:
            for i in range(self.n_rows):
                gain = self.gains[i]
                if gain != 0:
                    self.alive[i >> 6] |= <uint64_t>1 << (i & 63)
                if gain > 0:
                    for j in range(self.n_columns):
                        self.good[self.offsets[j] + self.codes[i, j]] += gain
                elif gain < 0:
                    for j in range(self.n_columns):
                        self.bad[self.offsets[j] + self.codes[i, j]] += gain
        self.work += <int64_t>self.n_rows * self.n_columns

    def change(self, const int32_t[::1] rows, const int64_t[::1] gains):
        """Give some rows new gains; a gain keeps its sign or is 0."""
        cdef int i, j, row
        cdef int64_t old, new, delta
        with nogil:
            for i in range(rows.shape[0]):
                row = rows[i]
                old = self.gains[row]
                new = gains[i]
                if old == new:
                    continue
                self.gains[row] = new
                if new != 0:
                    self.alive[row >> 6] |= <uint64_t>1 << (row & 63)
                else:
                    self.alive[row >> 6] &= ~(<uint64_t>1 << (row & 63))
                delta = new - old
                if old > 0 or new > 0:
                    for j in range(self.n_columns):
                        self.good[self.offsets[j] + self.codes[row, j]] += delta
                else:
                    for j in range(self.n_columns):
                        self.bad[self.offsets[j] + self.codes[row, j]] += delta
        self.work += <int64_t>rows.shape[0] * self.n_columns

    def rows(self, const int32_t[::1] columns, const uint8_t[:, ::1] allowed):
        """The rows inside a box, those of its smallest clause looked through."""
        cdef int n_clauses = columns.shape[0]
        if n_clauses == 0:
            return np.arange(self.n_rows, dtype=np.int32)
        cdef int first, second, k, b, i, row, column, count = 0, begin
        cdef int64_t size
        first, second, size = self._smallest(columns, allowed)
        found_ = np.empty(size, dtype=np.int32)
        cdef int32_t[::1] found = found_
        column = columns[first]
        begin = self.offsets[column] + column
        with nogil:
            for b in range(self.offsets[column + 1] - self.offsets[column]):
                if not allowed[first, b]:
                    continue
                for i in range(self.starts[begin + b], self.starts[begin + b + 1]):
                    row = self.order[column, i]
                    for k in range(n_clauses):
                        if not allowed[k, self.codes[row, columns[k]]]:
                            break
                    else:
                        found[count] = row
                        count += 1
        self.work += size
        return found_[:count].copy()

    def covers_so_many(
        self,
        const int32_t[::1] columns,
        const uint8_t[:, ::1] allowed,
        const int64_t[::1] times,
        int64_t least,
    ):
        """Whether the times of the rows inside a box add up to so many."""
        cdef int n_clauses = columns.shape[0], first, second, k, b, i, row, column, begin
        cdef int64_t size, found = 0
        first, second, size = self._smallest(columns, allowed)
        column = columns[first]
        begin = self.offsets[column] + column
        with nogil:
            for b in range(self.offsets[column + 1] - self.offsets[column]):
                if not allowed[first, b]:
                    continue
                for i in range(self.starts[begin + b], self.starts[begin + b + 1]):
                    row = self.order[column, i]
                    if times[row] == 0:
                        continue
                    for k in range(n_clauses):
                        if not allowed[k, self.codes[row, columns[k]]]:
                            break
                    else:
                        found += times[row]
                if found >= least:
                    break
        self.work += size
        return found >= least

    cdef tuple _smallest(self, const int32_t[::1] columns, const uint8_t[:, ::1] allowed):
        """The two clauses that the fewest rows meet, and how many meet the first."""
        cdef int k, b, column, begin, first = -1, second = -1
        cdef int64_t size, least = 0, next_ = 0
        for k in range(columns.shape[0]):
            column = columns[k]
            begin = self.offsets[column] + column
            size = 0
            for b in range(self.offsets[column + 1] - self.offsets[column]):
                if allowed[k, b]:
                    size += self.starts[begin + b + 1] - self.starts[begin + b]
            self.sizes[k] = size
            if first < 0 or size < least:
                second = first
                next_ = least
                first = k
                least = size
            elif second < 0 or size < next_:
                second = k
                next_ = size
        return first, second, least

    cdef int _bits_of(self, int column, const uint8_t* allowed, int64_t size) noexcept nogil:
        """The place of the bits of all rows that meet a clause, `size` of them."""
        cdef int n_bins = self.offsets[column + 1] - self.offsets[column]
        cdef int begin = self.offsets[column] + column
        cdef int slot, oldest = 0, b, i, row, low, high, word
        cdef uint16_t first, span, lone
        cdef const uint16_t* codes = &self.by_column[column, 0]
        cdef const int32_t* order = &self.order[column, 0]
        cdef uint64_t* bits
        cdef uint64_t packed, whole
        cdef uint8_t met[64]
        for slot in range(SLOTS):
            if self.column_of_bits[slot] == column and (
                memcmp(&self.bins_of_bits[slot, 0], allowed, n_bins) == 0
            ):
                self.last_use[slot] = self.now
                return slot
            if self.last_use[slot] < self.last_use[oldest]:
                oldest = slot
        slot = oldest
        self.last_use[slot] = self.now
        self.column_of_bits[slot] = column
        memcpy(&self.bins_of_bits[slot, 0], allowed, n_bins)
        bits = &self.bits[slot, 0]
        if size * SOME < self.n_rows:
            memset(bits, 0, self.n_words * sizeof(uint64_t))
            for b in range(n_bins):
                if allowed[b]:
                    for i in range(self.starts[begin + b], self.starts[begin + b + 1]):
                        row = order[i]
                        bits[row >> 6] |= <uint64_t>1 << (row & 63)
            return slot
        low = 0
        while not allowed[low]:
            low += 1
        high = low
        while high + 1 < n_bins and allowed[high + 1]:
            high += 1
        lone = <uint16_t>low  # a bin beside the run: that of missing values
        for b in range(high + 1, n_bins):
            if allowed[b]:
                if lone != low:
                    low = -1  # no run at all
                lone = <uint16_t>b
        first = <uint16_t>low
        span = <uint16_t>(high - low)
        for word in range(self.n_words):
            row = word << 6
            i = min(64, self.n_rows - row)
            if i < 64:
                memset(met, 0, 64)
                for b in range(i):
                    met[b] = allowed[codes[row + b]]
            elif low < 0:
                for b in range(64):
                    met[b] = allowed[codes[row + b]]
            else:  # which the compiler makes a few instructions of
                for b in range(64):
                    met[b] = (<uint16_t>(codes[row + b] - first) <= span) | (codes[row + b] == lone)
            whole = 0
            for b in range(8):
                memcpy(&packed, &met[8 * b], 8)
                whole |= ((packed * PACK) >> 56) << (8 * b)
            bits[word] = whole
        return slot

    def around(
        self,
        const int32_t[::1] columns,
        const uint8_t[:, ::1] allowed,
        int seed,
        int permille,
        bint with_drops,
    ):
        """The best bins of every column within the box, and within the box less each clause.

        Row k of the results is the box without clause k, the last row the box itself. `seed` is
        a row that must stay inside (−1 for none); losses count `permille` of what they are.
        """
        cdef int n_clauses = columns.shape[0], n_columns = self.n_columns
        cdef int last = n_clauses if with_drops else 0
        cdef int first = -1, second = -1
        cdef int64_t size, looked_at = 0
        cdef int i, j, k, b, row, column, begin, which, side, other, n_near = 0
        cdef int64_t gain
        sums_ = np.empty((last + 1, n_columns), dtype=np.int64)
        low_ = np.zeros((last + 1, n_columns), dtype=np.int32)
        high_ = np.zeros((last + 1, n_columns), dtype=np.int32)
        missing_ = np.zeros((last + 1, n_columns), dtype=np.uint8)
        totals_ = np.zeros(last + 1, dtype=np.int64)
        cdef int64_t[:, ::1] sums = sums_
        cdef int32_t[:, ::1] low = low_
        cdef int32_t[:, ::1] high = high_
        cdef uint8_t[:, ::1] missing = missing_
        cdef int64_t[::1] totals = totals_
        # Plain pointers: what the compiler cannot know to stay it reads anew for every row.
        cdef const uint16_t* codes
        cdef const int64_t* gains = &self.gains[0]
        cdef const int32_t* offsets = &self.offsets[0]
        cdef const int32_t* order
        cdef int64_t* within = &self.within[0]
        cdef int64_t* less = &self.less[0]
        cdef int32_t* near = &self.near[0]
        cdef int32_t* near_which = &self.near_which[0]
        cdef int n_sides, word, is_large
        cdef int64_t next_ = 0
        cdef int64_t[::1] sizes = self.sizes
        cdef const uint64_t* met[MOST_CLAUSES]
        cdef uint64_t here, near_here, missed, twice
        size = 0
        if n_clauses:
            first, second, size = self._smallest(columns, allowed)
            if second >= 0:
                next_ = sizes[second]
        with nogil:
            # Rows that miss at most one clause meet one of any two: those two are looked through.
            if n_clauses == 0:
                for b in range(self.n_bins):
                    within[b] = 1000 * self.good[b] + permille * self.bad[b]
            else:
                memset(within, 0, self.n_bins * sizeof(int64_t))
            n_sides = 2 if with_drops and n_clauses > 1 else (1 if n_clauses else 0)
            is_large = 0 < n_clauses <= MOST_CLAUSES and (
                (size + (next_ if n_sides == 2 else 0)) * FEW > self.n_rows
            )
            if is_large:
                looked_at += size + (next_ if n_sides == 2 else 0)
                self.now += 1
                for k in range(n_clauses):
                    met[k] = &self.bits[self._bits_of(columns[k], &allowed[k, 0], sizes[k]), 0]
                for word in range(self.n_words):
                    here = self.alive[word]
                    if here == 0:
                        continue
                    missed = 0
                    twice = 0
                    for k in range(n_clauses):
                        twice |= missed & ~met[k][word]
                        missed |= ~met[k][word]
                    near_here = here & missed & ~twice if n_sides == 2 else 0
                    here &= ~missed
                    while here:
                        row = (word << 6) + lowest_bit(here)
                        here &= here - 1
                        gain = gains[row]
                        gain = gain * (1000 if gain > 0 else permille)
                        totals[last] += gain
                        codes = &self.codes[row, 0]
                        for j in range(n_columns):
                            within[offsets[j] + codes[j]] += gain
                        looked_at += n_columns
                    while near_here:
                        i = lowest_bit(near_here)
                        near_here &= near_here - 1
                        k = 0
                        while met[k][word] >> i & 1:
                            k += 1
                        near[n_near] = (word << 6) + i
                        near_which[n_near] = k
                        n_near += 1
            for side in range(0 if is_large else n_sides):
                other = first if side == 0 else second
                column = columns[other]
                begin = offsets[column] + column
                order = &self.order[column, 0]
                for b in range(offsets[column + 1] - offsets[column]):
                    if not allowed[other, b]:
                        continue
                    looked_at += self.starts[begin + b + 1] - self.starts[begin + b]
                    for i in range(self.starts[begin + b], self.starts[begin + b + 1]):
                        row = order[i]
                        gain = gains[row]
                        if gain == 0:
                            continue
                        codes = &self.codes[row, 0]
                        which = -1
                        if side == 1:
                            if allowed[first, codes[columns[first]]]:
                                continue  # seen already
                            which = first
                        for k in range(n_clauses):
                            if k != other and k != which and not allowed[k, codes[columns[k]]]:
                                if which >= 0 or not with_drops:
                                    which = -2
                                    break
                                which = k
                        if which == -2:
                            continue
                        if which >= 0:
                            near[n_near] = row
                            near_which[n_near] = which
                            n_near += 1
                            continue
                        gain = gain * (1000 if gain > 0 else permille)
                        totals[last] += gain
                        for j in range(n_columns):
                            within[offsets[j] + codes[j]] += gain
                        looked_at += n_columns
            if n_clauses == 0:
                for b in range(offsets[1]):
                    totals[last] += within[b]
            self._best(self.within, seed, sums[last], low[last], high[last], missing[last])
            if with_drops:
                for k in range(n_clauses):
                    if n_clauses == 1:  # without its only clause the box is everything
                        for b in range(self.n_bins):
                            less[b] = 1000 * self.good[b] + permille * self.bad[b]
                        for b in range(offsets[1]):
                            totals[k] += less[b]
                    else:
                        totals[k] = totals[last]
                        memcpy(less, within, self.n_bins * sizeof(int64_t))
                        for i in range(n_near):
                            if near_which[i] != k:
                                continue
                            row = near[i]
                            gain = gains[row]
                            gain = gain * (1000 if gain > 0 else permille)
                            totals[k] += gain
                            codes = &self.codes[row, 0]
                            for j in range(n_columns):
                                less[offsets[j] + codes[j]] += gain
                    self._best(self.less, seed, sums[k], low[k], high[k], missing[k])
                looked_at += <int64_t>n_near * n_columns
        self.work += CALL + looked_at + <int64_t>(last + 1) * self.n_bins
        return sums_, low_, high_, missing_, totals_

    cdef void _best(
        self,
        int64_t[::1] bins,
        int seed,
        int64_t[::1] sums,
        int32_t[::1] low,
        int32_t[::1] high,
        uint8_t[::1] missing,
    ) noexcept nogil:
        """For each column the bins with the largest sum less the price of their bounds: a run, or
        for categories a set."""
        cdef int j, i, begin, end, at
        cdef int64_t best, gone
        cdef Run run
        for j in range(self.n_columns):
            begin = self.offsets[j]
            end = self.offsets[j + 1]
            at = begin + self.codes[seed, j] if seed >= 0 else -1
            if not self.is_ordered[j]:
                best = NOTHING
                for i in range(begin, end):
                    if bins[i] > 0 or i == at:
                        best = bins[i] + (best if best > NOTHING else 0)
                sums[j] = best - self.price
                continue
            gone = 0
            if self.has_missing[j]:
                end -= 1
                gone = bins[end]
            run = _best_run(
                bins[begin:end], at - begin if 0 <= at < end else -1, self.price, self.sides[j]
            )
            missing[j] = 0
            if self.has_missing[j] and (gone > 0 or at == end):
                missing[j] = 1
                if run.sum <= 0:
                    run = Run(0, 1, 0)
                run.sum += gone
            sums[j] = run.sum - self.price * _n_bounds(run, end - begin - 1)
            low[j] = run.low
            high[j] = run.high

    def bins(self, const int32_t[::1] columns, const uint8_t[:, ::1] allowed, int column):
        """The gains of the rows inside a box by the bins of one column."""
        inside = self.rows(columns, allowed)
        codes = np.asarray(self.codes)[inside, column]
        found = np.zeros(self.offsets[column + 1] - self.offsets[column], dtype=np.int64)
        np.add.at(found, codes, np.asarray(self.gains)[inside])
        return found


def distinct(const Cell[:, :] cells, const int32_t[::1] labels):
    """Rows that are equal in all cells and in class: the first of each, in the order of the table,
    and to which of these every row belongs."""
    cdef Py_ssize_t n_rows = cells.shape[0], n_columns = cells.shape[1], row, other, j
    cdef int64_t number, n_found = 0, room = 1024
    cdef uint64_t code, mask = 2 * room - 1, at
    first_ = np.empty(n_rows, dtype=np.intp)
    places_ = np.empty(n_rows, dtype=np.intp)
    cdef Py_ssize_t[::1] first = first_, places = places_
    cdef uint64_t[::1] codes = np.empty(n_rows, dtype=np.uint64)  # of those that were found
    cdef int64_t[::1] slots = np.full(2 * room, -1, dtype=np.int64)
    for row in range(n_rows):
        code = <uint64_t>labels[row]
        for j in range(n_columns):
            code = (code ^ <uint64_t>cells[row, j]) * MIX
            code ^= code >> 32
        at = code & mask
        while slots[at] >= 0:
            number = slots[at]
            if codes[number] == code:
                other = first[number]
                if labels[other] == labels[row]:
                    for j in range(n_columns):
                        if cells[other, j] != cells[row, j]:
                            break
                    else:
                        places[row] = number
                        break
            at = (at + 1) & mask
        else:
            slots[at] = n_found
            codes[n_found] = code
            first[n_found] = row
            places[row] = n_found
            n_found += 1
            if n_found > room:
                room *= 2
                mask = 2 * room - 1
                slots = np.full(2 * room, -1, dtype=np.int64)
                for number in range(n_found):
                    at = codes[number] & mask
                    while slots[at] >= 0:
                        at = (at + 1) & mask
                    slots[at] = number
    return first_[:n_found].copy(), places_
