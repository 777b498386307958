// Children that are not recorded: those of no threads, and those of so few that the thread which launches
// them runs them itself.
#include "case.h"

constexpr int kThreads = 192;  // of a parent's grid, in blocks of 64
constexpr int kCells = 80;

// Around the threshold of 8, and around a child's block of 5.
KLAP_SHARED static constexpr int small_of(int t) {
  constexpr int kSizes[] = {0, 1, 7, 8, 9, 5, 6, 31, 0, 4, 33, 2, 32, 3, 0, 70};
  if (t >= 64 && t < 96) return 3;    // a warp that records nothing
  if (t >= 128 && t < 160) return 0;  // and one that runs nothing either
  return kSizes[t % 16];
}
constexpr int kSmallBlock = 5;
KLAP_SHARED static constexpr int grid_for(int n) { return n == 0 ? 1 : (n + kSmallBlock - 1) / kSmallBlock; }

KLAP_SHARED static constexpr int other_of(int t) { return (t * 5 + 3) % 12; }

struct alignas(8) Pair {
  int scale, offset;
};

#ifdef __CUDACC__

// What a thread knows of its place, and what it is given.
__global__ void place(int* cells, int n, float scale, long long more, double most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int told =
      static_cast<int>(1000000 * gridDim.x + 10000 * blockIdx.x + 100 * threadIdx.x + blockDim.x);
  atomicAdd(cells + i,
            told + static_cast<int>(scale) + static_cast<int>(more >> 33) + static_cast<int>(most));
}
extern "C" __global__ void threshold_parent(int* cells, const int* sizes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = sizes[t];
  place<<<grid_for(n), kSmallBlock>>>(cells + t * kCells, n, static_cast<float>(t) + 0.5f,
                                      static_cast<long long>(t) << 33, t * 2.0);
  cells[t * kCells + kCells - 1] = t;  // more is done behind the launch
}

// A child whose threads leave it at several places, launched by some lanes, whose warp then meets.
__global__ void leave(int* cells, const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int value = values[i];
  if (value % 3 == 0) return;
  cells[i] = value;
  if (value % 5 == 1) return;
  cells[i] += 1000;
}
extern "C" __global__ void threshold_leaves_parent(int* cells, const int* values, const int* sizes,
                                                   int* met) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = sizes[t];
  if (t % 3 != 1) leave<<<grid_for(n), kSmallBlock>>>(cells + t * kCells, values + t, n);
  __syncwarp();
  met[t] = __popc(__ballot_sync(~0u, t % 3 != 1));
}

// The child reads what its thread wrote before, by pointers that promise that nobody writes.
__global__ void follow(const int* __restrict__ words, int* __restrict__ cells, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] = words[i] + 1;
}
extern "C" __global__ void threshold_reads_parent(int* words, int* cells, const int* __restrict__ degrees) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int degree = degrees[t];
  for (int i = 0; i < degree; ++i) words[t * 12 + i] = 100 * t + i;
  follow<<<1, 12>>>(words + t * 12, cells + t * 12, degree);
}

// It writes what its thread has read, which must keep what it saw.
__global__ void overwrite(int* cells, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] = -1;
}
extern "C" __global__ void threshold_writes_parent(const int* __restrict__ levels, int* written, int* seen) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int level = levels[t];
  if (level % 2 == 0) overwrite<<<1, 4>>>(written + t, 1);
  seen[t] = level * 3;
}

// Two launches into the NULL stream: the second comes behind the first, of whatever sizes they are.
__global__ void set(int* cells, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] = value;
}
__global__ void raise_to(int* cells, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[i] = cells[i] * factor + 1;
}
extern "C" __global__ void threshold_two_parent(int* cells, const int* sizes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set<<<1, 12>>>(cells + t * 12, sizes[t], t);
  raise_to<<<1, 12>>>(cells + t * 12, sizes[t + 1], 3);
}

