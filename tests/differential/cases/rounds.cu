// Children that walk over their data in a grid-stride loop, launched with fewer threads than there are
// rounds: recorded with a thread for each round where it makes no difference which thread has which.
#include "case.h"

constexpr int kThreads = 96;  // of a parent's grid, in blocks of 32
constexpr int kCells = 700;   // of a child
constexpr int kRow = 1100;    // where its output is behind its input

// Below 0, none, fewer and as many as the child's threads, their multiples and neighbours.
KLAP_SHARED static constexpr int rounds_of(int t) {
  constexpr int kSizes[] = {0, 1, 63, 64, 65, -3, 128, 129, 300, 5, 64, 192, 2, 0, 500, 65};
  return kSizes[t % 16];
}

// How far behind its input a child's output begins where both are one array: two steps of its 64 threads, or
// right behind.
KLAP_SHARED static constexpr int distance_of(int t) {
  return t % 4 == 0 ? 64 : t % 4 == 1 ? 128 : rounds_of(t) < 0 ? 0 : rounds_of(t);
}

// More rounds than the prefix counts for one child.
constexpr int kBig = (1 << 17) + 37;

#ifdef __CUDACC__

__device__ int here() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ unsigned all() { return gridDim.x * blockDim.x; }

__global__ void mix(const int* x, int* y, int n) {
  for (int i = here(); i < n; i += all()) y[i] = 3 * x[i] + y[i];
}
// Known to end, and so written out four rounds at a time.
__global__ void mix_unrolled(const int* x, int* y, int n) {
  const int step = static_cast<int>(all());
  for (int i = here(); i < n; i += step) y[i] = 3 * x[i] + y[i];
}
extern "C" __global__ void rounds_apart_parent(const int* in, int* cells) {
  const int t = here();
  mix<<<2, 32>>>(in + t * kCells, cells + t * kCells, rounds_of(t));
}
extern "C" __global__ void rounds_in_place_parent(int* cells) {
  const int t = here();
  mix<<<2, 32>>>(cells + t * kCells, cells + t * kCells, rounds_of(t));
}
// Each thread reads in one round what it wrote in the one before, or in none.
extern "C" __global__ void rounds_chained_parent(int* cells, const int* distances) {
  const int t = here();
  mix<<<2, 32>>>(cells + t * kRow, cells + t * kRow + distances[t], rounds_of(t));
}
extern "C" __global__ void rounds_big_parent(const int* in, int* cells, const int* begins, const int* sizes) {
  const int begin = begins[threadIdx.x];
  mix<<<1, 32>>>(in + begin, cells + begin, sizes[threadIdx.x]);
}
extern "C" __global__ void rounds_unrolled_parent(const int* in, int* cells) {
  const int t = here();
  mix_unrolled<<<2, 32>>>(in + t * kCells, cells + t * kCells, rounds_of(t));
}
extern "C" __global__ void rounds_unrolled_chained_parent(int* cells, const int* distances) {
  const int t = here();
  mix_unrolled<<<2, 32>>>(cells + t * kRow, cells + t * kRow + distances[t], rounds_of(t));
}

// One block each, whose threads count themselves.
__global__ void mix_in_row(const int* x, int* y, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += blockDim.x) y[i] = 3 * x[i] + y[i];
}
__global__ void mix_in_row_unrolled(const int* x, int* y, int n) {
  const int step = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += step) y[i] = 3 * x[i] + y[i];
}
__global__ void mix_once(const int* x, int* y, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < n) y[i] = 3 * x[i] + y[i];
}
extern "C" __global__ void rounds_in_row_parent(const int* in, int* cells) {
  const int t = here();
  mix_in_row<<<1, 48>>>(in + t * kCells, cells + t * kCells, rounds_of(t));
}
extern "C" __global__ void rounds_in_row_unrolled_parent(const int* in, int* cells) {
  const int t = here();
  mix_in_row_unrolled<<<1, 32>>>(in + t * kCells, cells + t * kCells, rounds_of(t));
}
extern "C" __global__ void rounds_in_row_chained_parent(int* cells, const int* distances) {
  const int t = here();
  mix_in_row<<<1, 64>>>(cells + t * kRow, cells + t * kRow + distances[t], rounds_of(t));
}
// The same children in grids of several blocks, each of which does it all: all write the same.
__global__ void fill_in_row(int* y, int n, int value) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += blockDim.x) atomicMax(y + i, value);
}
extern "C" __global__ void rounds_in_rows_parent(int* cells) {
  const int t = here();
  fill_in_row<<<1, 32>>>(cells + t * kCells, rounds_of(t), 2000 + t);
  fill_in_row<<<3, 32>>>(cells + t * kCells, rounds_of(t) / 2, 3000 + t);
}
extern "C" __global__ void rounds_once_in_row_parent(const int* in, int* cells) {
  const int t = here();
  mix_once<<<1, 96>>>(in + t * kCells, cells + t * kCells, rounds_of(t));
}

