// Launches whose order in their stream nothing can tell, which the executor runs without it, and launches
// that only look like them.
//
// The kernels of the first kind are launched by the host and then by themselves. So they are run as the
// parent and by the executor. Those of the second kind give another result without their order.
#include "case.h"

KLAP_SHARED static inline int next_cell(int cell, int by) {
  return static_cast<int>((cell * 1103515245u + 12345u + static_cast<unsigned>(by)) >> 1);
}

// Where threads meet at a barrier, a block of the executor must be known.
constexpr int kThreads = 32;

#ifdef __CUDACC__

__device__ int first_cells[64], second_cells[64];

// ---- children that are apart ----

__global__ void own_cells(int* cells, int number) {
  int* const cell = cells + number * 8 + threadIdx.x;
  *cell = next_cell(*cell, number);
}
extern "C" __global__ void forks(int* cells, int rounds) {
  own_cells<<<1, 8>>>(cells, static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1) forks<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}
// Several blocks, whose streams have nothing to do with each other.
extern "C" __global__ void forks_of_blocks(int* cells, int rounds) {
  int* const own = cells + blockIdx.x * blockDim.x * 8;
  own_cells<<<1, 8>>>(own, static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1) forks<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(own, rounds - 1);
}
// The thread's number in two dimensions.
extern "C" __global__ void forks_of_rows(int* cells, int rounds) {
  own_cells<<<1, 8>>>(cells, static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x));
  if (threadIdx.x + threadIdx.y == 0 && rounds > 1) {
    forks_of_rows<<<1, dim3(blockDim.x, blockDim.y), 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
  }
}

__global__ void add_up(int* cells, int number, int by) { atomicAdd(cells + number % 5, by); }
extern "C" __global__ void sums(int* cells, int rounds) {
  add_up<<<1, 4>>>(cells, static_cast<int>(threadIdx.x) * 3, rounds);
  if (threadIdx.x == 0 && rounds > 1) sums<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}

// Two launches of each thread, into the block's stream and into its own.
__global__ void step_first(int number) { first_cells[number] = next_cell(first_cells[number], number); }
__global__ void step_second(int number) { second_cells[number] = next_cell(second_cells[number], number); }
extern "C" __global__ void two_arrays(int rounds) {
  step_first<<<1, 1>>>(static_cast<int>(threadIdx.x));
  step_second<<<1, 1>>>(static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1) two_arrays<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(rounds - 1);
}
extern "C" __global__ void two_arrays_of_thread(int rounds) {
  step_first<<<1, 1, 0, cudaStreamPerThread>>>(static_cast<int>(threadIdx.x));
  step_second<<<1, 1, 0, cudaStreamPerThread>>>(static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1)
    two_arrays_of_thread<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(rounds - 1);
}

// Forks without an order beside two launches that keep theirs.
__global__ void own_second(int number) { second_cells[number] = next_cell(second_cells[number], number); }
__global__ void add_to_first(int by) { first_cells[0] += by; }
extern "C" __global__ void beside_ordered(int rounds) {
  add_to_first<<<1, 1>>>(static_cast<int>(threadIdx.x));
  own_second<<<1, 1>>>(static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1) beside_ordered<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(rounds - 1);
}

// ---- children that are not ----

// In a block of several rows, threads of one column have the same cell. They launch in any order, but one
// child after another.
__global__ void add_to_column(int* cells, int column, int by) { cells[column] += by; }
extern "C" __global__ void forks_of_columns(int* cells, int rounds) {
  add_to_column<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y) + rounds);
  if (threadIdx.x + threadIdx.y == 0 && rounds > 1) {
    forks_of_columns<<<1, dim3(blockDim.x, blockDim.y), 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
  }
}

__global__ void column_cell(int* cells, int column, int by) { cells[column] = next_cell(cells[column], by); }
extern "C" __global__ void forks_in_loop(int* cells, int rounds) {
  for (int i = 0; i < 3; ++i) column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), i);
  if (threadIdx.x == 0 && rounds > 1)
    forks_in_loop<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}

extern "C" __global__ void forks_twice(int* cells, int rounds) {
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), 1);
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), 2);
  if (threadIdx.x == 0 && rounds > 1)
    forks_twice<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}
extern "C" __global__ void forks_twice_of_thread(int* cells, int rounds) {
  column_cell<<<1, 1, 0, cudaStreamPerThread>>>(cells, static_cast<int>(threadIdx.x), 1);
  column_cell<<<1, 1, 0, cudaStreamPerThread>>>(cells, static_cast<int>(threadIdx.x), 2);
  if (threadIdx.x == 0 && rounds > 1)
    forks_twice_of_thread<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}

