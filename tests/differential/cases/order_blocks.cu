// Blocks of several dimensions, parents of many blocks of which each keeps its own order, launches whose
// descendants conflict, and streams beside the NULL stream.
#include "order_cells.h"

namespace klap::differential::blocks {

// ---- what an index leaves out of a block of several dimensions ----

struct ColumnsOf2D : Parent<8, 12> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 8; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.y * 8 + threadIdx.x);
  }
#endif
};
struct RowsOf2D : Parent<8, 12> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 8; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.y, threadIdx.y * 8 + threadIdx.x);
  }
#endif
};
// The block is longer than the rows that the index is made for.
struct ShortRows : Parent<16, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 16 * 8 + launch % 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.y * 8 + threadIdx.x, threadIdx.y * 16 + threadIdx.x);
  }
#endif
};
// The length of a row is the block's height.
struct WrongStride : Parent<16, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 16 * 6 + launch % 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.y * blockDim.y + threadIdx.x,
                   threadIdx.y * blockDim.x + threadIdx.x);
  }
#endif
};
// The length of a row is loaded.
struct LoadedStride : Parent<16, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 16 * 4 + launch % 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.y * given[2] + threadIdx.x, threadIdx.y * 16 + threadIdx.x);
  }
#endif
};
struct Diagonals : Parent<8, 8> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 8 + launch % 8; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x + threadIdx.y, threadIdx.y * 8 + threadIdx.x);
  }
#endif
};
struct LayersOf3D : Parent<4, 4, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.y * 4 + threadIdx.x,
                   (threadIdx.z * 4 + threadIdx.y) * 4 + threadIdx.x);
  }
#endif
};
struct FlatLayersOf3D : Parent<4, 4, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 16 * 4 + launch % 4; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.z * 4 + threadIdx.x,
                   (threadIdx.z * 4 + threadIdx.y) * 4 + threadIdx.x);
  }
#endif
};
// One layer of several, whose launches are those of threads with the same x and y.
struct OneColumnOf3D : Parent<4, 2, 16> {
  static constexpr int kLaunches = 16, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 1 && threadIdx.y == 1) launch<Access>(cells, given, threadIdx.z, threadIdx.z);
  }
#endif
};

// ---- many blocks, each with cells of its own ----

struct ManyBlocks : Parent<32, 1, 1, 6> {
  static constexpr int kLaunches = 32, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct OneThreadOfManyBlocks : Parent<64, 1, 1, 6> {
  static constexpr int kLaunches = 12, kInOrder = 12;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 50) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) launch<Access>(cells, given, turn, turn);
  }
#endif
};
struct TurnsOfManyBlocks : Parent<64, 1, 1, 6> {
  static constexpr int kLaunches = 12, kInOrder = 12;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (static_cast<int>(threadIdx.x) == turn * 5) launch<Access>(cells, given, turn, turn);
      __syncthreads();
    }
  }
#endif
};
// Only the first warp of each block launches, in two rows.
struct RowsOfManyBlocks : Parent<16, 4, 1, 3> {
  static constexpr int kLaunches = 32, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.y < 2) launch<Access>(cells, given, threadIdx.x, threadIdx.y * 16 + threadIdx.x);
  }
#endif
};

struct Remainder : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return index % 3; }
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
struct Loaded : Access {
  KLAP_SHARED static int place(int*, const int* given, int index) { return given[index]; }
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
// Scratch words for each row of launches, which the threads of a column share.
struct TearsAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const scratch = cells + 4 * place;
    for (int i = 0; i < 4; ++i) scratch[i] = launch * 10 + i;
    reload();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += exchange_plainly(scratch + i, 0);
    cells[128 + launch] = sum;
  }
};
struct LocksAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int found = compare_and_swap(cells + place, 0, 1);
    reload();
    cells[128 + launch] = 1 - found;
    exchange(cells + place, 0);
  }
};

// ---- launches with descendants ----

#ifdef __CUDACC__

