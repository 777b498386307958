// Sums over the rows of a sparse matrix or graph, balanced whatever the rows' lengths: what the programs that
// gather along rows do without dynamic parallelism.
//
// A thread or a warp per row wastes most of its threads where a few rows are a thousand times as long as the
// others, as in R-MAT graphs. Here the entries are dealt out instead: every block takes the next 2,048 of
// them wherever rows begin and end. Nothing is prepared beforehand; a block finds its first row by a search
// in the row offsets while its entries are on their way from memory.
//
// Rows that lie within one warp's 256 entries are stored; pieces of longer rows are added atomically, so the
// sums must be zero before, and the additions must be exact in any order.
#pragma once

#include <cuda_runtime.h>

namespace bench {

constexpr int kRowSumsBlock = 256;
constexpr int kRowSumsPerThread = 8;
// Blocks that a multiprocessor should hold, for __launch_bounds__: enough loads under way to keep memory
// busy.
constexpr int kRowSumsResident = 6;
constexpr int kRowSumsPerWarp = 32 * kRowSumsPerThread;
constexpr int kRowSumsPerBlock = kRowSumsBlock * kRowSumsPerThread;

template <class Value>
struct RowSums {
  const int* first;  // rows + 1: where each row's entries begin
  int rows;
  int entries;  // at least one
  Value* sums;  // one per row, zero before
};

namespace row_sums {

constexpr int kWarps = kRowSumsBlock / 32;
constexpr int kWords = kRowSumsPerBlock / 32;  // of 32 entries each
constexpr unsigned kAll = 0xffffffffU;

// One element unused after every 32, so that neither reading along lanes nor along a lane's own entries meets
// the same bank twice.
__device__ inline int padded(int entry) { return entry + entry / 32; }

template <class Value>
struct Shared {
  Value value[kRowSumsPerBlock + kWords];
  int row[kRowSumsPerBlock];  // of the entry, where begins[] says that a row begins there
  unsigned begins[kWords];    // one bit an entry
  int first_row;              // the row that the block's first entry belongs to
};

// The row that contains `entry`: the last one that does not begin after it. All lanes of a warp call this.
__device__ inline int find_row(const int* first, int rows, int entry) {
  const unsigned lane = threadIdx.x % 32;
  unsigned low = 0;                             // begins at or before the entry
  unsigned high = static_cast<unsigned>(rows);  // begins after it
  while (high - low > 1) {
    const unsigned step = (high - low + 31) / 32;
    const unsigned probe = low + (lane + 1) * step;
    const bool before = probe < high && first[probe] <= entry;
    low += static_cast<unsigned>(__popc(__ballot_sync(kAll, before))) * step;
    high = min(high, low + step);
  }
  return static_cast<int>(low);
}

// Notes where rows begin among the block's entries [start, start + count).
template <class Value>
__device__ void mark_rows(const RowSums<Value>& r, int start, int count, Shared<Value>& s) {
  for (long long row = s.first_row + static_cast<int>(threadIdx.x); row < r.rows; row += kRowSumsBlock) {
    const int begin = r.first[row];
    const int end = r.first[row + 1];
    const int place = begin - start;
    if (place >= count) return;
    if (place < 0 || begin == end) continue;
    s.row[place] = static_cast<int>(row);
    atomicOr(&s.begins[place / 32], 1U << (place % 32));
  }
}

// The row that is open where a warp's entries begin.
template <class Value>
__device__ int row_before(int warp, const Shared<Value>& s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int row = s.first_row;
#pragma unroll
  for (int i = 0; i < kWords / 32; ++i) {
    const int word = lane + 32 * i;
    const unsigned bits = word < warp * kRowSumsPerThread ? s.begins[word] : 0;
    const unsigned lanes = __ballot_sync(kAll, bits != 0);
    const int here = bits != 0 ? s.row[word * 32 + 31 - __clz(static_cast<int>(bits))] : 0;
    if (lanes != 0) row = __shfl_sync(kAll, here, 31 - __clz(static_cast<int>(lanes)));
  }
  return row;
}

// Sums a warp's entries, eight consecutive ones a lane, and stores or adds what each row gets of them.
template <class Value>
__device__ void sum_warp(int warp, const Shared<Value>& s, Value* sums) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int begin = warp * kRowSumsPerWarp + lane * kRowSumsPerThread;
  const unsigned bits = s.begins[begin / 32] >> (begin % 32) & ((1U << kRowSumsPerThread) - 1);
  Value own[kRowSumsPerThread];
#pragma unroll
  for (int i = 0; i < kRowSumsPerThread; ++i) own[i] = s.value[padded(begin) + i];
  // Up to the lane's first row's begin, then row by row; the lane's last row stays open.
  Value leading = 0;
  Value sum = 0;
  int row = 0;
#pragma unroll
  for (int i = 0; i < kRowSumsPerThread; ++i) {
    if ((bits >> i & 1) != 0) {
      if ((bits & ((1U << i) - 1)) == 0) {
        leading = sum;
      } else {
        sums[row] = sum;
      }
      sum = 0;
      row = s.row[begin + i];
    }
    sum += own[i];
  }
  // Add up each open row over the lanes that it stretches across, this one included.
  const unsigned begun = __ballot_sync(kAll, bits != 0);
  const unsigned begun_here = begun & (kAll >> (31 - lane));
  const int origin = begun_here == 0 ? -1 : 31 - __clz(static_cast<int>(begun_here));
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Value other = __shfl_up_sync(kAll, sum, distance);
    if (lane - distance >= max(origin, 0)) sum += other;
  }
  const int open_row = __shfl_sync(kAll, row, max(origin, 0));
  const int before = row_before(warp, s);
  const int current = origin < 0 ? before : open_row;
  // A lane in which a row begins ends the row that was open before it.
  const Value earlier = __shfl_up_sync(kAll, sum, 1);
  const int earlier_row = __shfl_up_sync(kAll, current, 1);
  const int earlier_origin = __shfl_up_sync(kAll, origin, 1);
  if (bits != 0) {
    const Value total = lane == 0 ? leading : earlier + leading;
    if (lane != 0 && earlier_origin >= 0) {
      sums[earlier_row] = total;
    } else if (lane != 0 || (bits & 1) == 0) {
      atomicAdd(&sums[lane == 0 ? before : earlier_row], total);
    }
  }
  if (lane == 31) atomicAdd(&sums[current], sum);
}