__global__ void sum_cells(int* cells, int count) {
  for (int i = 0; i < count; ++i) cells[count] = next_cell(cells[count], cells[i]);
}
// One thread joins the forks of all, in the same stream.
extern "C" __global__ void forks_and_join(int* cells, int rounds) {
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), rounds);
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum_cells<<<1, 1>>>(cells, kThreads);
  if (rounds > 1) forks_and_join<<<1, kThreads, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}
// The same by a stream of which only the run tells that it is the block's.
extern "C" __global__ void forks_and_handle(int* cells, int rounds, cudaStream_t stream) {
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), rounds);
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum_cells<<<1, 1, 0, stream>>>(cells, kThreads);
  if (rounds > 1) forks_and_handle<<<1, kThreads, 0, cudaStreamTailLaunch>>>(cells, rounds - 1, stream);
}
// The same by a copy.
extern "C" __global__ void forks_and_copy(int* cells, int* copies, int rounds) {
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), rounds);
  __syncthreads();
  if (threadIdx.x != 0) return;
  cudaMemcpyAsync(copies + kThreads * (rounds - 1), cells, kThreads * sizeof(int), cudaMemcpyDeviceToDevice,
                  nullptr);
  if (rounds > 1) forks_and_copy<<<1, kThreads, 0, cudaStreamTailLaunch>>>(cells, copies, rounds - 1);
}
// A copy in front of the forks.
extern "C" __global__ void copy_and_forks(int* cells, int* copies, int rounds) {
  if (threadIdx.x == 0)
    cudaMemcpyAsync(copies + kThreads * (rounds - 1), cells, kThreads * sizeof(int), cudaMemcpyDeviceToDevice,
                    nullptr);
  __syncthreads();
  column_cell<<<1, 1>>>(cells, static_cast<int>(threadIdx.x), rounds);
  if (threadIdx.x == 0 && rounds > 1)
    copy_and_forks<<<1, kThreads, 0, cudaStreamTailLaunch>>>(cells, copies, rounds - 1);
}

// The child writes a cell of its own, and its child that of the next one.
__global__ void pass_on(int* cells, int number) { cells[number + 1] += number; }
__global__ void own_and_next(int* cells, int number) {
  cells[number] += 7;
  pass_on<<<1, 1>>>(cells, number);
}
extern "C" __global__ void forks_of_trees(int* cells, int rounds) {
  own_and_next<<<1, 1>>>(cells, static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0 && rounds > 1)
    forks_of_trees<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}
extern "C" __global__ void begin_trees(int* cells, int rounds) {
  forks_of_trees<<<1, kThreads, 0, cudaStreamTailLaunch>>>(cells, rounds);
}

// ---- grids beside them that look ----

// Each thread launches two children that are apart. The second one's message says that the first is done.
__device__ int sent[kThreads], sent_flags[kThreads];
__global__ void write_cell(int number) { sent[number] = number + 1; }
__global__ void send(volatile int* flags, int number) {
  __threadfence();
  flags[number] = 1;
}
__global__ void receive(const volatile int* flags, int* errors) {
  const int i = static_cast<int>(threadIdx.x);
  if (flags[i] == 0) return;
  __threadfence();
  if (sent[i] != i + 1) atomicAdd(errors, 1);
}
extern "C" __global__ void messages(int* errors) {
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) receive<<<1, kThreads, 0, cudaStreamFireAndForget>>>(sent_flags, errors);
  write_cell<<<1, 1>>>(t);
  send<<<1, 1>>>(sent_flags, t);
  if (t == kThreads / 2) receive<<<1, kThreads, 0, cudaStreamFireAndForget>>>(sent_flags, errors);
}
extern "C" __global__ void begin_messages(int* errors) {
  messages<<<1, kThreads, 0, cudaStreamTailLaunch>>>(errors);
}

// Each child adds one and takes it away again, some times. In their order, the sum is never more.
__global__ void add_and_take(unsigned* sum) {
  for (int i = 0; i < 20; ++i) {
    atomicAdd(sum, 1u);
    atomicAdd(sum, ~0u);
  }
}
__global__ void look_at_sum(unsigned* sum, int* errors) {
  for (int i = 0; i < 20; ++i) {
    if (atomicAdd(sum, 0u) > 1) atomicAdd(errors, 1);
  }
}
extern "C" __global__ void partial_sums(unsigned* sum, int* errors, int rounds) {
  const int t = static_cast<int>(threadIdx.x);
  if (t % 8 == 0) look_at_sum<<<1, 1, 0, cudaStreamFireAndForget>>>(sum, errors);
  add_and_take<<<1, 1>>>(sum);
  if (t == 0 && rounds > 1)
    partial_sums<<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(sum + 1, errors, rounds - 1);
}

#else