// Grids that CUDA refuses, of children that would have no threads or few.
extern "C" __global__ void threshold_refused_parent(int* cells, int* errors) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set<<<t % 4, 12>>>(cells + t * 12, t % 5, t + 1);
  errors[t] = static_cast<int>(cudaGetLastError());
}

// No comparison: all threads count.
__global__ void mark(int* cells, int value) {
  atomicAdd(cells + blockIdx.x * blockDim.x + threadIdx.x, value);
}
extern "C" __global__ void threshold_unguarded_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  mark<<<1 + t % 4, 3>>>(cells + t * 12, t + 1);
}

// Children whose threads are shared out among the lanes that launch together. The sizes go up to 40, and most
// warps have some children that are recorded beside them. What is read of the arguments is a vector, a pair
// of words that the parent stores together, and a pointer and a number of its own thread.
__global__ void gather(Pair pair, const int* values, int* cells, const int* list, int first, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) cells[first + i] = values[list[i]] * pair.scale + pair.offset;
}
extern "C" __global__ void threshold_gathers_parent(Pair pair, const int* values, int* cells, int* lists,
                                                    const int* sizes, int threads) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= threads) return;
  const int n = sizes[t];
  int* const list = lists + t * kCells;
  for (int i = 0; i < n; ++i) list[i] = (t * 5 + i * 3) % threads;  // what any lane reads then
  if (t % 7 != 3) gather<<<grid_for(n), kSmallBlock>>>(pair, values, cells, list, t * kCells, n);
}

// Lanes that come to their launches at different times, and a child that takes part in a sum of its warp's.
__global__ void add_up(int* sums, const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sums, values[i]);
}
extern "C" __global__ void threshold_apart_parent(int* sums, const int* values, const int* sizes,
                                                  int* turns) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int turn = 0;
  for (int i = 0; i < t % 5; ++i) turn = turn * 3 + values[(t + i) % kThreads];
  turns[t] = turn;
  if (turn % 2 == 0) add_up<<<2, 20>>>(sums + t / 3, values + t, sizes[t]);
  turns[t] += 1;
}

// Threads that loop: nothing is run at once, but children of no threads are left out.
__global__ void tally(int* cells, int n, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int k = 0;
  do {
    atomicAdd(cells + (i + k) % 12, k + 1);
  } while (++k < rounds);
}
extern "C" __global__ void threshold_loops_parent(int* cells, const int* sizes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  tally<<<3, 4>>>(cells + t * 12, sizes[t], sizes[t + 3]);
}

#else

namespace {

std::vector<int> placed(int launches) {
  std::vector<int> cells(kThreads * kCells);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < small_of(t); ++i) {
      const int told =
          1000000 * grid_for(small_of(t)) + 10000 * (i / kSmallBlock) + 100 * (i % kSmallBlock) + kSmallBlock;
      cells[t * kCells + i] = launches * (told + t + t + 2 * t);
    }
    cells[t * kCells + kCells - 1] = t;
  }
  return cells;
}

std::vector<int> sizes_by(int (*size)(int)) {
  std::vector<int> sizes;
  for (int t = 0; t < kThreads + 3; ++t) sizes.push_back(size(t));
  return sizes;
}

void threshold_parents(klap::differential::Builder& c) {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads * kCells), placed(3));
  const auto sizes = c.input("sizes", sizes_by(small_of));
  for (int i = 0; i < 3; ++i)
    c.launch("threshold_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(sizes));
  c.rewritten("threshold_parent");
}

