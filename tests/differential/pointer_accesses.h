// The accesses of cases/order_pointers.cu: ways in which a child comes to the address of its word, accesses
// of several widths to the same bytes, and accesses of several kinds to the same word.
#pragma once

#include "order_cells.h"

namespace klap::differential::pointers {

// ---- accesses ----

// The address goes through functions that are not inlined.
__attribute__((noinline)) KLAP_SHARED inline void add_to(int* word, int value) { *word += value; }
__attribute__((noinline)) KLAP_SHARED inline void add_to_first(int* words, int value) {
  add_to(words, value + value);
}
__attribute__((noinline)) KLAP_SHARED inline int* word_of(int* words, int which) { return words + which / 2; }
struct ThroughFunction : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { add_to(cells, launch + 1); }
};
struct ThroughTwoFunctions : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { add_to_first(cells, launch + 1); }
};
struct ThroughResult : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) { *word_of(cells, place) += launch + 1; }
};
struct FunctionWritesLast : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    add_to(cells + 8 + launch, launch + 1);
    exchange_by_function(cells, launch + 1);
  }
  __attribute__((noinline)) KLAP_SHARED static void exchange_by_function(int* word, int value) {
    *word = value;
  }
};
// The address or the index goes through an array in local memory.
struct ThroughLocalArray : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* volatile words[4];
    words[0] = cells;
    words[1] = cells + 1;
    words[2] = cells;
    words[3] = cells + place;
    *words[launch & 3] += launch + 1;
  }
};
struct ThroughLocalIndex : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    volatile int places[3];
    places[0] = place;
    places[1] = place / 8;
    places[2] = place / 8;
    cells[places[launch % 3]] += launch + 1;
  }
};
// Arithmetic on the address, or on the index, makes the words of different launches meet.
struct AlignedDown : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const word = reinterpret_cast<int*>(reinterpret_cast<size_t>(cells + place) & ~size_t{15});
    *word += launch + 1;
  }
};
struct FromBehind : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] += launch + 1;
    cells[63 - place] += 2 * launch + 1;
  }
};
struct WithNeighbour : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[place] += launch + 1;
    cells[place + 1] += 2 * launch + 1;
  }
};
struct OneTooMany : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    for (int i = 0; i <= 4; ++i) cells[4 * place + i] += launch + 1;
  }
};
// The fourth part of a window is that of the next launch.
struct Windows : Access {
  static constexpr int kActive = 60;
  KLAP_SHARED static void run(int* cells, int place, int launch) { cells[4 * place] += launch + 1; }
};
struct Chosen : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[launch % 3 == 0 ? 0 : place] += launch + 1;
  }
};
struct FollowsLinks : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int next = cells[place + 64];
    cells[next] += launch + 1;
  }
};
// The words are a variable of the module, which the child has by name and by a pointer.
#ifdef __CUDACC__
__device__
#else
static
#endif
    int scratch[8];
struct TearsVariable : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const by_pointer = scratch + place;
    for (int i = 0; i < 4; ++i) scratch[i] = launch * 10 + i;
    reload();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += exchange_plainly(by_pointer + i, 0);
    cells[8 + launch] = sum;
  }
};

// ---- widths ----

// Four bytes, then the word that they are.
struct TearsBytes : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    auto* const bytes = reinterpret_cast<unsigned char*>(cells);
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<unsigned char>(launch + i);
    reload();
    cells[8 + launch] = exchange_plainly(cells, 0);
  }
};
// A word, then one of its bytes.
struct WordThenByte : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[0] = launch * 0x01010101;
    reload();
    reinterpret_cast<unsigned char*>(cells)[2] = 0;
    reload();
    cells[8 + launch] = exchange_plainly(cells, 0);
  }
};
// Sixteen bytes at once, then the words.
struct TearsVector : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<int4*>(cells) = make_int4(launch, launch + 1, launch + 2, launch + 3);
#else
    for (int i = 0; i < 4; ++i) cells[i] = launch + i;
#endif
    reload();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += exchange_plainly(cells + i, 0);
    cells[8 + launch] = sum;
  }
};
struct WritesWordOrByte : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      cells[0] = launch * 0x01010101 + 0x01010101;
    else
      reinterpret_cast<unsigned char*>(cells)[launch & 3] = 0x77;
  }
};
// A long word of which the next launch writes a half.
struct WritesLongOrWord : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0) {
      const long long value = 0x0000000700000005LL + launch;
#ifdef __CUDA_ARCH__
      *reinterpret_cast<long long*>(cells) = value;
#else
      memcpy(cells, &value, sizeof(value));
#endif
    } else {
      cells[1] = launch;
    }
  }
};

// ---- kinds ----

// Additions that are atomic in every second launch only.
struct AddsBothWays : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      add(cells, launch + 1);
    else
      cells[0] += launch + 1;
  }
};
// Atomic operations that do not commute, and whose results nobody uses.
struct MixesOperations : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      add(cells, 7);
    else
      maximum(cells, 3 + 2 * launch);
  }
};
struct ExchangesOnly : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { exchange(cells, launch + 1); }
};
struct SetsBitsOrLowers : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      bits_or(cells, 255);
    else
      minimum(cells, launch);
  }
};
struct StoresOrAdds : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      cells[0] = launch + 1;
    else
      add(cells, 100);
  }
};
struct AddsOrReads : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    if (launch % 2 == 0)
      add(cells, launch + 1);
    else
      cells[8 + launch] = cells[0];
  }
};
// All launches but one store the same value.
struct StoresSameButOnce : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) { cells[0] = launch == 1 ? 6 : 5; }
};
// Whoever comes first does something, once.
struct FirstOneCounts : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int) {
    if (cells[0] == 0) {
      cells[0] = 1;
      add(cells + 1, 1);
    }
  }
};
// All launches store the same value, but read before whether it is there already.
struct ReadsMark : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[8 + launch] = cells[0];
    cells[0] = 1;
  }
};
// Reads that promise that nobody writes meanwhile.
struct ReadsByReadOnlyLoad : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) {
#ifdef __CUDA_ARCH__
    cells[launch + 1] = __ldg(cells + launch) + launch + 1;
#else
    cells[launch + 1] = cells[launch] + launch + 1;
#endif
  }
};

}  // namespace klap::differential::pointers