// Reductions wherever they may be, beside loads of what nobody writes.
__global__ void sort_out(const int* __restrict__ x, int* bins, int n) {
  for (int i = here(); i < n; i += all()) atomicAdd(bins + x[i] % 8, x[i]);
}
extern "C" __global__ void rounds_bins_parent(const int* in, int* bins) {
  const int t = here();
  sort_out<<<2, 32>>>(in + t * kCells, bins, rounds_of(t));
}

// ... and beside loads that are compared with them.
__global__ void count_thirds(const int* x, int* count, int n) {
  for (int i = here(); i < n; i += all()) {
    if (x[i] % 3 == 0) atomicAdd(count, 1);
  }
}
extern "C" __global__ void rounds_counted_parent(const int* in, int* counts) {
  const int t = here();
  count_thirds<<<2, 32>>>(in + t * kCells, counts + t, rounds_of(t));
}
// The counter is one of the cells that are looked at: its own thread comes by it first, in round 0, and then
// counts in every later one.
extern "C" __global__ void rounds_counted_inside_parent(int* cells) {
  const int t = here();
  count_thirds<<<1, 1>>>(cells + t * kCells, cells + t * kCells + 5, rounds_of(t) % 40);
}

// Every second cell, unsigned; up to and with the last; in 64 bits; and blocks that are no whole warps.
__global__ void odd_cells(const int* x, int* y, unsigned n) {
  for (unsigned i = here(); i < n; i += all()) y[2 * i + 1] = x[2 * i] + x[2 * i + 1];
}
__global__ void up_to(int* y, int last, int value) {
  for (int i = here(); i <= last; i += all()) y[i] = value;
}
__global__ void long_index(int* y, size_t n, int value) {
  for (size_t i = here(); i < n; i += all()) y[i] += value;
}
extern "C" __global__ void rounds_odd_parent(const int* in, int* cells) {
  const int t = here();
  odd_cells<<<2, 40>>>(in + t * kCells, cells + t * kCells, rounds_of(t) < 0 ? 0 : rounds_of(t) / 2);
}
extern "C" __global__ void rounds_up_to_parent(int* cells) {
  const int t = here();
  up_to<<<3, 7>>>(cells + t * kCells, rounds_of(t), t);
}
extern "C" __global__ void rounds_long_parent(int* cells) {
  const int t = here();
  long_index<<<1, 32>>>(cells + t * kCells, rounds_of(t) < 0 ? 0 : rounds_of(t), t);
}

// As many threads as rounds, which nobody could give to other ones.
__global__ void follow(const int* next, int* cells, int n) {
  for (int i = here(); i < n; i += all()) {
    const int at = next[i];
    if (cells[at] < i) cells[at] = i;
  }
}
extern "C" __global__ void rounds_covered_parent(const int* next, int* cells) {
  const int t = here();
  const int n = rounds_of(t);
  if (n > 0) follow<<<(n + 31) / 32, 32>>>(next, cells + t * kCells, n);
}

// What must stay with its thread: a sum, where the thread began, how many threads there are.
__global__ void keep(const int* x, int* y, int n) {
  int sum = 0;
  for (int i = here(); i < n; i += all()) {
    sum += x[i];
    y[i] = sum;
  }
}
__global__ void began(int* y, int n) {
  const int begin = here();
  for (int i = begin; i < n; i += all()) y[i] = 1000 * begin + static_cast<int>(all());
}
extern "C" __global__ void rounds_kept_parent(const int* in, int* sums, int* begun) {
  const int t = here();
  keep<<<2, 32>>>(in + t * kCells, sums + t * kCells, rounds_of(t));
  began<<<2, 32>>>(begun + t * kCells, rounds_of(t));
}

#else

#include <algorithm>

namespace {

using klap::differential::Builder;

constexpr klap::differential::Dim3 kGrid = {kThreads / 32, 1, 1}, kBlock = {32, 1, 1};

std::vector<int> numbers(size_t count) {
  std::vector<int> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int>(i * 7919 % 1009);
  return out;
}
std::vector<int> all_numbers() { return numbers(static_cast<size_t>(kThreads) * kCells); }

// What the children of all threads make of cells: `round(cells, t, i)` with `cells` those of thread t.
template <class Round>
std::vector<int> after(std::vector<int> cells, int (*rounds)(int), Round round, size_t row = kCells) {
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds(t); ++i) round(cells.data() + static_cast<size_t>(t) * row, t, i);
  }
  return cells;
}

