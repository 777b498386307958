// Device memory whose allocations the lanes of a warp share (KLAP_AGGREGATE_MALLOC=warp): taken by parents,
// used by their children, freed by anyone, one piece at a time.
#include "case.h"

constexpr int kThreads = 96;

KLAP_SHARED static inline int bytes_of_thread(int t) { return t % 7 * 12 + 4; }
KLAP_SHARED static inline int rounds_of_thread(int t) { return t % 5 + 1; }

#ifdef __CUDACC__

__device__ int thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
// Every byte, so that pieces which overlap are seen.
__device__ void fill_bytes(unsigned char* memory, int bytes, int value) {
  for (int i = 0; i < bytes; ++i) memory[i] = static_cast<unsigned char>(value + i);
}
__device__ int sum_bytes(const unsigned char* memory, int bytes) {
  int sum = 0;
  for (int i = 0; i < bytes; ++i) sum += memory[i];
  return sum;
}

__global__ void set_cell(int* cell) {
  if (threadIdx.x == 0) *cell += 1;
}
__global__ void fill_memory(unsigned char* const* memory, int t) {
  if (threadIdx.x == 0) fill_bytes(memory[t], bytes_of_thread(t), t);
}
// The child reads what its parent wrote, and frees it.
__global__ void sum_and_give_back(unsigned char* memory, int* sums, int t) {
  if (threadIdx.x != 0) return;
  sums[t] = sum_bytes(memory, bytes_of_thread(t));
  free(memory);
}
extern "C" __global__ void give_to_child_parent(int* sums) {
  const int t = thread();
  auto* memory = static_cast<unsigned char*>(malloc(bytes_of_thread(t)));
  fill_bytes(memory, bytes_of_thread(t), t);
  sum_and_give_back<<<1, 32>>>(memory, sums, t);
}

extern "C" __global__ void keep_parent(unsigned char** memory) {
  const int t = thread();
  memory[t] = static_cast<unsigned char*>(malloc(bytes_of_thread(t)));
  fill_memory<<<1, 32>>>(memory, t);
}
extern "C" __global__ void keep_runtime_parent(unsigned char** memory, int* wrong) {
  const int t = thread();
  if (cudaMalloc(reinterpret_cast<void**>(memory + t), bytes_of_thread(t)) != cudaSuccess) wrong[t] = 1;
  fill_memory<<<1, 32>>>(memory, t);
}
// Frees every other piece from the last one on, each in another warp than the one that took it.
extern "C" __global__ void free_from_the_end(unsigned char** memory, int* sums, int odd) {
  const int t = kThreads - 1 - thread();
  if (t % 2 != odd) return;
  sums[t] = sum_bytes(memory[t], bytes_of_thread(t));
  free(memory[t]);
  free(nullptr);
}
extern "C" __global__ void runtime_free_from_the_end(unsigned char** memory, int* sums, int* wrong, int odd) {
  const int t = kThreads - 1 - thread();
  if (t % 2 != odd) return;
  sums[t] = sum_bytes(memory[t], bytes_of_thread(t));
  if (cudaFree(memory[t]) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) wrong[t] += 2;
}

// By lanes of both branches of a condition, by one lane alone, by none; a third of them through cudaMalloc.
extern "C" __global__ void some_lanes_parent(unsigned char** memory) {
  const int t = thread();
  void* runtime = nullptr;
  if (t % 3 == 0) {
    if (cudaMalloc(&runtime, bytes_of_thread(t)) == cudaSuccess)
      memory[t] = static_cast<unsigned char*>(runtime);
  } else if (t % 3 == 1 || t == 5) {
    memory[t] = static_cast<unsigned char*>(malloc(bytes_of_thread(t)));
  }
  if (memory[t] != nullptr) fill_memory<<<1, 32>>>(memory, t);
}
extern "C" __global__ void free_some_lanes(unsigned char** memory, int* sums) {
  const int t = thread();
  if (memory[t] == nullptr) return;
  sums[t] = sum_bytes(memory[t], bytes_of_thread(t));
  if (t % 3 == 0)
    cudaFree(memory[t]);
  else
    free(memory[t]);
}

