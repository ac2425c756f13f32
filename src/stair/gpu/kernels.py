"""The kernels, in CUDA C. `twin.py` has the same in numpy, which is the oracle of the tests.

All that is summed is a whole number, so the order in which threads come does not matter.
"""

from typing import Final

SOURCE: Final = r"""
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// --- a row finds its rule ---------------------------------------------------------------------

// A node is four numbers: where its code lies (panel, byte, whether it is wide; -1 where the way
// ends), the cut, the place of its table (-1: none), and the left child, after which the right one
// comes; or the slot.
extern "C" __global__ void route(
    const u8* block, const i64* starts, const int* widths, int n_rows, int n_classes,
    const int4* nodes, int n_nodes, int nodes_near, const u8* left_of,
    int n_slots, int sizes_near, int* slots, u32* sizes)
{
    DYNAMIC(int4, near_by);
    u32* found = (u32*)(near_by + (nodes_near ? n_nodes : 0));
    if (nodes_near)
        for (int k = threadIdx.x; k < n_nodes; k += blockDim.x) near_by[k] = nodes[k];
    if (sizes_near)
        for (int s = threadIdx.x; s < n_slots; s += blockDim.x) found[s] = 0;
    __syncthreads();
    const int4* tree = nodes_near ? near_by : nodes;
    u32* into = sizes_near ? found : sizes;
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += step) {
        int slot = -1;
        if (block[row] < n_classes) {
            int4 node = tree[0];
            while (node.x >= 0) {
                int panel = node.x >> 8;
                const u8* at = block + starts[panel] + row * widths[panel] + ((node.x >> 1) & 127);
                int code = node.x & 1 ? *(const u16*)at : *at;
                bool is_left = node.z < 0 ? code <= node.y : left_of[node.z + code] != 0;
                node = tree[node.w + (is_left ? 0 : 1)];
            }
            slot = node.w;
        }
        slots[row] = slot;
        if (slot >= 0) atomicAdd(into + slot, 1u);
    }
    __syncthreads();
    if (sizes_near)
        for (int s = threadIdx.x; s < n_slots; s += blockDim.x)
            if (found[s]) atomicAdd(sizes + s, found[s]);
}

// --- the rows of each rule together -----------------------------------------------------------

// `next` says where the rows of each slot go on; a block takes room for all of its rows at once.
extern "C" __global__ void place(
    const u8* labels, const int* slots, int n_rows, int n_slots, int is_near,
    u32* next, u32* order, u8* tags)
{
    DYNAMIC(u32, found);
    const int EACH = 8;
    i64 together = (i64)blockDim.x * EACH;
    for (i64 first = blockIdx.x * together; first < n_rows; first += gridDim.x * together) {
        int slot[EACH];
        u32 rank[EACH];
        if (is_near) {
            for (int s = threadIdx.x; s < n_slots; s += blockDim.x) found[s] = 0;
            __syncthreads();
        }
        for (int k = 0; k < EACH; k++) {
            i64 row = first + (i64)k * blockDim.x + threadIdx.x;
            slot[k] = row < n_rows ? slots[row] : -1;
            if (slot[k] >= 0) rank[k] = atomicAdd((is_near ? found : next) + slot[k], 1u);
        }
        if (is_near) {
            __syncthreads();
            for (int s = threadIdx.x; s < n_slots; s += blockDim.x)
                if (found[s]) found[s] = atomicAdd(next + s, found[s]);
            __syncthreads();
        }
        for (int k = 0; k < EACH; k++) {
            if (slot[k] < 0) continue;
            i64 row = first + (i64)k * blockDim.x + threadIdx.x;
            u32 at = rank[k] + (is_near ? found[slot[k]] : 0);
            order[at] = (u32)row;
            tags[at] = labels[row];
        }
        if (is_near) __syncthreads();
    }
}

// --- counting by code and class -----------------------------------------------------------------

// Of a column: the word of the panel's row, which bytes of it are the code, where its counts begin
// nearby, how many copies of them there are less one, how far these are apart; how many codes it
// has, and where its counts begin among all. Columns come in the order of their words.
struct Column { int word, bytes, base, copies, apart, size, out, nothing; };

// What a row has in one panel, or in two of them.
__device__ inline u32 word_of(u32 row, int) { return row; }
__device__ inline u32 word_of(uint2 row, int word) { return word ? row.y : row.x; }
__device__ inline u32 word_of(uint4 row, int word)
{
    return word == 0 ? row.x : word == 1 ? row.y : word == 2 ? row.z : row.w;
}
template <typename A> struct One {
    A first;
    static const int WORDS = sizeof(A) / 4;
    __device__ inline void load(const u8* panel, const u8*, i64 at)
    {
        first = ((const A*)panel)[at];
    }
    __device__ inline u32 word(int k) const { return word_of(first, k); }
};
template <typename A, typename B> struct Two {
    A first;
    B second;
    static const int OWN = sizeof(A) / 4, WORDS = OWN + sizeof(B) / 4;
    __device__ inline void load(const u8* panel, const u8* beside, i64 at)
    {
        first = ((const A*)panel)[at];
        second = ((const B*)beside)[at];
    }
    __device__ inline u32 word(int k) const
    {
        return k < OWN ? word_of(first, k) : word_of(second, k - OWN);
    }
};

// Rows from start to stop: nearby the counts of a class are together, `wide` numbers of them.
template <typename Row, int EACH, bool NEAR>
__device__ inline void count_rows(
    const u8* panel, const u8* beside, const u8* tags, const u32* order, int start, int stop,
    const Column* columns, int n_classes, u32* found, int wide, u64* into)
{
    // One load brings all that is asked of most columns; after the last comes one of no word.
    const int4* heads = (const int4*)columns;
    int lane = threadIdx.x & 31;
    for (int first = start + threadIdx.x; first < stop; first += EACH * blockDim.x) {
        Row row[EACH];
        int tag[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            int at = first + k * blockDim.x;
            tag[k] = at < stop ? tags[at] : 255;
            if (tag[k] < n_classes) row[k].load(panel, beside, order ? order[at] : at);
        }
        int4 head = heads[0];
        int c = 0;
#pragma unroll
        for (int word = 0; word < Row::WORDS; word++)
            while (head.x == word) {
                int bytes = head.y, copies = head.w;
                u32* here = found + head.z;
                if (copies) here += (lane & copies) * columns[c].apart;
                head = heads[2 * (c + 1)];
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    if (tag[k] >= n_classes) continue;
                    int code = (int)__byte_perm(row[k].word(word), 0, bytes);
                    if (NEAR) atomicAdd(here + tag[k] * wide + code, 1u);
                    else
                        atomicAdd(into + (i64)(columns[c].out + code) * n_classes + tag[k], (u64)1);
                }
                c++;
            }
    }
}

// Each block takes an item: a slot, and rows from start to stop. Few rows are counted far away.
template <typename Row, int EACH>
__device__ inline void tally(
    const u8* panel, const u8* beside, const u8* tags, const u32* order, const int* items,
    const Column* columns, int n_columns, int n_classes, int wide, u64* counts, i64 per_slot)
{
    DYNAMIC(Column, near_by);
    u32* found = (u32*)(near_by + n_columns + 1);
    int start = items[3 * blockIdx.x + 1], stop = items[3 * blockIdx.x + 2];
    u64* into = counts + items[3 * blockIdx.x] * per_slot;
    int n_words = wide * n_classes;
    bool is_near = n_words > 0 && (i64)(stop - start) * n_columns * 2 > n_words;
    for (int k = threadIdx.x; k <= n_columns; k += blockDim.x) {
        if (k < n_columns) near_by[k] = columns[k];
        else near_by[k].word = -1;
    }
    if (is_near)
        for (int k = threadIdx.x; k < n_words; k += blockDim.x) found[k] = 0;
    __syncthreads();
    if (!is_near) {
        count_rows<Row, EACH, false>(panel, beside, tags, order, start, stop, near_by, n_classes,
                                     found, wide, into);
        return;
    }
    count_rows<Row, EACH, true>(panel, beside, tags, order, start, stop, near_by, n_classes, found,
                                wide, into);
    __syncthreads();
    for (int c = 0; c < n_columns; c++) {
        Column column = near_by[c];
        for (int k = threadIdx.x; k < column.size * n_classes; k += blockDim.x) {
            int tag = k / column.size, code = k - tag * column.size;
            u32 sum = 0;
            for (int copy = 0; copy <= column.copies; copy++)
                sum += found[tag * wide + column.base + copy * column.apart + code];
            if (sum) atomicAdd(into + (i64)(column.out + code) * n_classes + tag, (u64)sum);
        }
    }
}

#define TALLY(NAME, EACH, ...)                                                                   \
    extern "C" __global__ void __launch_bounds__(640, 2) NAME(                                  \
        const u8* panel, const u8* beside, const u8* tags, const u32* order, const int* items,   \
        const int* columns, int n_columns, int n_classes, int wide, u64* counts, i64 per_slot)   \
    {                                                                                            \
        tally<__VA_ARGS__, EACH>(panel, beside, tags, order, items, (const Column*)columns,      \
                                 n_columns, n_classes, wide, counts, per_slot);                  \
    }
TALLY(tally_4, 4, One<u32>)
TALLY(tally_8, 4, One<uint2>)
TALLY(tally_16, 4, One<uint4>)
TALLY(tally_16_4, 4, Two<uint4, u32>)
TALLY(tally_16_8, 4, Two<uint4, uint2>)

// --- the same by the weights of rows ------------------------------------------------------------

// Weights are whole numbers of 64 bits. Their sums nearby are of two halves, for which there is an
// instruction each: whoever makes the lower one run over adds one to the upper one. Of a column the
// word is its byte in the panel's row, and `bytes` how wide its codes are.
extern "C" __global__ void weigh(
    const u8* panel, int width, const u64* weights, const u8* tags, const u32* order,
    const int* items, const int* columns, int n_columns, int n_classes, int n_sums,
    u64* counts, i64 per_slot)
{
    DYNAMIC(Column, near_by);
    u32* low = (u32*)(near_by + n_columns);
    u32* high = low + n_sums;
    int start = items[3 * blockIdx.x + 1], stop = items[3 * blockIdx.x + 2];
    u64* into = counts + items[3 * blockIdx.x] * per_slot;
    bool is_near = n_sums > 0 && (i64)(stop - start) * n_columns * 2 > n_sums;
    for (int k = threadIdx.x; k < n_columns; k += blockDim.x)
        near_by[k] = ((const Column*)columns)[k];
    if (is_near)
        for (int k = threadIdx.x; k < 2 * n_sums; k += blockDim.x) low[k] = 0;
    __syncthreads();
    for (int at = start + threadIdx.x; at < stop; at += blockDim.x) {
        int tag = tags[at];
        if (tag >= n_classes) continue;
        i64 row = order ? order[at] : at;
        u64 weight = weights[row];
        const u8* codes = panel + row * width;
        for (int c = 0; c < n_columns; c++) {
            const u8* own = codes + near_by[c].word;
            int code = near_by[c].bytes == 2 ? *(const u16*)own : *own;
            if (!is_near) {
                atomicAdd(into + (i64)(near_by[c].out + code) * n_classes + tag, weight);
                continue;
            }
            int place = near_by[c].base + tag * near_by[c].size + code;
            u32 less = (u32)weight, more = (u32)(weight >> 32);
            u32 before = atomicAdd(low + place, less);
            more += before + less < before;
            if (more) atomicAdd(high + place, more);
        }
    }
    __syncthreads();
    if (!is_near) return;
    for (int c = 0; c < n_columns; c++) {
        Column column = near_by[c];
        for (int k = threadIdx.x; k < column.size * n_classes; k += blockDim.x) {
            int tag = k / column.size, code = k - tag * column.size;
            u64 sum = (u64)high[column.base + k] << 32 | low[column.base + k];
            if (sum) atomicAdd(into + (i64)(column.out + code) * n_classes + tag, sum);
        }
    }
}

// --- values of any type -------------------------------------------------------------------------

enum Type { F32, F64, I8, I16, I32, I64, U8, U16, U32, U64 };
enum Order { AS_IT_IS, REAL, WHOLE, UNSIGNED };

template <typename To>
__device__ inline To value_of(const void* values, int type, i64 row)
{
    switch (type) {
    case F32: return (To)((const float*)values)[row];
    case F64: return (To)((const double*)values)[row];
    case I8: return (To)((const signed char*)values)[row];
    case I16: return (To)((const short*)values)[row];
    case I32: return (To)((const int*)values)[row];
    case I64: return (To)((const i64*)values)[row];
    case U8: return (To)((const u8*)values)[row];
    case U16: return (To)((const u16*)values)[row];
    case U32: return (To)((const u32*)values)[row];
    default: return (To)((const u64*)values)[row];
    }
}

// How many of the bounds, which are in order, are below a value.
template <typename T>
__device__ inline int n_below(const T* bounds, int n, T value)
{
    int low = 0;
    while (n > 0) {
        int half = n >> 1;
        bool is_below = bounds[low + half] < value;
        low = is_below ? low + half + 1 : low;
        n = is_below ? n - half - 1 : half;
    }
    return low;
}

// --- values become codes ------------------------------------------------------------------------

// Of a column: its values, their type, how they are compared, where its bounds begin, how many
// these are, the code of a missing value, by how many bits the code is shifted in the panel's row,
// the codes of the places (0: the place is the code), and how far apart its values are.
struct Source { i64 values, type, order, first, n, missing, shift, codes, step; };

extern "C" __global__ void encode(
    u8* panel, int width, i64 n_rows, const i64* sources, int n_sources,
    const u64* bounds, int n_bounds, int is_near)
{
    DYNAMIC(u64, near_by);
    Source* columns = (Source*)near_by;
    u64* held = near_by + n_sources * (sizeof(Source) / sizeof(u64));
    const Source* told = (const Source*)sources;
    for (int k = threadIdx.x; k < n_sources; k += blockDim.x) columns[k] = told[k];
    if (is_near)
        for (int k = threadIdx.x; k < n_bounds; k += blockDim.x) held[k] = bounds[k];
    __syncthreads();
    const u64* all = is_near ? held : bounds;
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += step) {
        u64 low = 0, high = 0;
        for (int c = 0; c < n_sources; c++) {
            Source column = columns[c];
            const void* values = (const void*)column.values;
            int type = (int)column.type, n = (int)column.n;
            const u64* own = all + column.first;
            i64 at = row * column.step;
            u32 code;
            bool is_missing = false;
            if (column.order == AS_IT_IS) {
                code = value_of<u32>(values, type, at);
            } else if (column.order == REAL) {
                double value = value_of<double>(values, type, at);
                is_missing = value != value;
                code = n_below((const double*)own, n, value);
            } else if (column.order == WHOLE) {
                code = n_below((const i64*)own, n, value_of<i64>(values, type, at));
            } else {
                code = n_below(own, n, value_of<u64>(values, type, at));
            }
            if (is_missing) code = (u32)column.missing;
            else if (column.codes) code = ((const u16*)column.codes)[code];
            if (column.shift < 64) low |= (u64)code << column.shift;
            else high |= (u64)code << (column.shift - 64);
        }
        if (width == 1) panel[row] = (u8)low;
        else if (width == 4) ((u32*)panel)[row] = (u32)low;
        else if (width == 8) ((u64*)panel)[row] = low;
        else ((ulonglong2*)panel)[row] = make_ulonglong2(low, high);
    }
}

// The same for floats of one type without codes of their own: four columns at once, so that none
// waits for the other. The bounds of each column are a tree of `steps` levels, one after the other,
// the root at place 1: the first levels lie in different banks, whoever goes where.
template <typename T>
__device__ inline void encode_floats(
    u8* panel, int width, i64 n_rows, const Source* told, int n_sources, const T* bounds, int steps)
{
    DYNAMIC(u64, near_by);
    Source* columns = (Source*)near_by;
    T* held = (T*)(near_by + n_sources * (sizeof(Source) / sizeof(u64)));
    for (int k = threadIdx.x; k < n_sources; k += blockDim.x) columns[k] = told[k];
    for (int k = threadIdx.x; k < n_sources << steps; k += blockDim.x) held[k] = bounds[k];
    __syncthreads();
    const int EACH = 4;
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += step) {
        u64 low = 0, high = 0;
        for (int c = 0; c < n_sources; c += EACH) {
            T value[EACH];
            int at[EACH];
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                at[k] = 1;
                if (c + k < n_sources)
                    value[k] = ((const T*)columns[c + k].values)[row * columns[c + k].step];
            }
            const T* tree = held + (c << steps);
            for (int level = 0; level < steps; level++) {
#pragma unroll
                for (int k = 0; k < EACH; k++)
                    if (c + k < n_sources)
                        at[k] = 2 * at[k] + (tree[(k << steps) + at[k]] < value[k] ? 1 : 0);
            }
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                if (c + k >= n_sources) continue;
                bool is_missing = value[k] != value[k];
                u64 code = is_missing ? (u64)columns[c + k].missing : (u64)(at[k] - (1 << steps));
                int shift = (int)columns[c + k].shift;
                if (shift < 64) low |= code << shift;
                else high |= code << (shift - 64);
            }
        }
        if (width == 4) ((u32*)panel)[row] = (u32)low;
        else if (width == 8) ((u64*)panel)[row] = low;
        else ((ulonglong2*)panel)[row] = make_ulonglong2(low, high);
    }
}

#define ENCODE(NAME, T)                                                                          \
    extern "C" __global__ void NAME(                                                             \
        u8* panel, int width, i64 n_rows, const i64* sources, int n_sources, const u8* bounds,   \
        int steps)                                                                               \
    {                                                                                            \
        encode_floats<T>(panel, width, n_rows, (const Source*)sources, n_sources,                \
                         (const T*)bounds, steps);                                               \
    }
ENCODE(encode_f4, float)
ENCODE(encode_f8, double)

// --- which rules cover a row --------------------------------------------------------------------

// Of a column: its values, their type, how they are compared, where its bounds begin, how many
// these are, the cell of a missing value, where its table begins, and how far apart its values are.
// The table has for each cell the rules that it leaves possible, as bits in words.
struct Lookup { i64 values, type, order, first, n, missing, table, step; };

extern "C" __global__ void match(
    const i64* lookups, int n_lookups, const u64* bounds, const u64* tables, int n_words,
    i64 start, i64 n_rows, u64* bits, int* firsts)
{
    DYNAMIC(Lookup, columns);
    const int WORDS = 4;
    for (int k = threadIdx.x; k < n_lookups; k += blockDim.x)
        columns[k] = ((const Lookup*)lookups)[k];
    __syncthreads();
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += step) {
        int first = -1;
        for (int word = 0; word < n_words; word += WORDS) {
            u64 held[WORDS];
#pragma unroll
            for (int k = 0; k < WORDS; k++) held[k] = word + k < n_words ? tables[word + k] : 0;
            for (int c = 0; c < n_lookups; c++) {
                const void* values = (const void*)columns[c].values;
                i64 at = (start + row) * columns[c].step;
                int type = (int)columns[c].type, n = (int)columns[c].n;
                const u64* own = bounds + columns[c].first;
                int cell;
                if (columns[c].order == REAL) {
                    double value = value_of<double>(values, type, at);
                    cell = value != value ? (int)columns[c].missing
                                          : n_below((const double*)own, n, value);
                } else if (columns[c].order == WHOLE) {
                    cell = n_below((const i64*)own, n, value_of<i64>(values, type, at));
                } else {
                    cell = n_below(own, n, value_of<u64>(values, type, at));
                }
                const u64* possible = tables + columns[c].table + (i64)cell * n_words + word;
#pragma unroll
                for (int k = 0; k < WORDS; k++)
                    if (word + k < n_words) held[k] &= possible[k];
            }
#pragma unroll
            for (int k = 0; k < WORDS; k++) {
                if (word + k >= n_words) continue;
                bits[row * n_words + word + k] = held[k];
                if (first < 0 && held[k]) first = 64 * (word + k) + __ffsll((i64)held[k]) - 1;
            }
        }
        firsts[row] = first;
    }
}

// --- what a column holds ------------------------------------------------------------------------

// Each thread says for itself: missing, infinite below, infinite above, with a fraction, the least
// and the largest.
extern "C" __global__ void look(
    const u8* values, int type, i64 apart, i64 n_rows, double* found)
{
    i64 me = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
    const double FAR = 1.7976931348623157e308;
    u32 missing = 0, below = 0, above = 0, fractions = 0;
    double least = FAR * 2, most = -FAR * 2;  // infinite
    for (i64 row = me; row < n_rows; row += step) {
        double value = value_of<double>(values, type, row * apart);
        if (value != value) missing++;
        else if (value > FAR) above++;
        else if (value < -FAR) below++;
        else {
            fractions += value != rint(value);
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
    }
    found[me] = missing;
    found[step + me] = below;
    found[2 * step + me] = above;
    found[3 * step + me] = fractions;
    found[4 * step + me] = least;
    found[5 * step + me] = most;
}

// Counts of values that are known, in order; of others as many as there is room for.
template <typename T>
__device__ inline void census_of(
    const void* values, int type, i64 apart, i64 n_rows, const T* known, int n_known,
    u64* counts, T* others, int room, u32* n_others)
{
    DYNAMIC(u64, near_by);
    T* held = (T*)near_by;
    u32* found = (u32*)(near_by + n_known);
    for (int k = threadIdx.x; k < n_known; k += blockDim.x) held[k] = known[k], found[k] = 0;
    __syncthreads();
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += step) {
        T value = value_of<T>(values, type, row * apart);
        double real = (double)value;
        if (real != real || real - real != 0) continue;  // missing or infinite
        int at = n_below(held, n_known, value);
        if (at < n_known && held[at] == value) {
            atomicAdd(found + at, 1u);
        } else {
            u32 place = atomicAdd(n_others, 1u);
            if (place < (u32)room) others[place] = value;
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < n_known; k += blockDim.x)
        if (found[k]) atomicAdd(counts + k, (u64)found[k]);
}

#define TAKE(NAME, T)                                                                            \
    extern "C" __global__ void NAME(                                                             \
        const u8* values, int type, i64 apart, i64 n_rows, const u8* known, int n_known,         \
        u64* counts, u8* others, int room, u32* n_others)                                        \
    {                                                                                            \
        census_of((const void*)values, type, apart, n_rows, (const T*)known, n_known, counts,    \
                  (T*)others, room, n_others);                                                   \
    }
TAKE(census_real, double)
TAKE(census_whole, i64)
TAKE(census_unsigned, u64)
"""