void threshold_leaves_parents(klap::differential::Builder& c) {
  std::vector<int> after(kThreads * kCells, 7), values(kThreads + kCells), met(kThreads);
  for (int i = 0; i < kThreads + kCells; ++i) values[i] = i * 7 % 31;
  for (int t = 0; t < kThreads; ++t) {
    for (int lane = 0; lane < 32; ++lane) met[t] += (t / 32 * 32 + lane) % 3 != 1 ? 1 : 0;
    for (int i = 0; t % 3 != 1 && i < small_of(t); ++i) {
      const int value = values[t + i];
      if (value % 3 != 0) after[t * kCells + i] = value % 5 == 1 ? value : value + 1000;
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), 7), after);
  const auto given = c.input("values", values);
  const auto sizes = c.input("sizes", sizes_by(small_of));
  const auto warps = c.buffer("met", std::vector<int>(kThreads), met);
  c.launch("threshold_leaves_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(given),
           c.address(sizes), c.address(warps));
  c.rewritten("threshold_leaves_parent");
}

}  // namespace

KLAP_CASE(threshold, "a child that its thread runs has other threads, places or arguments than natively") {
  threshold_parents(c);
  c.setting("KLAP_THRESHOLD", "12");
}

KLAP_CASE(threshold_none,
          "a child of which no thread passes is recorded in part, or one of which some do is not") {
  threshold_leaves_parents(c);
  c.children_never_meet();
}

KLAP_CASE(threshold_off, "children of no threads are lost where all are recorded") {
  threshold_leaves_parents(c);
  c.setting("KLAP_THRESHOLD", "off");
  c.children_never_meet();
}

KLAP_CASE(threshold_leaves, "a child's thread that leaves ends more than itself") {
  threshold_leaves_parents(c);
  c.setting("KLAP_THRESHOLD", "32");
  c.children_never_meet();
}

KLAP_CASE(threshold_shared,
          "a lane runs another's thread with other arguments or at another place than natively") {
  threshold_parents(c);
  c.setting("KLAP_THRESHOLD", "40");
}

KLAP_CASE(threshold_shared_leaves, "a child's thread that leaves takes the lane out of its warp's work") {
  threshold_leaves_parents(c);
  c.setting("KLAP_THRESHOLD", "1024");
  c.children_never_meet();
}

KLAP_CASE(threshold_shared_gathers, "a lane does not see what the launching lane wrote before its launch") {
  constexpr int kUsed = 150;  // the last warp has 22 lanes, and one has none
  std::vector<int> values(kThreads), lists(kThreads * kCells), after(kThreads * kCells, -1);
  for (int t = 0; t < kThreads; ++t) values[t] = t * 31 % 101;
  for (int t = 0; t < kUsed; ++t) {
    for (int i = 0; i < small_of(t); ++i) {
      const int place = (t * 5 + i * 3) % kUsed;
      lists[t * kCells + i] = place;
      if (t % 7 != 3) after[t * kCells + i] = values[place] * 3 + 17;
    }
  }
  const auto given = c.input("values", values);
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  const auto written = c.buffer("lists", std::vector<int>(lists.size()), lists);
  const auto sizes = c.input("sizes", sizes_by(small_of));
  c.launch("threshold_gathers_parent", {3, 1, 1}, {64, 1, 1}, Pair{3, 17}, c.address(given), c.address(cells),
           c.address(written), c.address(sizes), kUsed);
  c.rewritten("threshold_gathers_parent");
  c.setting("KLAP_THRESHOLD", "40");
  c.children_never_meet();
}

KLAP_CASE(threshold_shared_apart,
          "lanes that launch at different times wait for one another or lose threads") {
  std::vector<int> values(kThreads + kCells), sums(kThreads), turns(kThreads);
  for (int i = 0; i < kThreads + kCells; ++i) values[i] = i * 7 % 31;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < t % 5; ++i) turns[t] = turns[t] * 3 + values[(t + i) % kThreads];
    for (int i = 0; turns[t] % 2 == 0 && i < std::min(40, small_of(t)); ++i) sums[t / 3] += values[t + i];
    turns[t] += 1;
  }
  const auto cells = c.buffer("sums", std::vector<int>(kThreads), sums);
  const auto given = c.input("values", values);
  const auto sizes = c.input("sizes", sizes_by(small_of));
  const auto counted = c.buffer("turns", std::vector<int>(kThreads), turns);
  c.launch("threshold_apart_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(given),
           c.address(sizes), c.address(counted));
  c.rewritten("threshold_apart_parent");
  c.setting("KLAP_THRESHOLD", "64");
}