__global__ void set_first(unsigned char* const* memory, int t) {
  if (threadIdx.x == 0) memory[t][0] = static_cast<unsigned char>(t);
}
// Each round takes memory, and frees what the round before took. Lanes leave the loop one after another.
extern "C" __global__ void loop_parent(unsigned char** memory, int* sums) {
  const int t = thread();
  unsigned char* last = nullptr;
  for (int round = 0; round < rounds_of_thread(t); ++round) {
    auto* next = static_cast<unsigned char*>(malloc(bytes_of_thread(t + round)));
    fill_bytes(next, bytes_of_thread(t + round), t + round);
    if (last != nullptr) {
      sums[t] += sum_bytes(last, bytes_of_thread(t + round - 1));
      free(last);
    }
    last = next;
  }
  memory[t] = last;
  set_first<<<1, 32>>>(memory, t);
}
extern "C" __global__ void free_all(unsigned char** memory) { free(memory[thread()]); }

// More than the heap has for all, and for some lanes more than there is of anything; then nothing at all.
extern "C" __global__ void greedy_parent(unsigned char** memory, int* got) {
  const int t = thread();
  memory[t] = static_cast<unsigned char*>(malloc(1 << 20));
  if (memory[t] == nullptr) return;
  atomicExch(got, 1);
  fill_memory<<<1, 32>>>(memory, t);
}
extern "C" __global__ void greedy_runtime_parent(unsigned char** memory, int* got, int* wrong) {
  const int t = thread();
  void* mine = nullptr;
  const cudaError_t error = cudaMalloc(&mine, 1 << 20);
  if ((error == cudaSuccess) != (mine != nullptr)) wrong[t] = 1;
  memory[t] = static_cast<unsigned char*>(mine);
  if (mine == nullptr) return;
  atomicExch(got, 1);
  fill_memory<<<1, 32>>>(memory, t);
}
extern "C" __global__ void runtime_free_all(unsigned char** memory) { cudaFree(memory[thread()]); }
extern "C" __global__ void odd_sizes_parent(unsigned char** memory, int* wrong, int* no_size) {
  const int t = thread();
  size_t bytes = bytes_of_thread(t);
  // From 2^62 down: near the largest number the device's own malloc answers with an address.
  if (t % 4 == 1) bytes = (size_t{1} << 62) - no_size[t];
  if (t % 4 == 2) bytes = size_t{1} << 61;  // eight of them are 2^64
  if (t % 4 == 3) bytes = no_size[0];       // 0
  memory[t] = static_cast<unsigned char*>(malloc(bytes));
  if (t % 4 == 0 && memory[t] == nullptr) wrong[t] = 1;
  if ((t % 4 == 1 || t % 4 == 2) && memory[t] != nullptr) wrong[t] = 2;
  if (reinterpret_cast<size_t>(memory[t]) % 16 != 0) wrong[t] = 4;
  if (t % 4 == 0) fill_memory<<<1, 32>>>(memory, t);
}

// So much that the heap does not have it three times.
extern "C" __global__ void large_parent(unsigned char** memory, int* wrong) {
  const int t = thread();
  memory[t] = static_cast<unsigned char*>(malloc(32 << 10));
  if (memory[t] == nullptr) wrong[t] = 1;
  if (memory[t] != nullptr) fill_memory<<<1, 32>>>(memory, t);
}
// What nothing is, the device says.
extern "C" __global__ void no_size_parent(int* cells, const int* zeros) {
  const int t = thread();
  void* nothing = nullptr;
  if (cudaMalloc(&nothing, zeros[t]) == cudaSuccess) cudaFree(nothing);
  free(malloc(zeros[t]));
  set_cell<<<1, 32>>>(cells + t);
}

// Whoever takes memory leaves it in a place, and frees what was there. Only the pointer is handed on: nothing
// orders anything else.
extern "C" __global__ void hand_on_parent(unsigned long long* places, int* cells) {
  const int t = thread();
  for (int round = 0; round < 4; ++round) {
    const auto mine = reinterpret_cast<unsigned long long>(malloc(bytes_of_thread(t)));
    const unsigned long long before = atomicExch(places + (t + round) % 8, mine);
    free(reinterpret_cast<void*>(before));
  }
  if (t < 8) cells[t] = 1;
}
extern "C" __global__ void after_hand_on_parent(unsigned long long* places, int* cells) {
  free(reinterpret_cast<void*>(places[threadIdx.x]));
  set_cell<<<1, 32>>>(cells + threadIdx.x);
}
// The pointer alone, by a shuffle.
extern "C" __global__ void shuffle_parent(int* cells) {
  const int t = thread();
  const auto mine = reinterpret_cast<unsigned long long>(malloc(bytes_of_thread(t)));
  free(reinterpret_cast<void*>(__shfl_xor_sync(0xffffffffu, mine, 17)));
  set_cell<<<1, 32>>>(cells + t);
}