// A thread's entries are `mine`, 32 further and so on. Only a matrix's last block may have fewer than it can
// take; the others (kWhole) need not compare.
template <bool kWhole, class Terms>
__device__ void load(const Terms& terms, int start, int mine, int count,
                     typename Terms::Loaded (&loaded)[kRowSumsPerThread]) {
#pragma unroll
  for (int i = 0; i < kRowSumsPerThread; ++i) {
    if (kWhole || mine + 32 * i < count) loaded[i] = terms.load(start + mine + 32 * i);
  }
}

template <bool kWhole, class Value, class Terms>
__device__ void stage(const Terms& terms, int mine, int count,
                      const typename Terms::Loaded (&loaded)[kRowSumsPerThread], Shared<Value>& s) {
#pragma unroll
  for (int i = 0; i < kRowSumsPerThread; ++i) {
    const bool exists = kWhole || mine + 32 * i < count;
    s.value[padded(mine) + 33 * i] = exists ? terms.value(loaded[i]) : Value{0};
  }
}

}  // namespace row_sums

// To be called by all threads of blocks of kRowSumsBlock threads, a block for every kRowSumsPerBlock entries.
// Terms::load(e) reads entry e from memory, Terms::value(loaded) makes it the value that is summed; apart, so
// that all loads are under way before the first result is needed.
template <class Value, class Terms>
__device__ void sum_rows(const RowSums<Value>& r, const Terms& terms) {
  __shared__ row_sums::Shared<Value> s;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int start = static_cast<int>(blockIdx.x) * kRowSumsPerBlock;
  const int count = min(kRowSumsPerBlock, r.entries - start);
  const int mine = warp * kRowSumsPerWarp + static_cast<int>(threadIdx.x % 32);
  const bool whole = count == kRowSumsPerBlock;
  typename Terms::Loaded loaded[kRowSumsPerThread];
  if (whole) {
    row_sums::load<true>(terms, start, mine, count, loaded);
  } else {
    row_sums::load<false>(terms, start, mine, count, loaded);
  }
  if (warp == 0) {
    const int row = row_sums::find_row(r.first, r.rows, start);
    if (threadIdx.x == 0) s.first_row = row;
  }
  if (threadIdx.x < row_sums::kWords) s.begins[threadIdx.x] = 0;
  if (whole) {
    row_sums::stage<true>(terms, mine, count, loaded, s);
  } else {
    row_sums::stage<false>(terms, mine, count, loaded, s);
  }
  __syncthreads();
  row_sums::mark_rows(r, start, count, s);
  __syncthreads();
  row_sums::sum_warp(warp, s, r.sums);
}

}  // namespace bench
