// Kernels that launch other kernels, which launch in turn: three levels of different kernels with blocks,
// arguments and shared memory of their own; two that launch each other; several sites in one kernel. One
// consumer runs them all, so a child must get its own kernel, its own arguments and its own block.
#include "case.h"

#ifdef __CUDACC__

// ---- three levels ----

struct Triple {
  int a, b, c;
};
// Reads what its launcher wrote just before, by a pointer that promises nobody writes there meanwhile.
__global__ void leaf(const int* __restrict__ from, int* to, Triple t, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[0] * t.a + t.b * i + t.c;
}
__global__ void branch(int* notes, int* to, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  notes[i] = 5 * i + count;
  leaf<<<3, 32>>>(notes + i, to + 70 * i, Triple{2, 3, i}, 70);
}
extern "C" __global__ void trunk(int* notes, int* to) {
  const int t = static_cast<int>(threadIdx.x);
  branch<<<2, 8>>>(notes + 12 * t, to + 840 * t, 12 - t % 3);
}

// ---- blocks of different sizes ----

__global__ void wide(int* cells, int x) {
  const int i = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  cells[i] = x * 1000 + static_cast<int>(blockDim.x * 100 + blockDim.y * 10 + blockDim.z) + i;
}
__global__ void narrow(int* cells, int x) {
  cells[threadIdx.x] = x + static_cast<int>(threadIdx.x);
  if (threadIdx.x == 2) wide<<<1, dim3(4, 6, 4)>>>(cells + 8, x + 1);
}
extern "C" __global__ void middling(int* cells, int x) {
  cells[threadIdx.x] = -x;
  if (threadIdx.x % 8 == 0) narrow<<<1, 5>>>(cells + 64 + 128 * (threadIdx.x / 8), x + threadIdx.x);
}
extern "C" __global__ void sizes(int* cells) {
  middling<<<1, 48>>>(cells + 1024 * threadIdx.x, static_cast<int>(threadIdx.x) + 1);
}

// ---- two kernels that launch each other ----

__global__ void pong(int* cells, long long weight, int n);
extern "C" __global__ void ping(int* cells, int n) {
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) atomicAdd(cells + n, 1);
  if (t < 2 && n > t) pong<<<1, 64>>>(cells, 3ll << t, n - 1 - t);
}
__global__ void pong(int* cells, long long weight, int n) {
  if (threadIdx.x == 63) atomicAdd(cells + n, static_cast<int>(weight) * 100);
  if (threadIdx.x == 40 && n > 0) ping<<<1, 16>>>(cells, n - 1);
}

// ---- several sites ----

// A walk that turns left or right: no thread launches twice.
extern "C" __global__ void walk(int* cells, unsigned place, int steps) {
  if (threadIdx.x == 0) atomicAdd(cells + steps, static_cast<int>(place % 7));
  if (threadIdx.x != 3 || steps == 0) return;
  if (place % 3 == 0) {
    walk<<<1, 32>>>(cells, place * 5 + 1, steps - 1);
  } else {
    walk<<<2, 32>>>(cells, place * 3 + 2, steps - 1);
  }
}
extern "C" __global__ void walks(int* cells) { walk<<<1, 32>>>(cells, threadIdx.x, 4); }

// One thread sorts a range and launches one kernel for either half of it.
extern "C" __global__ void quicksort(int* cells, int begin, int end) {
  if (threadIdx.x != 0) return;
  const int pivot = cells[(begin + end) / 2];
  int left = begin, right = end - 1;
  while (left <= right) {
    while (cells[left] < pivot) ++left;
    while (cells[right] > pivot) --right;
    if (left > right) break;
    const int swapped = cells[left];
    cells[left++] = cells[right];
    cells[right--] = swapped;
  }
  if (begin < right) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(cells, begin, right + 1);
  if (left < end - 1) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(cells, left, end);
}