// In functions that are called through pointers.
__device__ __noinline__ void* take_it(size_t bytes) { return malloc(bytes); }
__device__ __noinline__ void give_it(void* memory) { free(memory); }
__device__ void* (*take)(size_t) = nullptr;
__device__ void (*give)(void*) = nullptr;
extern "C" __global__ void set_pointers() {
  take = take_it;
  give = give_it;
}
extern "C" __global__ void take_by_pointer(unsigned char** memory) {
  const int t = thread();
  if (t % 2 == 0) memory[t] = static_cast<unsigned char*>(take(bytes_of_thread(t)));
}
extern "C" __global__ void take_the_rest_parent(unsigned char** memory) {
  const int t = thread();
  if (t % 2 == 1) memory[t] = static_cast<unsigned char*>(malloc(bytes_of_thread(t)));
  fill_memory<<<1, 32>>>(memory, t);
}
extern "C" __global__ void give_by_pointer(unsigned char** memory, int* sums) {
  const int t = thread();
  sums[t] = sum_bytes(memory[t], bytes_of_thread(t));
  give(memory[t]);
}

#else

namespace {

using klap::differential::Builder;

int sum_of(int bytes, int value) {
  int sum = 0;
  for (int i = 0; i < bytes; ++i) sum += (value + i) % 256;
  return sum;
}
template <class Expected>
std::vector<int> numbers(const Expected& expected_of) {
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(expected_of(t));
  return out;
}
int own_sum(int t) { return sum_of(bytes_of_thread(t), t); }

// Pointers differ between runs, so nobody looks at them.
uint32_t pointers(Builder& c) {
  return c.buffer("memory", std::vector<uint64_t>(kThreads), std::vector<uint64_t>());
}
uint32_t zeros(Builder& c, const std::string& name) {
  return c.buffer(name, std::vector<int>(kThreads), std::vector<int>(kThreads));
}
void all_threads(Builder& c, const std::string& kernel, auto... arguments) {
  c.launch(kernel, {2, 1, 1}, {kThreads / 2, 1, 1}, arguments...);
}
void aggregated(Builder& c) { c.setting("KLAP_AGGREGATE_MALLOC", "warp"); }

}  // namespace