void split(Builder& c, const std::string& parent) {
  c.rewritten(parent);
  c.setting("KLAP_OPTIMISE", "split_iterations=all");
}

}  // namespace

namespace {

void mixed(Builder& c, const char* parent, int (*rounds)(int) = rounds_of) {
  const std::vector<int> in = all_numbers(), before(in.rbegin(), in.rend());
  const auto x = c.input("in", in);
  const auto cells = c.buffer("cells", before, after(before, rounds, [&](int* y, int t, int i) {
                                y[i] += 3 * in[static_cast<size_t>(t) * kCells + static_cast<size_t>(i)];
                              }));
  c.launch(parent, kGrid, kBlock, c.address(x), c.address(cells));
  split(c, parent);
}

void chained(Builder& c, const char* parent) {
  const std::vector<int> before(static_cast<size_t>(kThreads) * kRow, 1);
  const auto round = [](int* x, int t, int i) {
    int* const y = x + distance_of(t);
    y[i] = 3 * x[i] + y[i];
  };
  const auto cells = c.buffer("cells", before, after(before, rounds_of, round, kRow));
  std::vector<int> distances;
  for (int t = 0; t < kThreads; ++t) distances.push_back(distance_of(t));
  const auto given = c.input("distances", distances);
  c.launch(parent, kGrid, kBlock, c.address(cells), c.address(given));
  split(c, parent);
}

}  // namespace

