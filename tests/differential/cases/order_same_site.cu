// Threads of a block launch at one site and do not synchronise. Their children run one after another in an
// order that is free, so whatever each of them does to the same words it does undisturbed.
#include "order_cells.h"

namespace klap::differential::same_site {

// Every lane of one warp.
struct Lanes : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Every thread of several warps.
struct Threads : Parent<96> {
  static constexpr int kLaunches = 96, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// One lane of each warp.
struct Warps : Parent<256> {
  static constexpr int kLaunches = 8, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x % 32 == 5) launch<Access>(cells, given, threadIdx.x / 32, threadIdx.x / 32);
  }
#endif
};

struct AtHalf : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index / 2; }
};
struct AtRemainder : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index % 5; }
};
struct AtMasked : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index & 3; }
};
// Without the lowest bit: the others stay where they are.
struct AtEven : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index & ~1; }
};
struct AtMinimum : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index < 5 ? index : 5; }
};
struct AtMaximum : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index > 5 ? index : 5; }
};
struct AtShiftedDown : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index >> 1; }
};
// All but the lowest bits leave the word.
struct AtShiftedUp : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) {
    return static_cast<int>(static_cast<unsigned>(index) << 30 >> 28);
  }
};
struct AtNarrowed : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return static_cast<unsigned char>(index * 64); }
};
struct AtTimesZero : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int* given, int index) { return index * given[0]; }
};
struct AtSquare : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return (index - 4) * (index - 4) & 255; }
};
struct AtDifference : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index - index / 2; }
};
struct AtExclusiveOr : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index ^ (index >> 1) << 1; }
};
struct AtChoice : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int* given, int index) {
    return given[1] == 1 && index > 2 ? 300 : index;
  }
};
struct AtLoaded : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int* given, int index) { return given[index]; }
};
struct AtLoadedPlusIndex : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int* given, int index) { return index + given[index]; }
};
// Results of atomic operations that do not tell threads apart: the word stays as it is.
struct AtExchanged : AddsAtPlace {
  KLAP_SHARED static int place(int* cells, const int*, int) { return exchange(cells + 400, 0); }
};
struct AtAtomicMaximum : AddsAtPlace {
  KLAP_SHARED static int place(int* cells, const int*, int) { return maximum(cells + 400, 0); }
};
struct AtAtomicOr : AddsAtPlace {
  KLAP_SHARED static int place(int* cells, const int*, int) { return bits_or(cells + 400, 0); }
};
struct AtSwapped : AddsAtPlace {
  KLAP_SHARED static int place(int* cells, const int*, int) { return compare_and_swap(cells + 400, 7, 9); }
};
struct AtCounterThatStays : AddsAtPlace {
  KLAP_SHARED static int place(int* cells, const int* given, int) { return add(cells + 400, given[0]); }
};
// The counter counts, and what is made of it repeats.
struct AtHalfOfCounter : Access {
  KLAP_SHARED static int place(int* cells, const int*, int) { return add(cells + 400, 1) / 2; }
  KLAP_SHARED static void run(int* cells, int place, int) { cells[place] += 1; }
};

ORDER_CELL(order_lanes_add, Lanes, AddsToFixedWord, "children of a warp's lanes lose each other's updates")
ORDER_CELL(order_lanes_tear, Lanes, TearsScratch,
           "children of a warp's lanes read each other's scratch words")
ORDER_CELL(order_lanes_append, Lanes, AppendsTwo, "entries of two children of a warp are mixed")
ORDER_CELL(order_lanes_half, Lanes, AtHalf, "lanes / 2 is taken to differ between lanes")
ORDER_CELL(order_threads_add, Threads, AddsToFixedWord, "children of a block lose each other's updates")
ORDER_CELL(order_threads_tear, Threads, TearsScratch, "children of a block read each other's scratch words")
ORDER_CELL(order_threads_append, Threads, AppendsTwo, "entries of two children of a block are mixed")
ORDER_CELL(order_threads_take, Threads, TakesAndPutsBack, "a child finds the word that another one has taken")
ORDER_CELL(order_threads_lock, Threads, FindsLockFree, "a child finds the lock of another one")
ORDER_CELL(order_warps_add, Warps, AddsToFixedWord, "children of several warps lose each other's updates")
ORDER_CELL(order_warps_tear, Warps, TearsScratch, "children of several warps read each other's scratch words")
ORDER_CELL(order_warps_append, Warps, AppendsTwo, "entries of children of two warps are mixed")
ORDER_CELL(order_warps_take, Warps, TakesAndPutsBack, "a child of a warp finds what another warp's has taken")
ORDER_CELL(order_warps_lock, Warps, FindsLockFree, "a child of a warp finds the lock of another warp's")

ORDER_CELL(order_at_half, Threads, AtHalf, "t / 2 is taken to differ between threads")
ORDER_CELL(order_at_remainder, Threads, AtRemainder, "t % 5 is taken to differ between threads")
ORDER_CELL(order_at_masked, Threads, AtMasked, "t & 3 is taken to differ between threads")
ORDER_CELL(order_at_even, Threads, AtEven, "t & ~1 is taken to differ between threads")
ORDER_CELL(order_at_minimum, Threads, AtMinimum, "min(t, 5) is taken to differ between threads")
ORDER_CELL(order_at_maximum, Threads, AtMaximum, "max(t, 5) is taken to differ between threads")
ORDER_CELL(order_at_shifted_down, Threads, AtShiftedDown, "t >> 1 is taken to differ between threads")
ORDER_CELL(order_at_shifted_up, Threads, AtShiftedUp, "t << 30 is taken to differ between threads")
ORDER_CELL(order_at_narrowed, Threads, AtNarrowed, "a product's low byte is taken to differ between threads")
ORDER_CELL(order_at_times_zero, Threads, AtTimesZero,
           "t times a loaded zero is taken to differ between threads")
ORDER_CELL(order_at_square, Threads, AtSquare, "a square is taken to differ between threads")
ORDER_CELL(order_at_difference, Threads, AtDifference, "t - t / 2 is taken to differ between threads")
ORDER_CELL(order_at_exclusive_or, Threads, AtExclusiveOr,
           "t ^ (t >> 1 << 1) is taken to differ between threads")
ORDER_CELL(order_at_choice, Threads, AtChoice, "a choice between t and a constant is taken to differ")
ORDER_CELL(order_at_loaded, Threads, AtLoaded, "values loaded by index are taken to differ in one block")
ORDER_CELL(order_at_loaded_plus_index, Threads, AtLoadedPlusIndex, "t plus a loaded value is taken to differ")
ORDER_CELL(order_at_exchanged, Threads, AtExchanged, "results of exchanges are taken to differ")
ORDER_CELL(order_at_atomic_maximum, Threads, AtAtomicMaximum, "results of atomic maxima are taken to differ")
ORDER_CELL(order_at_atomic_or, Threads, AtAtomicOr, "results of an atomic or are taken to differ")
ORDER_CELL(order_at_swapped, Threads, AtSwapped, "results of compare-and-swap are taken to differ")
ORDER_CELL(order_at_counter_that_stays, Threads, AtCounterThatStays,
           "a counter that a zero is added to counts")
ORDER_CELL(order_at_half_of_counter, Threads, AtHalfOfCounter, "halves of a counter are taken to differ")

}  // namespace klap::differential::same_site