// Seven kernels, numbered as one thread after another would launch them.
template <class Access>
__global__ void tree(int* cells, int place, int number, int depth) {
  run_in_child<Access>(cells, place, number);
  if (depth == 0 || threadIdx.x != 0) return;
  tree<Access><<<1, 32>>>(cells, place, number + 1, depth - 1);
  tree<Access><<<1, 32>>>(cells, place, number + (1 << depth), depth - 1);
}
// Does nothing itself.
template <class Access>
__global__ void between(int* cells, int place, int number) {
  if (threadIdx.x == 0) child<Access><<<kChildBlocks<Access>, 32>>>(cells, place, number);
}
template <class Access>
__global__ void between_twice(int* cells, int place, int number) {
  if (threadIdx.x == 0) between<Access><<<1, 32>>>(cells, place, number);
}
template <class Access>
__device__ __forceinline__ void launch_tree(int* cells, const int* given, int index, int number) {
  tree<Access><<<1, 32>>>(cells, Access::place(cells, given, index), number, 2);
}

#endif

struct TreesOfThreads : Parent<32> {
  static constexpr int kLaunches = 70, kInOrder = 7;
  KLAP_SHARED static int index_of(int launch) { return launch / 7; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 10) launch_tree<Access>(cells, given, thread, 7 * thread);
  }
#endif
};
struct TreesInLine : Parent<32> {
  static constexpr int kLaunches = 14, kInOrder = 14;
  KLAP_SHARED static int index_of(int launch) { return launch / 7; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 8) return;
    launch_tree<Access>(cells, given, 0, 0);
    launch_tree<Access>(cells, given, 1, 7);
  }
#endif
};
struct TreesAroundBarrier : Parent<64> {
  static constexpr int kLaunches = 14, kInOrder = 14;
  KLAP_SHARED static int index_of(int launch) { return launch / 7; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) launch_tree<Access>(cells, given, 0, 0);
    __syncthreads();
    if (threadIdx.x == 8) launch_tree<Access>(cells, given, 1, 7);
  }
#endif
};
struct TreesOfLanes : Parent<32> {
  static constexpr int kLaunches = 14, kInOrder = 14;
  KLAP_SHARED static int index_of(int launch) { return launch / 7; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 0) {
      launch_tree<Access>(cells, given, 0, 0);
      __syncwarp(3);
    } else if (lane == 1) {
      __syncwarp(3);
      launch_tree<Access>(cells, given, 1, 7);
    }
  }
#endif
};
// The first launch's grandchild comes before the second launch.
struct GrandchildFirst : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) between_twice<Access><<<1, 32>>>(cells, Access::place(cells, given, 0), 0);
    __syncthreads();
    if (threadIdx.x == 8) launch<Access>(cells, given, 1, 1);
  }
#endif
};
struct GrandchildrenOfThreads : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    between<Access><<<1, 32>>>(cells, Access::place(cells, given, thread), thread);
  }
#endif
};
struct GrandchildrenInLoop : Parent<64> {
  static constexpr int kLaunches = 10, kInOrder = 10;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 33) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; turn += 2) {
      between_twice<Access><<<1, 32>>>(cells, Access::place(cells, given, turn), turn);
      launch<Access>(cells, given, turn + 1, turn + 1);
    }
  }
#endif
};

// ---- streams ----

#ifdef __CUDACC__
__global__ void count_beside(int* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}
#endif

// Launches without order count beside launches with one.
struct BesideForgotten : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static void run_beside(int* cells) { cells[kCells - 1] += 64; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    count_beside<<<1, 32, 0, cudaStreamFireAndForget>>>(cells + kCells - 1);
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct BarrierBesideForgotten : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
  KLAP_SHARED static void run_beside(int* cells) { cells[kCells - 1] += 64; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) launch<Access>(cells, given, 0, 0);
    count_beside<<<1, 32, 0, cudaStreamFireAndForget>>>(cells + kCells - 1);
    __syncthreads();
    if (threadIdx.x == 8) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// The tail comes behind all threads' launches.
struct TailOfThreads : Parent<64> {
  static constexpr int kLaunches = 65, kInOrder = 65;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 0)
      other_child<Access>
          <<<kChildBlocks<Access>, 32, 0, cudaStreamTailLaunch>>>(cells, Access::place(cells, given, 64), 64);
    launch<Access>(cells, given, thread, thread);
  }