// A child that launches two kernels, one of them for the other's sake as well.
__global__ void add_one(int* cell) { atomicAdd(cell, 1); }
__global__ void add_many(int* cells, int n, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  atomicAdd(cells + i, value);
  if (i % 16 == 5) add_one<<<1, 4, 0, cudaStreamFireAndForget>>>(cells + i);
}
__global__ void both(int* cells, int n) {
  if (threadIdx.x % 4 != 0) return;
  add_one<<<2, 4, 0, cudaStreamFireAndForget>>>(cells + threadIdx.x);
  add_many<<<(n + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(cells + 64, n, 100);
}
extern "C" __global__ void either(int* cells, int n) {
  if (threadIdx.x % 2 == 0) {
    both<<<1, 16>>>(cells, n);
  } else {
    add_many<<<(n + 31) / 32, 32>>>(cells + 64, n, 10000);
  }
}

// Two launches of one thread into one stream: a list of all in the order in which they run.
__global__ void list(int* cells, int level) {
  cells[1 + atomicAdd(cells, 1)] = level;
  if (level > 0) {
    list<<<1, 1>>>(cells, level - 1);
    list<<<1, 1>>>(cells, -level);
  }
}
extern "C" __global__ void lists(int* cells) { list<<<1, 1>>>(cells + 10 * threadIdx.x, 4); }

// No thread makes both launches, and a barrier in each branch puts all that the first leads to before the
// second.
extern "C" __global__ void branches_that_meet(int* cells, int level, int path) {
  if (level == 0) {
    if (threadIdx.x == 0) cells[1 + atomicAdd(cells, 1)] = path;
    return;
  }
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) branches_that_meet<<<1, 64>>>(cells, level - 1, 2 * path);
    __syncthreads();
  } else {
    __syncthreads();
    if (threadIdx.x == 32) branches_that_meet<<<1, 64>>>(cells, level - 1, 2 * path + 1);
  }
}

// Two kernels that update the same cells without atomics, which the NULL stream keeps apart.
__global__ void add_plainly(int* cell, int* count) {
  if (threadIdx.x != 0) return;
  *cell += 3;
  add_one<<<1, 4, 0, cudaStreamFireAndForget>>>(count);
}
__global__ void take_plainly(int* cell) {
  if (threadIdx.x == 0) *cell -= 1;
}
extern "C" __global__ void give_and_take(int* cells, int* counts) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 16) {
    add_plainly<<<1, 32>>>(cells + t, counts + t);
  } else {
    take_plainly<<<1, 32>>>(cells + t - 16);
  }
}
// The same by one kernel alone: its cells are apart.
extern "C" __global__ void give(int* cells, int* counts) {
  add_plainly<<<1, 32>>>(cells + threadIdx.x, counts + threadIdx.x);
}

// ---- what the threads of a block do together ----

__global__ void mark(int* cells, int n) {
  if (static_cast<int>(threadIdx.x) < n) cells[threadIdx.x] += 1;
}
__global__ void reverse(const int* from, int* to, int depth) {
  __shared__ int tile[64];
  const int t = static_cast<int>(threadIdx.x), begin = static_cast<int>(blockIdx.x) * 64;
  tile[t] = from[begin + t];
  __syncthreads();
  to[begin + t] = tile[63 - t];
  __syncthreads();
  if (t == 9) mark<<<1, 32, 0, cudaStreamFireAndForget>>>(to + begin, 10);
  if (t == 40 && depth > 0 && blockIdx.x == 0)
    reverse<<<3, 64, 0, cudaStreamFireAndForget>>>(from + 192, to + 192, depth - 1);
}
extern "C" __global__ void reversals(const int* from, int* to) {
  reverse<<<3, 64, 0, cudaStreamFireAndForget>>>(from + 768 * threadIdx.x, to + 768 * threadIdx.x, 3);
}

// The same where a kernel of a larger block is in the family.
__global__ void mark_more(int* cells) { atomicAdd(cells + threadIdx.x, 1); }
__global__ void reverse_less(const int* from, int* to) {
  __shared__ int tile[64];
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = from[t];
  __syncthreads();
  to[t] = tile[63 - t];
  if (t == 9) mark_more<<<1, 128>>>(to + 64);
}
extern "C" __global__ void reversals_less(const int* from, int* to) {
  reverse_less<<<1, 64>>>(from + 64 * threadIdx.x, to + 192 * threadIdx.x);
}