namespace {

using klap::differential::Builder;
using Cells = std::vector<int>;

constexpr int kRounds = 3;

Cells cells_before(size_t count) {
  Cells cells;
  for (size_t i = 0; i < count; ++i) cells.push_back(static_cast<int>(i) * 37 % 101);
  return cells;
}

int& at(Cells& cells, int i) { return cells[static_cast<size_t>(i)]; }

void executed(Builder& c, const char* parent, const char* on_device = "stream-unsupported",
              const char* by_warp = "stream-unsupported") {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp);
}

// A case that calls `round` for each round, from the first one on, with what the rounds change.
template <class Round>
uint32_t rounds_of(Builder& c, size_t count, const Round& round) {
  Cells cells = cells_before(count);
  for (int left = kRounds; left > 0; --left) round(cells, left);
  return c.buffer("cells", cells_before(count), cells);
}

// Each thread, by its number, changes its own cell.
void step_columns(Cells& cells, int by) {
  for (int t = 0; t < kThreads; ++t) at(cells, t) = next_cell(at(cells, t), by);
}

void step_own(Cells& cells, int first, int threads) {
  for (int i = 0; i < 8 * threads; ++i) at(cells, 8 * first + i) = next_cell(at(cells, 8 * first + i), i / 8);
}

void sum_cells(Cells& cells, int count) {
  for (int i = 0; i < count; ++i) at(cells, count) = next_cell(at(cells, count), at(cells, i));
}

void variables(Builder& c, const Cells& first, const Cells& second) {
  c.variable("first_cells", Cells(64), first);
  c.variable("second_cells", Cells(64), second);
}

void step_arrays(Builder& c) {
  Cells cells(64);
  for (int left = kRounds; left > 0; --left) {
    for (int t = 0; t < kThreads; ++t) at(cells, t) = next_cell(at(cells, t), t);
  }
  variables(c, cells, cells);
}

}  // namespace