#endif
};
// A stream that one thread creates and others launch into.
struct SharedStream : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ cudaStream_t stream;
    if (threadIdx.x == 0) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    __syncthreads();
    if (threadIdx.x == 40)
      child<Access><<<kChildBlocks<Access>, 32, 0, stream>>>(cells, Access::place(cells, given, 0), 0);
    __syncthreads();
    if (threadIdx.x == 8)
      child<Access><<<kChildBlocks<Access>, 32, 0, stream>>>(cells, Access::place(cells, given, 1), 1);
    __syncthreads();
    if (threadIdx.x == 0) cudaStreamDestroy(stream);
  }
#endif
};
struct SharedStreamOfAll : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ cudaStream_t stream;
    const int thread = threadIdx.x;
    if (thread == 0) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    __syncthreads();
    child<Access>
        <<<kChildBlocks<Access>, 32, 0, stream>>>(cells, Access::place(cells, given, thread), thread);
    __syncthreads();
    if (thread == 0) cudaStreamDestroy(stream);
  }
#endif
};
// A stream of its own for each thread orders its launches only.
struct OwnStreams : Parent<32> {
  static constexpr int kLaunches = 96, kInOrder = 3;
  KLAP_SHARED static int index_of(int launch) { return launch / 3; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
#pragma unroll 1
    for (int turn = 0; turn < 3; ++turn)
      child<Access><<<kChildBlocks<Access>, 32, 0, stream>>>(cells, Access::place(cells, given, thread),
                                                             3 * thread + turn);
    cudaStreamDestroy(stream);
  }
#endif
};

ORDER_CELL(order_columns_add, ColumnsOf2D, AddsAtPlace, "threads of a column are taken to differ in x")
ORDER_CELL(order_columns_tear, ColumnsOf2D, TearsAtPlace, "threads of a column share scratch words")
ORDER_CELL(order_columns_lock, ColumnsOf2D, LocksAtPlace, "a child finds the lock of its column taken")
ORDER_CELL(order_rows_add, RowsOf2D, AddsAtPlace, "threads of a row are taken to differ in y")
ORDER_CELL(order_rows_lock, RowsOf2D, LocksAtPlace, "a child finds the lock of its row taken")
ORDER_CELL(order_short_rows_add, ShortRows, AddsAtPlace, "rows shorter than the block are taken to be apart")
ORDER_CELL(order_short_rows_lock, ShortRows, LocksAtPlace, "a child finds the lock of the next row taken")
ORDER_CELL(order_wrong_stride_add, WrongStride, AddsAtPlace, "rows as long as the block is high are apart")
ORDER_CELL(order_loaded_stride_add, LoadedStride, AddsAtPlace,
           "rows of a loaded length are taken to be apart")
ORDER_CELL(order_diagonals_add, Diagonals, AddsAtPlace, "threads of a diagonal are taken to differ in x + y")
ORDER_CELL(order_diagonals_lock, Diagonals, LocksAtPlace, "a child finds the lock of its diagonal taken")
ORDER_CELL(order_layers_add, LayersOf3D, AddsAtPlace, "threads of all layers are taken to differ in x and y")
ORDER_CELL(order_layers_tear, LayersOf3D, TearsAtPlace, "threads of all layers share scratch words")
ORDER_CELL(order_flat_layers_lock, FlatLayersOf3D, LocksAtPlace, "a child finds the lock of its layer taken")
ORDER_CELL(order_column_of_3d, OneColumnOf3D, AddsToFixedWord, "threads that differ in z lose updates")
ORDER_CELL(order_column_of_3d_append, OneColumnOf3D, AppendsTwo,
           "entries of threads that differ in z are mixed")

ORDER_CELL(order_many_blocks_add, ManyBlocks, AddsToFixedWord, "children of one block of many lose updates")
ORDER_CELL(order_many_blocks_tear, ManyBlocks, TearsScratch,
           "children of one block of many share scratch words")
ORDER_CELL(order_many_blocks_append, ManyBlocks, AppendsTwo, "entries of one block of many are mixed")
ORDER_CELL(order_many_blocks_take, ManyBlocks, TakesAndPutsBack,
           "a child of many blocks finds its word taken")
