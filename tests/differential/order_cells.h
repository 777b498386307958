// The order of a block's launches into its NULL stream, as a matrix: relations between launches against the
// accesses in which their children conflict. A cell is one case.
//
// CUDA runs these launches one after another, each with all that it launches, in an order that respects how
// the launching threads synchronised. An access is compiled twice: the child runs it on the device, and the
// reference runs it in the order of the launches. Where no synchronisation orders them, every order must give
// the same memories, which the reference checks with two others.
#pragma once

#include "case.h"

#ifndef __CUDACC__
#include <numeric>
#include <stdexcept>
#include <string>
#endif

namespace klap::differential {

// ---- operations of an access, by a child and by the reference ----

KLAP_SHARED inline int exchange_plainly(int* cell, int value) {
  const int before = *cell;
  *cell = value;
  return before;
}

#ifdef __CUDA_ARCH__
__device__ inline int add(int* cell, int value) { return atomicAdd(cell, value); }
__device__ inline int maximum(int* cell, int value) { return atomicMax(cell, value); }
__device__ inline int minimum(int* cell, int value) { return atomicMin(cell, value); }
__device__ inline int bits_or(int* cell, int value) { return atomicOr(cell, value); }
__device__ inline int exchange(int* cell, int value) { return atomicExch(cell, value); }
__device__ inline int compare_and_swap(int* cell, int compared, int value) {
  return atomicCAS(cell, compared, value);
}
__device__ inline float add_float(int* cell, float value) {
  return atomicAdd(reinterpret_cast<float*>(cell), value);
}
#else
KLAP_SHARED inline int exchange(int* cell, int value) { return exchange_plainly(cell, value); }
KLAP_SHARED inline int add(int* cell, int value) { return exchange(cell, *cell + value); }
KLAP_SHARED inline int maximum(int* cell, int value) { return exchange(cell, *cell < value ? value : *cell); }
KLAP_SHARED inline int minimum(int* cell, int value) { return exchange(cell, *cell < value ? *cell : value); }
KLAP_SHARED inline int bits_or(int* cell, int value) { return exchange(cell, *cell | value); }
KLAP_SHARED inline int compare_and_swap(int* cell, int compared, int value) {
  return exchange(cell, *cell == compared ? value : *cell);
}
KLAP_SHARED inline float add_float(int* cell, float value) {
  float before = 0;
  memcpy(&before, cell, sizeof(before));
  const float after = before + value;
  memcpy(cell, &after, sizeof(after));
  return before;
}
#endif
// Keeps the compiler from passing on the stored value in registers.
KLAP_SHARED inline void reload() { asm volatile("" ::: "memory"); }

// ---- accesses ----

// An access has three members. place() finds in the parent the value that the child is given beside its
// number; `index` is the relation's number of the launching thread or its turn. run() is the work of each of
// the child's kActive threads, in four cells of its own if there are several.
struct Access {
  static constexpr int kActive = 1;
  KLAP_SHARED static int place(int*, const int*, int index) { return index; }
};
struct AccessToFixedWord {
  static constexpr int kActive = 1;
  KLAP_SHARED static int place(int*, const int*, int) { return 0; }
};
// The access is run by 60 threads in two blocks of a child, each with a word of its own.
template <class Narrow>
struct Wide : Narrow {
  static constexpr int kActive = 60;
};

// These accesses have the same result in any order, as long as no two overlap.
struct AddsToFixedWord : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[0] += launch + 1; }
};
// Four words of scratch: a child reads back its own values, and clears them.
struct TearsScratch : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    for (int i = 0; i < 4; ++i) cells[i] = launch * 10 + i;
    reload();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += exchange_plainly(cells + i, 0);
    cells[8 + launch] = sum;
  }
};
// Two entries of a list, which stand side by side; the list itself is cleared again.
struct AppendsTwo : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    const int first = add(cells, 1), second = add(cells, 1);
    cells[8 + launch] = second - first;
  }
};
// Takes a word and puts back another: a child that comes between finds nothing.
struct TakesAndPutsBack : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    const int taken = exchange(cells, 0);
    reload();
    exchange(cells, taken + launch + 1);
  }
};
// A lock that no child can find taken.
struct FindsLockFree : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    const int found = compare_and_swap(cells, 0, 1);
    reload();
    cells[8 + launch] = 1 - found;
    exchange(cells, 0);
  }
};