// Dynamic shared memory of two kernels, of two sizes, beside memory of their own.
__global__ void sum_up(const int* from, int* to) {
  extern __shared__ int cells[];
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < 300; i += 64) cells[i] = from[i];
  __syncthreads();
  int sum = 0;
  for (int i = t; i < 300; i += 64) sum += cells[299 - i];
  atomicAdd(to, sum);
}
__global__ void spread_out(int* cells, int* to) {
  extern __shared__ long long twice_as_wide[];
  __shared__ int own[64];
  const int t = static_cast<int>(threadIdx.x);
  own[t] = t;
  twice_as_wide[t] = 5ll * t;
  __syncthreads();
  for (int i = t; i < 300; i += 64) cells[i] = static_cast<int>(twice_as_wide[63 - i % 64]) + own[i % 64];
  __syncthreads();
  if (t == 0) sum_up<<<2, 64, 1200>>>(cells, to);
}
extern "C" __global__ void sums(int* cells, int* to) {
  spread_out<<<1, 64, 512>>>(cells + 300 * threadIdx.x, to + threadIdx.x);
}

// ---- errors ----

// Launches with a grid of nothing, at either site; every thread sees its own errors and all of them.
__global__ void fail(int* errors, int step, int bits) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const int before = cudaPeekAtLastError();
  const int first = bits & 1, second = bits >> 1 & 1;
  int* const other = errors + 64 + (1 << (5 - step));
  if (step > 0) {
    fail<<<first, 32, 0, cudaStreamFireAndForget>>>(errors + 64, step - 1, bits >> 2);
    fail<<<second, 32, 0, cudaStreamFireAndForget>>>(other, step - 1, bits >> 2);
  }
  atomicAdd(errors, 1 + 100 * before + 10000 * cudaGetLastError());
}
extern "C" __global__ void failures(int* errors) {
  fail<<<1, 32>>>(errors + 512 * threadIdx.x, 5, threadIdx.x * 37);
}

#else

#include <algorithm>

namespace {

int& at(std::vector<int>& cells, int i) { return cells[static_cast<size_t>(i)]; }

void nests(klap::differential::Builder& c, const char* parent) {
  c.left_on_device(parent, "child-launches");
  c.by_warp("child-launches");
}

void ping(std::vector<int>& cells, int n);
void pong(std::vector<int>& cells, int weight, int n) {
  at(cells, n) += weight * 100;
  if (n > 0) ping(cells, n - 1);
}
void ping(std::vector<int>& cells, int n) {
  at(cells, n) += 1;
  for (int t = 0; t < 2; ++t) {
    if (n > t) pong(cells, 3 << t, n - 1 - t);
  }
}

void walk(std::vector<int>& cells, unsigned place, int steps, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    at(cells, steps) += static_cast<int>(place % 7);
    if (steps == 0) continue;
    place % 3 == 0 ? walk(cells, place * 5 + 1, steps - 1, 1) : walk(cells, place * 3 + 2, steps - 1, 2);
  }
}

void add_many(std::vector<int>& cells, int from, int n, int value) {
  for (int i = 0; i < n; ++i) at(cells, from + i) += value + (i % 16 == 5 ? 4 : 0);
}

void fail(std::vector<int>& errors, int at_cell, int step, int bits) {
  const bool fails = step > 0 && (bits & 3) != 3;
  at(errors, at_cell) += 1 + 10000 * (fails ? 9 : 0);
  if (step == 0) return;
  if ((bits & 1) != 0) fail(errors, at_cell + 64, step - 1, bits >> 2);
  if ((bits >> 1 & 1) != 0) fail(errors, at_cell + 64 + (1 << (5 - step)), step - 1, bits >> 2);
}

}  // namespace

static void add_three_levels(klap::differential::Builder& c) {
  constexpr int kThreads = 6;
  std::vector<int> notes(12 * kThreads, -1), to(840 * kThreads, -1);
  for (int t = 0; t < kThreads; ++t) {
    const int count = 12 - t % 3;
    for (int i = 0; i < count; ++i) {
      const int note = 5 * i + count;
      at(notes, 12 * t + i) = note;
      for (int k = 0; k < 70; ++k) at(to, 840 * t + 70 * i + k) = note * 2 + 3 * k + i;
    }
  }
  const auto n = c.buffer("notes", std::vector<int>(notes.size(), -1), notes);
  const auto o = c.buffer("to", std::vector<int>(to.size(), -1), to);
  c.launch("trunk", {1, 1, 1}, {kThreads, 1, 1}, c.address(n), c.address(o));
}