KLAP_CASE(threshold_reads, "a child does not see what the thread that runs it wrote before its launch") {
  std::vector<int> degrees(kThreads), words(kThreads * 12), after(kThreads * 12);
  for (int t = 0; t < kThreads; ++t) {
    degrees[t] = other_of(t);
    for (int i = 0; i < degrees[t]; ++i) {
      words[t * 12 + i] = 100 * t + i;
      after[t * 12 + i] = 100 * t + i + 1;
    }
  }
  const auto given = c.input("degrees", degrees);
  const auto written = c.buffer("words", std::vector<int>(words.size()), words);
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("threshold_reads_parent", {3, 1, 1}, {64, 1, 1}, c.address(written), c.address(cells),
           c.address(given));
  c.rewritten("threshold_reads_parent");
  c.setting("KLAP_THRESHOLD", "8");
}

KLAP_CASE(threshold_writes, "a thread sees in place of what it read what its child wrote") {
  std::vector<int> levels(kThreads), after(kThreads), seen(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    levels[t] = t * 11 % 17;
    after[t] = levels[t] % 2 == 0 ? -1 : levels[t];
    seen[t] = levels[t] * 3;
  }
  const auto cells = c.buffer("levels", levels, after);
  const auto read = c.buffer("seen", std::vector<int>(kThreads), seen);
  c.launch("threshold_writes_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(cells),
           c.address(read));
  c.rewritten("threshold_writes_parent");
  c.setting("KLAP_THRESHOLD", "4");
}

KLAP_CASE(threshold_two_sites,
          "a child that its thread runs comes before one that the thread launched earlier") {
  std::vector<int> after(kThreads * 12);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < 12; ++i) {
      int value = i < other_of(t) ? t : 0;
      if (i < other_of(t + 1)) value = value * 3 + 1;
      after[t * 12 + i] = value;
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  const auto sizes = c.input("sizes", sizes_by(other_of));
  c.launch("threshold_two_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(sizes));
  c.rewritten("threshold_two_parent");
  c.setting("KLAP_THRESHOLD", "6");
}

KLAP_CASE(threshold_refused, "a launch that CUDA refuses is taken for one of no threads") {
  std::vector<int> after(kThreads * 12), errors(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    errors[t] = t % 4 == 0 ? 9 : 0;
    for (int i = 0; t % 4 != 0 && i < t % 5; ++i) after[t * 12 + i] = t + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  const auto codes = c.buffer("errors", std::vector<int>(kThreads, -1), errors);
  c.launch("threshold_refused_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(codes));
  c.rewritten("threshold_refused_parent");
  c.setting("KLAP_THRESHOLD", "2");
  c.children_never_meet();
}

KLAP_CASE(threshold_unguarded, "of a child without a comparison not all threads are run by its own thread") {
  std::vector<int> after(kThreads * 12);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < 3 * (1 + t % 4); ++i) after[t * 12 + i] = t + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  c.launch("threshold_unguarded_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells));
  c.rewritten("threshold_unguarded_parent");
  c.setting("KLAP_THRESHOLD", "6");
}

KLAP_CASE(threshold_loops, "of children whose threads loop, one that has threads is left out") {
  std::vector<int> after(kThreads * 12);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < other_of(t); ++i) {
      for (int k = 0; k == 0 || k < other_of(t + 3); ++k) after[t * 12 + (i + k) % 12] += k + 1;
    }
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  const auto sizes = c.input("sizes", sizes_by(other_of));
  c.launch("threshold_loops_parent", {3, 1, 1}, {64, 1, 1}, c.address(cells), c.address(sizes));
  c.rewritten("threshold_loops_parent");
  c.setting("KLAP_THRESHOLD", "8");
}

#endif