// These accesses have another result in another order.
struct Multiplies : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[0] = cells[0] * 3 + launch + 1; }
};
struct LastOneWins : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[0] = launch + 1; }
};
struct ReadsWhatWasWritten : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[launch + 1] = cells[launch] + launch + 1; }
};
struct WritesWhatWasRead : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[launch] = cells[launch + 1] + launch + 1; }
};
struct Appends : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[8 + add(cells, 1)] = launch + 1; }
};
struct Exchanges : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[8 + launch] = exchange(cells, launch + 1);
  }
};
struct Swaps : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[8 + launch] = compare_and_swap(cells, launch, launch + 1);
  }
};
// The sum is rounded after each addition.
struct AddsFloats : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    add_float(cells, launch % 3 == 1   ? 1.0e8F
                     : launch % 3 == 2 ? -1.0e8F
                                       : 3.0F + static_cast<float>(launch));
  }
};

// These accesses are to the word that the parent names.
struct AddsAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] += launch + 1; }
};
struct MultipliesAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] = cells[place] * 3 + launch + 1;
  }
};
struct LastAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[place] = launch + 1; }
};
// The last of 65 launches sums the words of the others.
struct FillsAndSums : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    if (place < 64) {
      cells[place] = launch * 3 + 1;
      return;
    }
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += cells[i];
    cells[place] = sum;
  }
};

constexpr int kCells = 512;  // of each block
constexpr int kGiven = 512;  // cells that nobody writes; the first is 0

// The shape of a parent, of which each block has cells of its own.
template <int X, int Y = 1, int Z = 1, int Blocks = 1>
struct Parent {
  static constexpr int kX = X, kY = Y, kZ = Z, kBlocks = Blocks;
  static constexpr int kGrid = Blocks;
  // The index that a launch's place is made of, by the launch's number.
  KLAP_SHARED static int index_of(int launch) { return launch; }
  // How many of a child's threads are active, by the launch's number.
  KLAP_SHARED static int active_of(int, int active) { return active; }
  // The parent's own stores before its launches, and the effect of launches that have no order.
  KLAP_SHARED static void run_before(int*) {}
  KLAP_SHARED static void run_beside(int*) {}
#ifndef __CUDACC__
  static void set(Builder&) {}  // settings of preloaded runs, which are those of the whole file
#endif
};
// All blocks of this parent have the same cells; launches are numbered throughout the grid.
template <int X, int Grid>
struct ParentOfOneGrid : Parent<X> {
  static constexpr int kGrid = Grid;
};

// ---- cells ----

#ifdef __CUDACC__

template <class Access>
__device__ __forceinline__ void run_in_child(int* cells, int place, int launch) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < Access::kActive) Access::run(cells + 4 * i, place, launch);
}
template <class Access>
__global__ void child(int* cells, int place, int launch) {
  run_in_child<Access>(cells, place, launch);
}
// For sites whose kernels differ.
template <class Access>
__global__ void other_child(int* cells, int place, int launch) {
  run_in_child<Access>(cells, place, launch);
}
template <class Access>
constexpr int kChildBlocks = (Access::kActive + 31) / 32;

// One launch: `index` is the number that the place is made of, `launch` its number in the block.
template <class Access>
__device__ __forceinline__ void launch(int* cells, const int* given, int index, int launch) {
  child<Access><<<kChildBlocks<Access>, 32>>>(cells, Access::place(cells, given, index), launch);
}
template <class Access>
__device__ __forceinline__ void launch_other(int* cells, const int* given, int index, int launch) {
  other_child<Access><<<kChildBlocks<Access>, 32>>>(cells, Access::place(cells, given, index), launch);
}

