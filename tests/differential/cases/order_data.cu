// Launches whose children find the address that they conflict in by loading it from memory that nobody
// writes, as the vertices of an edge list are. One block keeps its order. Many blocks have none among them,
// so what they do to the same words has the same result in any order and overlapped.
#include "order_cells.h"

namespace klap::differential::data {

#ifdef __CUDACC__

// Loads its place itself.
template <class Access>
__global__ void loading_child(int* cells, const int* given, int index, int launch) {
  if (threadIdx.x == 0) Access::run(cells, given[index], launch);
}
template <class Access>
__global__ void read_only_child(int* __restrict__ cells, const int* __restrict__ given, int index,
                                int launch) {
  if (threadIdx.x == 0) Access::run(cells, given[index], launch);
}

#endif

struct OneBlock : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneBlockReadsOnly : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    read_only_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// One block launches of a grid of many.
struct OneOfManyBlocks : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (blockIdx.x == 4) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// The first block alone launches, by its place and by the places of its threads in the grid.
struct FirstOfManyBlocks : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (blockIdx.x < 1) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct FirstThreadsOfGrid : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread < 64) loading_child<Access><<<1, 32>>>(cells, given, thread, thread);
  }
#endif
};
// Blocks draw numbers, and the block that draws the last one launches alone. Its threads learn so by a vote,
// or by shared memory.
struct LastDrawing : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1, kDrawn = 500;
  KLAP_SHARED static void run_beside(int* cells) { cells[kDrawn] = 64 * 6; }
};
struct LastBlockByVote : LastDrawing {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const bool is_last = atomicAdd(cells + kDrawn, 1) == 64 * 6 - 1;
    if (__syncthreads_or(is_last)) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct LastBlockByFlag : LastDrawing {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ bool is_last;
    is_last = false;
    __syncthreads();
    if (atomicAdd(cells + kDrawn, 1) == 64 * 6 - 1) is_last = true;
    __syncthreads();
    if (is_last) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// One block launches, by a function of its number and by how many of its threads may.
struct OneByRemainder : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (blockIdx.x % 7 == given[2]) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneByCount : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int threads = blockIdx.x == 3 ? given[2] * 16 : 0;
    if (static_cast<int>(threadIdx.x) < threads)
      loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// The last block has the rest of the work.
struct LastOfManyBlocks : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (blockIdx.x > given[2]) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Its first thread tells the others by shared memory.
struct OneByFlag : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ bool is_chosen;
    if (threadIdx.x == 0) is_chosen = blockIdx.x == given[2];
    __syncthreads();
    if (is_chosen) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Input names one block: by a bit, by a distance, and by the beginning of a window.
struct OneByBit : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (given[2] >> blockIdx.x & 1) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneByDistance : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int block = blockIdx.x;
    if (abs(block - given[2]) < given[1])
      loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneInWindow : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const unsigned first = given[2], count = given[1];
    if (blockIdx.x - first < count) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// All blocks come to the launch, and CUDA refuses those of all but one.
struct OneByGrid : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int blocks = blockIdx.x == given[2] ? 1 : 0;
    loading_child<Access><<<blocks, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneByExtent : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int threads = blockIdx.x == given[2] ? 32 : 0;
    loading_child<Access><<<1, threads>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Two ways lead to the launch, and one block comes on one of them.
struct OneByTwoWays : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1, kWay = 500;
  KLAP_SHARED static void run_beside(int* cells) { cells[kWay] = 1; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (blockIdx.x == 4) {
      if (threadIdx.x == 0) cells[kWay] = 1;
    } else if (blockIdx.x != given[2] + 50) {
      return;
    }
    loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// The index of the block comes from shared memory.
struct OneByCopy : ParentOfOneGrid<64, 6> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int block;
    if (threadIdx.x == 0) block = blockIdx.x;
    __syncthreads();
    if (block == given[2]) loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// A function draws the number and tells it to the warp.
#ifdef __CUDACC__
__device__ __noinline__ int drawn_by_warp(int* drawn) {
  int number = 0;
  if (threadIdx.x == 0) number = atomicAdd(drawn, 1);
  return __shfl_sync(0xffffffffU, number, 0);
}
#endif
struct LastBlockByCall : ParentOfOneGrid<32, 6> {
  static constexpr int kLaunches = 32, kInOrder = 1, kDrawn = 500;
  KLAP_SHARED static void run_beside(int* cells) { cells[kDrawn] = 6; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (drawn_by_warp(cells + kDrawn) == 5)
      loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Many blocks, each with cells of its own: what their children load leads to words of the same block only.
struct OwnCells : Parent<32, 1, 1, 6> {
  static constexpr int kLaunches = 32, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    loading_child<Access><<<1, 32>>>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// The places are not input: the parent has written them.
struct WrittenByParent : Parent<32, 1, 1, 6> {
  static constexpr int kLaunches = 32, kInOrder = 1;
  KLAP_SHARED static void run_beside(int* cells) {
    for (int thread = 0; thread < 32; ++thread) cells[400 + thread] = thread * thread % 5;
  }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    cells[400 + thread] = given[thread];
    loading_child<Access><<<1, 32>>>(cells, cells + 400, thread, thread);
  }
#endif
};
// One thread of each block in order, and all blocks in words of their own.
struct OwnCellsInLoop : Parent<32, 1, 1, 6> {
  static constexpr int kLaunches = 16, kInOrder = 16;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 11) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) loading_child<Access><<<1, 32>>>(cells, given, turn, turn);
  }
#endif
};
struct OwnCellsInTurns : Parent<32, 1, 1, 6> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (lane == (turn ^ 9)) loading_child<Access><<<1, 32>>>(cells, given, turn, turn);
      __syncwarp();
    }
  }