ORDER_CELL(order_many_blocks_lock, ManyBlocks, FindsLockFree, "a child of many blocks finds its block's lock")
ORDER_CELL(order_many_blocks_remainder, ManyBlocks, Remainder, "t % 3 in many blocks is taken to differ")
ORDER_CELL(order_many_blocks_loaded, ManyBlocks, Loaded, "what the parent loads by index is taken to differ")
ORDER_CELL(order_thread_of_blocks_append, OneThreadOfManyBlocks, Appends,
           "a thread of each block appends otherwise")
ORDER_CELL(order_thread_of_blocks_wide, OneThreadOfManyBlocks, Wide<Multiplies>,
           "wide children of blocks are mixed")
ORDER_CELL(order_turns_of_blocks_append, TurnsOfManyBlocks, Appends,
           "turns of many blocks append in another order")
ORDER_CELL(order_turns_of_blocks_last, TurnsOfManyBlocks, LastOneWins,
           "another turn of many blocks writes last")
ORDER_CELL(order_rows_of_blocks_lock, RowsOfManyBlocks, LocksAtPlace,
           "a child of two rows finds its lock taken")
ORDER_CELL(order_rows_of_blocks_tear, RowsOfManyBlocks, TearsAtPlace,
           "two rows of many blocks share scratch words")

ORDER_CELL(order_trees_add, TreesOfThreads, AddsToFixedWord, "subtrees of two threads lose updates")
ORDER_CELL(order_trees_tear, TreesOfThreads, TearsScratch, "subtrees of two threads share scratch words")
ORDER_CELL(order_trees_append, TreesOfThreads, AppendsTwo, "entries of two subtrees are mixed")
ORDER_CELL(order_trees_own, TreesOfThreads, MultipliesAtPlace, "a subtree's kernels are not in their order")
ORDER_CELL(order_trees_in_line_append, TreesInLine, Appends,
           "the second subtree of a thread begins too early")
ORDER_CELL(order_trees_in_line_last, TreesInLine, LastOneWins, "the first subtree of a thread writes last")
ORDER_CELL(order_trees_barrier_append, TreesAroundBarrier, Appends,
           "a subtree behind a barrier begins too early")
ORDER_CELL(order_trees_barrier_multiply, TreesAroundBarrier, Multiplies,
           "subtrees around a barrier are mixed")
ORDER_CELL(order_trees_lanes_append, TreesOfLanes, Appends, "subtrees of two lanes are mixed")
ORDER_CELL(order_trees_lanes_exchange, TreesOfLanes, Exchanges, "subtrees of two lanes exchange otherwise")
ORDER_CELL(order_grandchild_last, GrandchildFirst, LastOneWins,
           "a launch comes before an earlier one's grandchild")
ORDER_CELL(order_grandchild_read, GrandchildFirst, ReadsWhatWasWritten,
           "a launch reads before a grandchild writes")
ORDER_CELL(order_grandchildren_tear, GrandchildrenOfThreads, TearsScratch,
           "grandchildren share scratch words")
ORDER_CELL(order_grandchildren_append, GrandchildrenOfThreads, AppendsTwo,
           "entries of grandchildren are mixed")
ORDER_CELL(order_grandchildren_loop, GrandchildrenInLoop, Appends, "a loop's launch overtakes a grandchild")

ORDER_CELL(order_beside_forgotten_add, BesideForgotten, AddsToFixedWord,
           "updates beside other streams are lost")
ORDER_CELL(order_beside_forgotten_lock, BesideForgotten, FindsLockFree,
           "a lock beside other streams is found taken")
ORDER_CELL(order_barrier_forgotten_last, BarrierBesideForgotten, LastOneWins,
           "other streams undo a barrier's order")
ORDER_CELL(order_tail_sum, TailOfThreads, FillsAndSums, "the tail sums before all threads' launches are done")
ORDER_CELL(order_shared_stream_last, SharedStream, LastOneWins, "a stream of several threads keeps no order")
ORDER_CELL(order_shared_stream_append, SharedStream, Appends,
           "appends into a stream of threads change places")
ORDER_CELL(order_shared_stream_add, SharedStreamOfAll, AddsToFixedWord, "a stream of threads loses updates")
ORDER_CELL(order_shared_stream_lock, SharedStreamOfAll, FindsLockFree, "a lock is found taken in a stream")
ORDER_CELL(order_own_streams_multiply, OwnStreams, MultipliesAtPlace, "a thread's stream keeps no order")

}  // namespace klap::differential::blocks