KLAP_CASE(nest_three_levels, "a child of the third level is lost, or gets another kernel's arguments") {
  c.contract(
      "Grids of any shape launch grids of any other shape, by the numbers of their own blocks and threads.",
      "three levels of different kernels");
  add_three_levels(c);
  nests(c, "trunk");
  c.children_never_meet();
}
KLAP_CASE(nest_three_levels_in_order, "trees overlap that are not shown to be apart") {
  add_three_levels(c);
  c.left("trunk", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(nest_blocks, "a child runs in a block of another kernel's size") {
  c.contract("A child has the grid and the blocks that its launch names, in up to three dimensions each.",
             "four kernels with blocks of their own");
  constexpr int kThreads = 3;
  std::vector<int> after(1024 * kThreads);
  for (int p = 0; p < kThreads; ++p) {
    for (int t = 0; t < 48; ++t) at(after, 1024 * p + t) = -(p + 1);
    for (int t = 0; t < 48; t += 8) {
      const int begin = 1024 * p + 64 + 128 * (t / 8), x = p + 1 + t;
      for (int i = 0; i < 5; ++i) at(after, begin + i) = x + i;
      for (int i = 0; i < 96; ++i) at(after, begin + 8 + i) = (x + 1) * 1000 + 464 + i;
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("sizes", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  nests(c, "sizes");
  nests(c, "middling");
  c.children_never_meet();
}

KLAP_CASE(nest_mutual, "of two kernels that launch each other one runs for the other") {
  c.contract("A launch may stand wherever a call may stand, and name any kernel.",
             "two kernels launch each other");
  std::vector<int> after(9);
  ping(after, 8);
  const auto cells = c.buffer("cells", std::vector<int>(9), after);
  c.launch("ping", {1, 1, 1}, {32, 1, 1}, c.address(cells), 8);
  nests(c, "ping");
}

KLAP_CASE(nest_exclusive_sites, "a launch of one site is taken for one of the other") {
  std::vector<int> after(5);
  for (unsigned t = 0; t < 40; ++t) walk(after, t, 4, 1);
  const auto cells = c.buffer("cells", std::vector<int>(5), after);
  c.launch("walks", {1, 1, 1}, {40, 1, 1}, c.address(cells));
  nests(c, "walks");
  nests(c, "walk");
}

KLAP_CASE(nest_quicksort, "a half of a range is not sorted, or before it was split off") {
  std::vector<int> before;
  unsigned random = 12345;
  for (int i = 0; i < 300; ++i) {
    random = random * 1664525 + 1013904223;
    before.push_back(static_cast<int>(random >> 20));
  }
  std::vector<int> after = before;
  std::ranges::sort(after);
  const auto cells = c.buffer("cells", before, after);
  c.launch("quicksort", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, static_cast<int>(before.size()));
  nests(c, "quicksort");
}

KLAP_CASE(nest_two_grandchildren, "a child that launches two kernels loses one of them") {
  constexpr int kThreads = 10, kCells = 50;
  std::vector<int> after(64 + kCells);
  for (int t = 0; t < kThreads; ++t) {
    if (t % 2 != 0) {
      add_many(after, 64, kCells, 10000);
      continue;
    }
    for (int i = 0; i < 16; i += 4) {
      at(after, i) += 8;
      add_many(after, 64, kCells, 100);
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("either", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kCells);
  nests(c, "either");
}

KLAP_CASE(nest_launches_twice, "a thread's second launch does not wait for all that the first one leads to") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "a list of all nodes in their order");
  std::vector<int> after;
  for (int t = 0; t < 6; ++t) after.insert(after.end(), {9, 4, 3, 2, 1, 0, -1, -2, -3, -4});
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("lists", {1, 1, 1}, {6, 1, 1}, c.address(cells));
  c.left("lists", "child-launches");
  c.executed();
}

KLAP_CASE(nest_branches_that_meet, "a launch does not wait for one that a barrier puts before it") {
  c.contract(
      "Launches of different threads into one stream have the order that the program's synchronisation "
      "gives.",
      "a barrier in branches, recursion");
  const auto cells = c.buffer("cells", std::vector<int>(9), std::vector<int>{8, 0, 1, 2, 3, 4, 5, 6, 7});
  c.launch("branches_that_meet", {1, 1, 1}, {64, 1, 1}, c.address(cells), 3, 0);
  c.left("branches_that_meet", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(nest_two_update, "an update of one kernel is lost to another kernel's") {
  c.contract(
      "Launches of all threads of a block into the NULL stream run one after another, with all that they "
      "launch.",
      "two kernels that update the same cells");
  const auto cells = c.buffer("cells", std::vector<int>(16, 10), std::vector<int>(16, 12));
  const auto counts = c.buffer("counts", std::vector<int>(16), std::vector<int>(16, 4));
  c.launch("give_and_take", {1, 1, 1}, {32, 1, 1}, c.address(cells), c.address(counts));
  c.left("give_and_take", "order-kept");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("some");
}

KLAP_CASE(nest_one_updates, "an update of a child that launches is lost") {
  const auto cells = c.buffer("cells", std::vector<int>(16, 10), std::vector<int>(16, 13));
  const auto counts = c.buffer("counts", std::vector<int>(16), std::vector<int>(16, 4));
  c.launch("give", {1, 1, 1}, {16, 1, 1}, c.address(cells), c.address(counts));
  nests(c, "give");
  c.children_never_meet();
}

KLAP_CASE(nest_barrier, "threads that a kernel's block does not have are waited for, or do not wait") {
  c.contract("Threads of a child meet at barriers, share memory of their block and talk within their warp.",
             "barriers in recursive grids");
  constexpr int kThreads = 2, kEach = 768;
  std::vector<int> from, to(kThreads * kEach, -1);
  for (int i = 0; i < kThreads * kEach; ++i) from.push_back(i * 7 % 1000);
  for (int i = 0; i < kThreads * kEach; ++i) {
    const int block = i / 64, in_block = i % 64;
    at(to, i) = at(from, block * 64 + 63 - in_block) + (in_block < 10 ? 1 : 0);
  }
  const auto source = c.buffer("from", from, from);
  const auto result = c.buffer("to", std::vector<int>(to.size(), -1), to);
  c.launch("reversals", {1, 1, 1}, {kThreads, 1, 1}, c.address(source), c.address(result));
  nests(c, "reversals");
}

KLAP_CASE(nest_barrier_in_less, "a barrier waits for threads that its kernel does not have") {
  constexpr int kThreads = 2;
  std::vector<int> from, to(192 * kThreads, 1);
  for (int i = 0; i < 64 * kThreads; ++i) from.push_back(i * 7 % 1000);
  for (int i = 0; i < 64 * kThreads; ++i)
    at(to, 192 * (i / 64) + i % 64) = at(from, i / 64 * 64 + 63 - i % 64);
  const auto source = c.buffer("from", from, from);
  const auto result = c.buffer("to", std::vector<int>(to.size()), to);
  c.launch("reversals_less", {1, 1, 1}, {kThreads, 1, 1}, c.address(source), c.address(result));
  c.left_on_device("reversals_less", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(nest_shared_memory, "kernels get each other's shared memory") {
  c.contract("Threads of a child meet at barriers, share memory of their block and talk within their warp.",
             "dynamic and static memory on two levels");
  constexpr int kThreads = 4;
  std::vector<int> cells, sums;
  for (int t = 0; t < kThreads; ++t) {
    int sum = 0;
    for (int i = 0; i < 300; ++i) {
      cells.push_back(5 * (63 - i % 64) + i % 64);
      sum += cells.back();
    }
    sums.push_back(2 * sum);
  }
  const auto of_cells = c.buffer("cells", std::vector<int>(cells.size()), cells);
  const auto of_sums = c.buffer("sums", std::vector<int>(sums.size()), sums);
  c.launch("sums", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_cells), c.address(of_sums));
  nests(c, "sums");
  c.children_never_meet();
}

KLAP_CASE(nest_errors,
          "a thread forgets the error of its first launch at its second one, or sees another's") {
  c.contract("Each thread has a last error of its own; reading it by cudaGetLastError() clears it.",
             "recursion in which every launch may fail");
  constexpr int kThreads = 24;
  std::vector<int> after(512 * kThreads);
  for (int t = 0; t < kThreads; ++t) fail(after, 512 * t, 5, t * 37);
  const auto errors = c.buffer("errors", std::vector<int>(after.size()), after);
  c.launch("failures", {1, 1, 1}, {kThreads, 1, 1}, c.address(errors));
  nests(c, "failures");
}

#endif