#endif
};
struct ManyBlocks : ParentOfOneGrid<32, 6> {
  static constexpr int kLaunches = 192, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    loading_child<Access><<<1, 32>>>(cells, given, thread, thread);
  }
#endif
};
struct ManyBlocksOfOne : ParentOfOneGrid<1, 40> {
  static constexpr int kLaunches = 40, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    loading_child<Access><<<1, 32>>>(cells, given, blockIdx.x, blockIdx.x);
  }
#endif
};

// ---- accesses ----

struct AtGiven {
  static constexpr int kActive = 1;
  KLAP_SHARED static int place(int*, const int* given, int index) { return given[index]; }
};
struct Adds : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
struct Tears : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const scratch = cells + 4 * place;
    for (int i = 0; i < 4; ++i) scratch[i] = launch * 10 + i;
    reload();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += exchange_plainly(scratch + i, 0);
    cells[128 + launch] = sum;
  }
};
struct Locks : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int found = compare_and_swap(cells + place, 0, 1);
    reload();
    cells[128 + launch] = 1 - found;
    exchange(cells + place, 0);
  }
};
// A list for each place, in which two entries of a child stand side by side.
struct AppendsPairs : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int first = add(cells + place, 1), second = add(cells + place, 1);
    cells[128 + launch] = second - first;
  }
};
// The distance to a vertex becomes less, and who has lowered it says so.
struct Relaxes : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int distance = -(launch * 7 % 50) - 1;
    if (cells[place] > distance) {
      cells[place] = distance;
      cells[16] = 1;
    }
  }
};
// A vertex is visited once.
struct VisitsOnce : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int) {
    if (cells[place] == 0) {
      cells[place] = 1;
      add(cells + 16, 1);
    }
  }
};
struct MultipliesAt : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] = cells[place] * 3 + launch + 1;
  }
};
struct AppendsAt : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[64 * place + 8 + add(cells + place, 1)] = launch + 1;
  }
};

// Order-free also where children overlap.
struct AddsAtomically : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) { add(cells + place, launch + 1); }
};
struct RaisesAtomically : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) { maximum(cells + place, launch * 7 % 50); }
};
// A child that lowers a distance says so.
struct RelaxesAtomically : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int distance = -(launch * 7 % 50) - 1;
    if (minimum(cells + place, distance) > distance) maximum(cells + 16, 1);
  }
};
struct VisitsAtomically : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int) {
    if (compare_and_swap(cells + place, 0, 1) == 0) add(cells + 16, 1);
  }
};
struct TakesSlots : AtGiven {
  KLAP_SHARED static void run(int* cells, int place, int) {
    cells[100 * place + 8 + add(cells + place, 1)] = 1;
  }
};

ORDER_CELL(order_data_add, OneBlock, Adds, "children of one block lose updates where their data meets")
ORDER_CELL(order_data_tear, OneBlock, Tears, "children of one block share scratch words that data names")
ORDER_CELL(order_data_lock, OneBlock, Locks, "a child of one block finds the lock of its vertex taken")
ORDER_CELL(order_data_append, OneBlock, AppendsPairs,
           "entries of one block in the list of a vertex are mixed")