KLAP_CASE(rounds_apart, "a round is lost, or runs twice") {
  mixed(c, "rounds_apart_parent");
  c.children_never_meet();
}
KLAP_CASE(rounds_unrolled, "one of four rounds written out is lost") {
  mixed(c, "rounds_unrolled_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_in_place, "a round in place is lost, or runs twice") {
  const std::vector<int> before = all_numbers();
  const auto cells =
      c.buffer("cells", before, after(before, rounds_of, [](int* y, int, int i) { y[i] *= 4; }));
  c.launch("rounds_in_place_parent", kGrid, kBlock, c.address(cells));
  split(c, "rounds_in_place_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_chained, "rounds that read what others write run out of order") {
  chained(c, "rounds_chained_parent");
  c.children_never_meet();
}
KLAP_CASE(rounds_unrolled_chained, "rounds written out run out of order") {
  chained(c, "rounds_unrolled_chained_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_in_row, "a round of one block is lost, or runs twice") {
  mixed(c, "rounds_in_row_parent");
  c.children_never_meet();
}
KLAP_CASE(rounds_in_row_unrolled, "one of four rounds of one block is lost") {
  mixed(c, "rounds_in_row_unrolled_parent");
  c.children_never_meet();
}
KLAP_CASE(rounds_in_row_chained, "rounds of one block run out of order") {
  chained(c, "rounds_in_row_chained_parent");
  c.children_never_meet();
}
KLAP_CASE(rounds_once_in_row, "a thread of one block is lost") {
  mixed(c, "rounds_once_in_row_parent", [](int t) { return std::min(rounds_of(t), 96); });
}
KLAP_CASE(rounds_in_rows, "blocks of one child are taken for one") {
  const std::vector<int> before = all_numbers();
  const auto cells = c.buffer("cells", before, after(before, rounds_of, [](int* y, int t, int i) {
                                y[i] = i < rounds_of(t) / 2 ? 3000 + t : 2000 + t;
                              }));
  c.launch("rounds_in_rows_parent", kGrid, kBlock, c.address(cells));
  split(c, "rounds_in_rows_parent");
}

KLAP_CASE(rounds_big, "a child of many rounds loses some") {
  const std::vector<int> in = numbers(kBig + 31 * 10);
  std::vector<int> out;
  for (const int value : in) out.push_back(3 * value + 2);
  std::vector<int> begins = {0}, sizes = {kBig};
  for (int t = 1; t < 32; ++t) {
    begins.push_back(kBig + 10 * (t - 1));
    sizes.push_back(10);
  }
  const auto x = c.input("in", in);
  const auto cells = c.buffer("cells", std::vector<int>(in.size(), 2), out);
  const auto first = c.input("begins", begins), rounds = c.input("sizes", sizes);
  c.launch("rounds_big_parent", {1, 1, 1}, kBlock, c.address(x), c.address(cells), c.address(first),
           c.address(rounds));
  split(c, "rounds_big_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_bins, "a reduction is lost, or made twice") {
  const std::vector<int> in = all_numbers();
  std::vector<int> bins(8);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds_of(t); ++i) {
      const int value = in[static_cast<size_t>(t) * kCells + static_cast<size_t>(i)];
      bins[static_cast<size_t>(value) % 8] += value;
    }
  }
  const auto x = c.input("in", in);
  const auto out = c.buffer("bins", std::vector<int>(8), bins);
  c.launch("rounds_bins_parent", kGrid, kBlock, c.address(x), c.address(out));
  split(c, "rounds_bins_parent");
}

KLAP_CASE(rounds_counted, "a count is lost, or made twice") {
  const std::vector<int> in = all_numbers();
  std::vector<int> counts(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds_of(t); ++i)
      counts[static_cast<size_t>(t)] += in[static_cast<size_t>(t) * kCells + static_cast<size_t>(i)] % 3 == 0;
  }
  const auto x = c.input("in", in);
  const auto out = c.buffer("counts", std::vector<int>(kThreads), counts);
  c.launch("rounds_counted_parent", kGrid, kBlock, c.address(x), c.address(out));
  split(c, "rounds_counted_parent");
}

KLAP_CASE(rounds_counted_inside, "a round looks at a count that is not complete") {
  const std::vector<int> before = all_numbers();
  const auto rounds = [](int t) { return rounds_of(t) % 40; };
  const auto cells = c.buffer("cells", before, after(before, rounds, [](int* x, int, int i) {
                                if (x[i] % 3 == 0) ++x[5];
                              }));
  c.launch("rounds_counted_inside_parent", kGrid, kBlock, c.address(cells));
  split(c, "rounds_counted_inside_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_of_two_cells, "a round writes another one's cell") {
  const std::vector<int> in = all_numbers(), before(in.rbegin(), in.rend());
  const auto rounds = [](int t) { return rounds_of(t) < 0 ? 0 : rounds_of(t) / 2; };
  const auto x = c.input("in", in);
  const auto cells = c.buffer("cells", before, after(before, rounds, [&](int* y, int t, int i) {
                                const size_t at =
                                    static_cast<size_t>(t) * kCells + 2 * static_cast<size_t>(i);
                                y[2 * i + 1] = in[at] + in[at + 1];
                              }));
  c.launch("rounds_odd_parent", kGrid, kBlock, c.address(x), c.address(cells));
  split(c, "rounds_odd_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_up_to_the_last, "the last round is lost") {
  const std::vector<int> before = all_numbers();
  const auto rounds = [](int t) { return rounds_of(t) + 1; };
  const auto cells = c.buffer("cells", before, after(before, rounds, [](int* y, int t, int i) { y[i] = t; }));
  c.launch("rounds_up_to_parent", kGrid, kBlock, c.address(cells));
  split(c, "rounds_up_to_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_of_long_index, "a bound of 64 bits is taken for another") {
  const std::vector<int> before = all_numbers();
  const auto cells =
      c.buffer("cells", before, after(before, rounds_of, [](int* y, int t, int i) { y[i] += t; }));
  c.launch("rounds_long_parent", kGrid, kBlock, c.address(cells));
  split(c, "rounds_long_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_covered, "a thread of a child with a round each runs in the place of another") {
  std::vector<int> next(kCells);
  for (int i = 0; i < kCells; ++i) next[static_cast<size_t>(i)] = (i * 11 + 3) % kCells;
  const std::vector<int> before = all_numbers();
  const auto in = c.input("next", next);
  const auto cells = c.buffer("cells", before, after(before, rounds_of, [&](int* x, int, int i) {
                                int& cell = x[next[static_cast<size_t>(i)]];
                                if (cell < i) cell = i;
                              }));
  c.launch("rounds_covered_parent", kGrid, kBlock, c.address(in), c.address(cells));
  split(c, "rounds_covered_parent");
  c.children_never_meet();
}

KLAP_CASE(rounds_kept, "rounds that hand something on run in other threads") {
  const std::vector<int> in = all_numbers();
  const auto x = c.input("in", in);
  const auto sums = c.buffer("sums", std::vector<int>(in.size()),
                             after(std::vector<int>(in.size()), rounds_of, [&](int* y, int t, int i) {
                               y[i] = in[static_cast<size_t>(t) * kCells + static_cast<size_t>(i)] +
                                      (i < 64 ? 0 : y[i - 64]);
                             }));
  const auto begun = c.buffer(
      "begun", std::vector<int>(in.size()),
      after(std::vector<int>(in.size()), rounds_of, [](int* y, int, int i) { y[i] = 1000 * (i % 64) + 64; }));
  c.launch("rounds_kept_parent", kGrid, kBlock, c.address(x), c.address(sums), c.address(begun));
  split(c, "rounds_kept_parent");
  c.children_never_meet();
}

#endif