KLAP_CASE(memory_given_to_child, "a child frees a piece, and the allocation with it") {
  aggregated(c);
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers(own_sum));
  all_threads(c, "give_to_child_parent", c.address(sums));
  all_threads(c, "give_to_child_parent", c.address(sums));
  c.rewritten("give_to_child_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_freed_by_pieces, "pieces are lost with the first that is freed, or never freed") {
  aggregated(c);
  const auto memory = pointers(c);
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers(own_sum));
  all_threads(c, "keep_parent", c.address(memory));
  all_threads(c, "free_from_the_end", c.address(memory), c.address(sums), 1);
  all_threads(c, "free_from_the_end", c.address(memory), c.address(sums), 0);
  c.rewritten("keep_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_of_runtime, "cudaMalloc and cudaFree differ from malloc and free") {
  aggregated(c);
  const auto memory = pointers(c), wrong = zeros(c, "wrong");
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers(own_sum));
  all_threads(c, "keep_runtime_parent", c.address(memory), c.address(wrong));
  all_threads(c, "runtime_free_from_the_end", c.address(memory), c.address(sums), c.address(wrong), 0);
  all_threads(c, "runtime_free_from_the_end", c.address(memory), c.address(sums), c.address(wrong), 1);
  c.rewritten("keep_runtime_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_of_some_lanes, "lanes that take nothing have a piece, or one that is alone has none") {
  aggregated(c);
  const auto memory = pointers(c);
  const auto takes = [](int t) { return t % 3 != 2 || t == 5; };
  const auto sums =
      c.buffer("sums", std::vector<int>(kThreads), numbers([&](int t) { return takes(t) ? own_sum(t) : 0; }));
  all_threads(c, "some_lanes_parent", c.address(memory));
  all_threads(c, "free_some_lanes", c.address(memory), c.address(sums));
  c.rewritten("some_lanes_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_in_loop, "rounds of a loop share what only lanes of one round may share") {
  aggregated(c);
  const auto memory = pointers(c);
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers([](int t) {
                               int sum = 0;
                               for (int round = 1; round < rounds_of_thread(t); ++round)
                                 sum += sum_of(bytes_of_thread(t + round - 1), t + round - 1);
                               return sum;
                             }));
  all_threads(c, "loop_parent", c.address(memory), c.address(sums));
  all_threads(c, "free_all", c.address(memory));
  c.rewritten("loop_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_runs_out, "nobody gets memory where there is not enough for all") {
  aggregated(c);
  const auto memory = pointers(c);
  const auto got = c.buffer("got", std::vector<int>(1), std::vector<int>(1, 1));
  all_threads(c, "greedy_parent", c.address(memory), c.address(got));
  all_threads(c, "free_all", c.address(memory));
  all_threads(c, "keep_parent", c.address(memory));
  all_threads(c, "free_all", c.address(memory));
  c.rewritten("greedy_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_of_runtime_runs_out, "the same of cudaMalloc, and its errors") {
  aggregated(c);
  const auto memory = pointers(c), wrong = zeros(c, "wrong");
  const auto got = c.buffer("got", std::vector<int>(1), std::vector<int>(1, 1));
  all_threads(c, "greedy_runtime_parent", c.address(memory), c.address(got), c.address(wrong));
  all_threads(c, "runtime_free_all", c.address(memory));
  all_threads(c, "keep_runtime_parent", c.address(memory), c.address(wrong));
  all_threads(c, "runtime_free_all", c.address(memory));
  c.rewritten("greedy_runtime_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_of_odd_sizes, "sizes overflow when they are added up, or nothing becomes something") {
  aggregated(c);
  const auto memory = pointers(c), wrong = zeros(c, "wrong");
  const auto sizes = c.input("sizes", numbers([](int t) { return t / 4; }));
  c.launch("odd_sizes_parent", {3, 1, 1}, {32, 1, 1}, c.address(memory), c.address(wrong), c.address(sizes));
  all_threads(c, "free_all", c.address(memory));
  c.rewritten("odd_sizes_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_given_back, "the last piece does not free the allocation") {
  aggregated(c);
  const auto memory = pointers(c), wrong = zeros(c, "wrong");
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers(own_sum));
  for (int i = 0; i < 3; ++i) {
    all_threads(c, "large_parent", c.address(memory), c.address(wrong));
    all_threads(c, "free_from_the_end", c.address(memory), c.address(sums), 0);
    all_threads(c, "free_from_the_end", c.address(memory), c.address(sums), 1);
  }
  c.rewritten("large_parent");
  c.children_never_meet();
}
KLAP_CASE(memory_of_no_size, "a lane that asks for nothing stops the others, or frees what it did not get") {
  aggregated(c);
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), std::vector<int>(kThreads, 1));
  const auto sizes = zeros(c, "sizes");
  all_threads(c, "no_size_parent", c.address(cells), c.address(sizes));
  c.rewritten("no_size_parent");
}
KLAP_CASE(memory_handed_on, "a header is not there yet when its piece is freed") {
  aggregated(c);
  const auto places = c.buffer("places", std::vector<uint64_t>(8), std::vector<uint64_t>());
  const auto cells = c.buffer("cells", std::vector<int>(8), std::vector<int>(8, 2));
  all_threads(c, "hand_on_parent", c.address(places), c.address(cells));
  c.launch("after_hand_on_parent", {1, 1, 1}, {8, 1, 1}, c.address(places), c.address(cells));
  c.rewritten("after_hand_on_parent");
}
KLAP_CASE(memory_shuffled, "a header is not there yet for the next lane") {
  aggregated(c);
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), std::vector<int>(kThreads, 1));
  c.launch("shuffle_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells));
  c.rewritten("shuffle_parent");
}
KLAP_CASE(memory_by_pointers,
          "functions called through pointers take or free memory in the device's own way") {
  aggregated(c);
  const auto memory = pointers(c);
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers(own_sum));
  c.launch("set_pointers", {1, 1, 1}, {1, 1, 1});
  all_threads(c, "take_by_pointer", c.address(memory));
  all_threads(c, "take_the_rest_parent", c.address(memory));
  all_threads(c, "give_by_pointer", c.address(memory), c.address(sums));
  c.rewritten("take_the_rest_parent");
  c.children_never_meet();
}

#endif
