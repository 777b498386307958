// Launches of a block whose children cannot conflict, whatever their order: they are rewritten, and overlap.
#include "order_cells.h"

namespace klap::differential::proven {

struct Threads : Parent<96> {
  static constexpr int kLaunches = 96, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct SomeThreads : Parent<96> {
  static constexpr int kLaunches = 24, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return 4 * launch + 1; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread % 4 == 1) launch<Access>(cells, given, thread, thread / 4);
  }
#endif
};
struct Blocks : ParentOfOneGrid<32, 4> {
  static constexpr int kLaunches = 128, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    launch<Access>(cells, given, thread, thread);
  }
#endif
};
struct Rows : Parent<16, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    launch<Access>(cells, given, thread, thread);
  }
#endif
};
struct Layers : Parent<4, 4, 6> {
  static constexpr int kLaunches = 96, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
    launch<Access>(cells, given, thread, thread);
  }
#endif
};

// ---- each child has its words ----

struct OwnWord : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
// Sums what nobody writes.
struct OwnWordOfInput : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return index + 2; }
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] = cells[0] + cells[1] * launch + launch + 3;
  }
};
struct OwnRow : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const row = cells + 4 * place;
    for (int i = 0; i < 4; ++i) row[i] += launch + i;
  }
};
struct OwnPair : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return 2 * index; }
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] += launch + 1;
    cells[place + 1] = cells[place] * 2;
  }
};
struct OwnFromBehind : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return 300 - index; }
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
struct OwnByte : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    auto* const bytes = reinterpret_cast<unsigned char*>(cells);
    bytes[place] = static_cast<unsigned char>(bytes[place] + launch + 1);
  }
};
struct OwnExchange : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return 2 * index; }
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place + 1] = exchange(cells + place, launch + 1) + 1;
  }
};

// ---- all have the same words ----

struct AddsUnused : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { add(cells, launch + 1); }
};
struct RaisesUnused : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { maximum(cells, launch * 7 % 90); }
};
struct SetsBitsUnused : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { bits_or(cells, 1 << launch % 31); }
};
struct AddsInBins : Access {
  KLAP_SHARED static int place(int*, const int*, int index) { return index % 5; }
  KLAP_SHARED static void run(int* cells, int place, int launch) { add(cells + place, launch + 1); }
};
struct StoresConstant : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int) { cells[0] = 7; }
};
struct ReadsOnly : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place + 1] = cells[0] + launch; }
};
// The slot's number is that of a counter in the parent. Who else may write the counter is not looked into, so
// the order is kept.
struct FreshSlot : Access {
  KLAP_SHARED static int place(int* cells, const int*, int) { return add(cells + 400, 1); }
  KLAP_SHARED static void run(int* cells, int place, int) { cells[place] += 5; }
};
struct FreshRow : Access {
  KLAP_SHARED static int place(int* cells, const int*, int) { return add(cells + 400, 4); }
  KLAP_SHARED static void run(int* cells, int place, int) {
    for (int i = 0; i < 4; ++i) cells[place + i] += 5 + i;
  }
};

ORDER_PROVEN(order_proven_own_word, Threads, OwnWord, "updates of a thread's own word are left or lost")
ORDER_PROVEN(order_proven_some_threads, SomeThreads, OwnWord,
             "updates by some of the threads are left or lost")
ORDER_PROVEN(order_proven_blocks, Blocks, OwnWord, "updates by threads of several blocks are left or lost")
ORDER_PROVEN(order_proven_rows, Rows, OwnWord, "updates by threads of two dimensions are left or lost")
ORDER_PROVEN(order_proven_layers, Layers, OwnWord, "updates by threads of three dimensions are left or lost")
ORDER_PROVEN(order_proven_own_row, Threads, OwnRow, "updates of a thread's own row are left or lost")
ORDER_PROVEN(order_proven_own_pair, Threads, OwnPair, "updates of a thread's own pair are left or lost")
ORDER_PROVEN(order_proven_from_behind, Threads, OwnFromBehind, "words that are counted from behind are left")
ORDER_PROVEN(order_proven_own_byte, Threads, OwnByte, "updates of a thread's own byte are left or lost")
ORDER_PROVEN(order_proven_own_exchange, Threads, OwnExchange,
             "exchanges of a thread's own word are left or lost")
ORDER_PROVEN(order_proven_input, Threads, OwnWordOfInput, "children that read the same input are left")
ORDER_PROVEN(order_proven_wide, Threads, Wide<AddsUnused>,
             "wide children that add atomically are left or lost")
ORDER_PROVEN(order_proven_adds, Threads, AddsUnused, "additions whose results are unused are left or lost")
ORDER_PROVEN(order_proven_raises, Threads, RaisesUnused, "maxima whose results are unused are left or lost")
ORDER_PROVEN(order_proven_bits, Threads, SetsBitsUnused, "bits that are set atomically are left or lost")
ORDER_PROVEN(order_proven_bins, Threads, AddsInBins, "additions in bins are left or lost")
ORDER_PROVEN(order_proven_adds_of_blocks, Blocks, AddsInBins, "additions of several blocks are left or lost")
ORDER_PROVEN(order_proven_constant, Threads, StoresConstant, "stores of a constant are left or lost")
ORDER_PROVEN(order_proven_reads, Threads, ReadsOnly, "children that read the same word are left")
ORDER_KEPT(order_proven_fresh_slot, Threads, FreshSlot, "updates of a fresh slot are left or lost")
ORDER_KEPT(order_proven_fresh_row, Threads, FreshRow, "updates of a fresh row are left or lost")

}  // namespace klap::differential::proven