ORDER_CELL(order_data_relax, OneBlock, Relaxes, "children of one block miss what lowers a distance")
ORDER_CELL(order_data_visit, OneBlock, VisitsOnce, "children of one block visit a vertex twice")
ORDER_CELL(order_data_read_only, OneBlockReadsOnly, Adds, "read-only data of one block is taken to be apart")
ORDER_CELL(order_data_one_of_many_add, OneOfManyBlocks, Adds, "the only block that launches loses updates")
ORDER_CELL(order_data_first_of_many_add, FirstOfManyBlocks, Adds, "the first block alone loses updates")
ORDER_CELL(order_data_first_threads_add, FirstThreadsOfGrid, Adds, "the grid's first threads lose updates")
ORDER_CELL(order_data_one_by_remainder_add, OneByRemainder, Adds, "one block, by a remainder, loses updates")
ORDER_CELL(order_data_one_by_count_add, OneByCount, Adds, "one block, by a count, loses updates")
ORDER_CELL(order_data_last_of_many_add, LastOfManyBlocks, Adds, "the last block alone loses updates")
ORDER_CELL(order_data_one_by_flag_add, OneByFlag, Adds, "one block, by a flag, loses updates")
ORDER_CELL(order_data_one_by_bit_add, OneByBit, Adds, "one block, by a bit, loses updates")
ORDER_CELL(order_data_one_by_distance_add, OneByDistance, Adds, "one block, by a distance, loses updates")
ORDER_CELL(order_data_one_in_window_add, OneInWindow, Adds, "one block, by a window, loses updates")
ORDER_CELL(order_data_one_by_grid_add, OneByGrid, Adds, "one block, by its grids, loses updates")
ORDER_CELL(order_data_one_by_extent_add, OneByExtent, Adds, "one block, by its blocks, loses updates")
ORDER_CELL(order_data_one_by_two_ways_add, OneByTwoWays, Adds, "one block, by two ways, loses updates")
ORDER_CELL(order_data_one_by_copy_add, OneByCopy, Adds, "one block, by a copied index, loses updates")
ORDER_CELL(order_data_last_by_call_add, LastBlockByCall, Adds, "the last block, by a call, loses updates")
ORDER_CELL(order_data_last_by_vote_add, LastBlockByVote, Adds, "the last block, which votes, loses updates")
ORDER_CELL(order_data_last_by_flag_add, LastBlockByFlag, Adds, "the last block, by a flag, loses updates")
ORDER_CELL(order_data_one_of_many_lock, OneOfManyBlocks, Locks, "the only block that launches finds a lock")
ORDER_CELL(order_data_own_add, OwnCells, Adds, "blocks with words of their own lose updates")
ORDER_CELL(order_data_own_tear, OwnCells, Tears, "children of a block share its own scratch words")
ORDER_CELL(order_data_own_lock, OwnCells, Locks, "a child finds the lock that only its block takes")
ORDER_CELL(order_data_own_visit, OwnCells, VisitsOnce, "a block visits a vertex of its own twice")
ORDER_CELL(order_data_own_append, OwnCells, AppendsPairs, "entries in a block's own lists are mixed")
ORDER_CELL(order_data_written_add, WrittenByParent, Adds, "places that the parent writes are taken for input")
ORDER_CELL(order_data_written_lock, WrittenByParent, Locks,
           "a lock at a place that the parent writes is found")
ORDER_CELL(order_data_loop_multiply, OwnCellsInLoop, MultipliesAt, "a loop's updates by data change places")
ORDER_CELL(order_data_loop_append, OwnCellsInLoop, AppendsAt, "a loop's entries by data change places")
ORDER_CELL(order_data_turns_multiply, OwnCellsInTurns, MultipliesAt, "turns' updates by data change places")
ORDER_CELL(order_data_turns_append, OwnCellsInTurns, AppendsAt, "turns' entries by data change places")

ORDER_CELL(order_data_blocks_add, ManyBlocks, AddsAtomically, "an atomic addition of many blocks is lost")
ORDER_CELL(order_data_blocks_raise, ManyBlocks, RaisesAtomically, "an atomic maximum of many blocks is lost")
ORDER_CELL(order_data_blocks_relax, ManyBlocks, RelaxesAtomically, "an atomic minimum of many blocks is lost")
ORDER_CELL(order_data_blocks_visit, ManyBlocks, VisitsAtomically, "many blocks visit a vertex twice")
ORDER_CELL(order_data_blocks_slots, ManyBlocks, TakesSlots, "two children of many blocks take the same slot")
ORDER_CELL(order_data_single_add, ManyBlocksOfOne, AddsAtomically,
           "an addition of blocks of one thread is lost")
ORDER_CELL(order_data_single_visit, ManyBlocksOfOne, VisitsAtomically,
           "blocks of one thread visit a vertex twice")

}  // namespace klap::differential::data