KLAP_CASE(forks_apart, "a launch without order is lost, or the tail launch does not wait for it") {
  const auto cells = rounds_of(c, 8 * kThreads, [](Cells& is, int) { step_own(is, 0, kThreads); });
  c.launch("forks", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks", "stream-unsupported", "some");
}

KLAP_CASE(forks_apart_of_blocks, "blocks that launch without order lose launches of each other") {
  Cells cells = cells_before(8 * 3 * kThreads);
  for (int block = 0; block < 3; ++block) {
    for (int left = kRounds; left > 0; --left) step_own(cells, block * kThreads, kThreads);
  }
  const auto of_cells = c.buffer("cells", cells_before(cells.size()), cells);
  c.launch("forks_of_blocks", {3, 1, 1}, {kThreads, 1, 1}, c.address(of_cells), kRounds);
  executed(c, "forks_of_blocks", "stream-unsupported", "some");
}

KLAP_CASE(forks_apart_of_rows, "the order is lost in a block of two dimensions where it must be kept") {
  const auto cells = rounds_of(c, 8 * kThreads, [](Cells& is, int) { step_own(is, 0, kThreads); });
  c.launch("forks_of_rows", {1, 1, 1}, {kThreads / 4, 4, 1}, c.address(cells), kRounds);
  executed(c, "forks_of_rows");
}

KLAP_CASE(forks_sums, "sums by launches without order lose a part") {
  const auto cells = rounds_of(c, 5, [](Cells& is, int left) {
    for (int t = 0; t < kThreads; ++t) at(is, 3 * t % 5) += 4 * left;
  });
  c.launch("sums", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "sums");
}

KLAP_CASE(forks_two_arrays, "two launches of a thread without order meet") {
  step_arrays(c);
  c.launch("two_arrays", {1, 1, 1}, {kThreads, 1, 1}, kRounds);
  executed(c, "two_arrays", "stream-unsupported", "some");
}

KLAP_CASE(forks_two_arrays_of_thread, "two launches of a thread's own stream without order meet") {
  step_arrays(c);
  c.launch("two_arrays_of_thread", {1, 1, 1}, {kThreads, 1, 1}, kRounds);
  executed(c, "two_arrays_of_thread");
}

KLAP_CASE(forks_beside_ordered, "launches lose their order because others beside them need none") {
  Cells first(64), second(64);
  for (int left = kRounds; left > 0; --left) {
    for (int t = 0; t < kThreads; ++t) {
      first[0] += t;
      at(second, t) = next_cell(at(second, t), t);
    }
  }
  variables(c, first, second);
  c.launch("beside_ordered", {1, 1, 1}, {kThreads, 1, 1}, kRounds);
  executed(c, "beside_ordered");
}

KLAP_CASE(forks_of_columns, "threads of one column, which have one cell, lose their order") {
  const auto cells = rounds_of(c, 8, [](Cells& is, int left) {
    for (int& cell : is) cell += 4 * left + 0 + 1 + 2 + 3;
  });
  c.launch("forks_of_columns", {1, 1, 1}, {8, 4, 1}, c.address(cells), kRounds);
}

KLAP_CASE(forks_of_one_row, "launches in a block of one row are taken for others") {
  const auto cells = rounds_of(c, kThreads, [](Cells& is, int left) {
    for (int& cell : is) cell += left;
  });
  c.launch("forks_of_columns", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks_of_columns", "stream-unsupported", "some");
}

KLAP_CASE(forks_in_loop, "the launches of a thread in a loop lose their order") {
  const auto cells = rounds_of(c, kThreads, [](Cells& is, int) {
    for (int i = 0; i < 3; ++i) step_columns(is, i);
  });
  c.launch("forks_in_loop", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks_in_loop", "stream-unsupported", "some");
}

KLAP_CASE(forks_twice, "two launches of a thread lose their order") {
  const auto cells = rounds_of(c, kThreads, [](Cells& is, int) {
    step_columns(is, 1);
    step_columns(is, 2);
  });
  c.launch("forks_twice", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks_twice", "stream-unsupported", "some");
}

KLAP_CASE(forks_twice_of_thread, "two launches of a thread's own stream lose their order") {
  const auto cells = rounds_of(c, kThreads, [](Cells& is, int) {
    step_columns(is, 1);
    step_columns(is, 2);
  });
  c.launch("forks_twice_of_thread", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks_twice_of_thread");
}

KLAP_CASE(forks_and_join, "a join in the same stream does not wait for the launches before it") {
  const auto cells = rounds_of(c, kThreads + 1, [](Cells& is, int left) {
    step_columns(is, left);
    sum_cells(is, kThreads);
  });
  c.launch("forks_and_join", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds);
  executed(c, "forks_and_join", "stream-unsupported", "some");
}

KLAP_CASE(forks_and_handle, "a join does not wait for the launches of its stream, which a handle names") {
  const auto cells = rounds_of(c, kThreads + 1, [](Cells& is, int left) {
    step_columns(is, left);
    sum_cells(is, kThreads);
  });
  c.launch("forks_and_handle", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), kRounds, uint64_t{0});
  executed(c, "forks_and_handle");
}

KLAP_CASE(forks_and_copy, "a copy does not wait for the launches before it in its stream") {
  Cells copies(kRounds * kThreads);
  const auto cells = rounds_of(c, kThreads, [&](Cells& is, int left) {
    step_columns(is, left);
    std::copy(is.begin(), is.end(), copies.begin() + ptrdiff_t{kThreads} * (left - 1));
  });
  const auto of_copies = c.buffer("copies", Cells(copies.size()), copies);
  c.launch("forks_and_copy", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(of_copies), kRounds);
  executed(c, "forks_and_copy", "runtime-call", "some");
}

KLAP_CASE(forks_behind_copy, "launches do not wait for the copy before them in their stream") {
  Cells copies(kRounds * kThreads);
  const auto cells = rounds_of(c, kThreads, [&](Cells& is, int left) {
    std::copy(is.begin(), is.end(), copies.begin() + ptrdiff_t{kThreads} * (left - 1));
    step_columns(is, left);
  });
  const auto of_copies = c.buffer("copies", Cells(copies.size()), copies);
  c.launch("copy_and_forks", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(of_copies), kRounds);
  executed(c, "copy_and_forks", "runtime-call", "some");
}

KLAP_CASE(forks_of_trees, "launches that are apart, but not from what the others launch, lose their order") {
  const auto cells = rounds_of(c, kThreads + 1, [](Cells& is, int) {
    for (int t = 0; t < kThreads; ++t) {
      at(is, t) += 7;
      at(is, t + 1) += t;
    }
  });
  c.launch("begin_trees", {1, 1, 1}, {1, 1, 1}, c.address(cells), kRounds);
  executed(c, "begin_trees");
}

KLAP_CASE(forks_messages, "a message of a launch comes before what the launches before it have written") {
  const auto errors = c.buffer("errors", Cells(1), Cells(1));
  c.launch("begin_messages", {1, 1, 1}, {1, 1, 1}, c.address(errors));
  executed(c, "begin_messages");
}

KLAP_CASE(forks_partial_sums, "a grid sees a sum that no order of the stream gives") {
  const auto of_sums = c.buffer("sums", Cells(kRounds), Cells(kRounds));
  const auto errors = c.buffer("errors", Cells(1), Cells(1));
  c.launch("partial_sums", {1, 1, 1}, {kThreads, 1, 1}, c.address(of_sums), c.address(errors), kRounds);
  executed(c, "partial_sums", "stream-unsupported", "some");
}

#endif