template <class Relation>
__device__ __forceinline__ int* cells_of_block(int* cells) {
  return Relation::kBlocks == 1 ? cells : cells + kCells * blockIdx.x;
}

#define ORDER_CELL(name, relation, access, about)                                        \
  extern "C" __global__ void name##_parent(int* cells, const int* given) {               \
    relation::run<access>(::klap::differential::cells_of_block<relation>(cells), given); \
  }

#else

inline int given_at(int i) { return i * i % 5; }

// The launches' numbers in another order that CUDA allows: `Relation::kInOrder` in a row stay together.
template <class Relation>
std::vector<int> launches_from(int first) {
  std::vector<int> numbers;
  constexpr int kRuns = Relation::kLaunches / Relation::kInOrder;
  for (int run = 0; run < kRuns; ++run) {
    for (int i = 0; i < Relation::kInOrder; ++i)
      numbers.push_back((first + kRuns - run) % kRuns * Relation::kInOrder + i);
  }
  return numbers;
}

template <class Relation, class Access>
std::vector<int> cells_after(const std::vector<int>& launches, const std::vector<int>& given) {
  std::vector<int> all;
  for (int block = 0; block < Relation::kBlocks; ++block) {
    std::vector<int> cells(kCells, 0);
    Relation::run_before(cells.data());
    for (const int launch : launches) {
      const int place = Access::place(cells.data(), given.data(), Relation::index_of(launch));
      for (int i = 0; i < Relation::active_of(launch, Access::kActive); ++i)
        Access::run(cells.data() + 4 * i, place, launch);
    }
    Relation::run_beside(cells.data());
    all.insert(all.end(), cells.begin(), cells.end());
  }
  return all;
}

template <class Relation, class Access>
void fill_cell(Builder& c, const std::string& parent) {
  std::vector<int> given, launches(Relation::kLaunches);
  for (int i = 0; i < kGiven; ++i) given.push_back(given_at(i));
  std::iota(launches.begin(), launches.end(), 0);
  const std::vector<int> after = cells_after<Relation, Access>(launches, given);
  for (const int first : {0, 5}) {
    if (cells_after<Relation, Access>(launches_from<Relation>(first), given) != after)
      throw std::logic_error(parent + ": the result depends on an order that CUDA does not promise");
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), 0), after);
  c.launch(parent, {Relation::kGrid, 1, 1}, {Relation::kX, Relation::kY, Relation::kZ}, c.address(cells),
           c.address(c.input("given", given)));
  Relation::set(c);
}

#define ORDER_CELL(name, relation, access, about)                          \
  KLAP_CASE(name, about) {                                                 \
    ::klap::differential::fill_cell<relation, access>(c, #name "_parent"); \
    c.cell(#relation, #access);                                            \
  }

#endif

// A cell in which it is shown that no two children conflict: the parent is rewritten. And one in which the
// order is kept: lanes of a warp cannot do so.
#ifdef __CUDACC__
#define ORDER_PROVEN(name, relation, access, about) ORDER_CELL(name, relation, access, about)
#define ORDER_KEPT(name, relation, access, about) ORDER_CELL(name, relation, access, about)
#else
#define ORDER_REWRITTEN(name, relation, access, about, warp)               \
  KLAP_CASE(name, about) {                                                 \
    ::klap::differential::fill_cell<relation, access>(c, #name "_parent"); \
    c.cell(#relation, #access);                                            \
    c.rewritten(#name "_parent");                                          \
    c.by_warp(warp);                                                       \
  }
#define ORDER_PROVEN(name, relation, access, about) ORDER_REWRITTEN(name, relation, access, about, "")
#define ORDER_KEPT(name, relation, access, about) ORDER_REWRITTEN(name, relation, access, about, "order-kept")
#endif

}  // namespace klap::differential
