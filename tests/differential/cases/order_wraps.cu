// Children of a block whose rows look apart, and are not where a register wraps around. Each updates plainly,
// so updates are lost if two of them overlap.
#include "case.h"

#ifdef __CUDACC__

// Of an even thread, v is its negative number: a comparison does not bound it from below.
__global__ void wraps_in_guard_child(int* row) {
  const int v = static_cast<int>(threadIdx.x * 0x7fffffffU);
  if (v < 40) row[v] += 1 + row[v] % 2;
}
extern "C" __global__ void wraps_in_guard_parent(int* cells) {
  wraps_in_guard_child<<<1, 64>>>(cells + 128 + threadIdx.x * 40);
}

// The numbers of two threads are 2^32 - 1 apart. So many steps, of a bit more than 2^34 bytes, are four
// bytes.
__global__ void wraps_in_step_child(unsigned long long at) {
  int* const cell = reinterpret_cast<int*>(at) + threadIdx.x;
  *cell += 1 + *cell % 2;
}
extern "C" __global__ void wraps_in_step_parent(int* cells, unsigned first) {
  const unsigned long long number = first + threadIdx.x;
  wraps_in_step_child<<<1, 32>>>(reinterpret_cast<unsigned long long>(cells + 8) - number * 0x400000004ULL);
}

// The same of a thread's number less one, and of its negative number.
extern "C" __global__ void wraps_below_zero_parent(int* cells, int* others) {
  const unsigned long long number = threadIdx.x - 1U, negative = 0U - threadIdx.x;
  wraps_in_step_child<<<1, 32>>>(reinterpret_cast<unsigned long long>(cells + 8) - number * 0x400000004ULL);
  wraps_in_step_child<<<1, 32>>>(reinterpret_cast<unsigned long long>(others + 8) -
                                 negative * 0x400000004ULL);
}

#else

namespace {

// A child's update of one cell.
void update(int& cell) { cell += 1 + cell % 2; }

// The cells after children so many steps below the eighth.
std::vector<int> after_steps(const std::vector<unsigned>& steps) {
  std::vector<int> after(64);
  for (const unsigned long long number : steps) {
    const auto bytes = static_cast<long long>(0 - number * 0x400000004ULL);
    for (int i = 0; i < 32; ++i) update(after[static_cast<size_t>(8 + bytes / 4 + i)]);
  }
  return after;
}

}  // namespace

KLAP_CASE(order_wraps_in_guard, "rows overlap that a comparison seems to keep apart") {
  constexpr int kCells = 1'600;
  std::vector<int> after(kCells);
  for (int t = 0; t < 32; ++t) {
    for (unsigned i = 0; i < 64; ++i) {
      const int v = static_cast<int>(i * 0x7fffffffU);
      if (v < 40) update(after[static_cast<size_t>(128 + t * 40 + v)]);
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(kCells), after);
  c.launch("wraps_in_guard_parent", {1, 1, 1}, {32, 1, 1}, c.address(cells));
  c.rewritten("wraps_in_guard_parent");
  c.by_warp("order-kept");
}

KLAP_CASE(order_wraps_in_step, "rows overlap whose distance comes around") {
  constexpr unsigned kFirst = 0xffffffffU;
  const auto cells = c.buffer("cells", std::vector<int>(64), after_steps({kFirst, 0}));
  c.launch("wraps_in_step_parent", {1, 1, 1}, {2, 1, 1}, c.address(cells), kFirst);
  c.rewritten("wraps_in_step_parent");
  c.by_warp("order-kept");
}

KLAP_CASE(order_wraps_below_zero, "rows overlap whose distance comes around from below zero") {
  const auto cells = c.buffer("cells", std::vector<int>(64), after_steps({0xffffffffU, 0}));
  const auto others = c.buffer("others", std::vector<int>(64), after_steps({0, 0xffffffffU}));
  c.launch("wraps_below_zero_parent", {1, 1, 1}, {2, 1, 1}, c.address(cells), c.address(others));
  c.rewritten("wraps_below_zero_parent");
  c.by_warp("order-kept");
}

#endif
