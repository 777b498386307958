// Streams that threads create, launch into and destroy: for themselves, which orders only their own launches,
// and for others.
#include "case.h"

constexpr int kThreads = 128;

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
__global__ void twice(int* cell) {
  if (threadIdx.x == 0) *cell *= 2;
}
__global__ void add(int* sum, int value) {
  if (threadIdx.x == 0) *sum += value;
}

__global__ void add_one(int* sum) { atomicAdd(sum, 1); }

__device__ cudaStream_t created() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}

extern "C" __global__ void one_launch_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t stream = created();
  set<<<1, 32, 0, stream>>>(cells + t, t + 3);
  cudaStreamDestroy(stream);
}
// A shuffle hands on the stream, and orders no memory.
extern "C" __global__ void handed_on_parent(int* sum) {
  cudaStream_t stream = created();
  stream = reinterpret_cast<cudaStream_t>(__shfl_sync(~0U, reinterpret_cast<unsigned long long>(stream), 3));
  if (threadIdx.x == 0) add_one<<<1, 1, 0, stream>>>(sum);
}
// Everything that a program can ask of what the calls return.
extern "C" __global__ void asking_parent(int* cells, int* answers) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t stream = nullptr;
  const int before = stream == nullptr ? 1 : 2;
  const int create = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  int launched = 0;
  if (create == cudaSuccess && stream != nullptr) {
    set<<<t % 3, 32, 0, stream>>>(cells + t, t + 4);
    launched = cudaGetLastError();
  }
  const int destroy = cudaStreamDestroy(stream);
  answers[t] =
      before * 10000 + (launched != 0 ? 1000 : 0) + create * 100 + destroy * 10 + cudaPeekAtLastError();
}
// Each of its own streams for one launch, of which only some threads make the second.
extern "C" __global__ void two_streams_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t first = created();
  set<<<1, 32, 0, first>>>(cells + 2 * t, t + 5);
  cudaStreamDestroy(first);
  if (t % 3 == 0) return;
  cudaStream_t second = created();
  set<<<1, 32, 0, second>>>(cells + 2 * t + 1, t + 6);
  cudaStreamDestroy(second);
}
extern "C" __global__ void array_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set<<<1, 32, 0, streams[t % 2]>>>(cells + t, t + 7);
  twice<<<1, 32, 0, streams[t % 2]>>>(cells + t);
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}
// One stream for a block: its launches run one after another.
extern "C" __global__ void shared_stream_parent(int* sum) {
  __shared__ cudaStream_t stream;
  if (threadIdx.x == 0) stream = created();
  __syncthreads();
  add<<<1, 32, 0, stream>>>(sum + blockIdx.x, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) cudaStreamDestroy(stream);
}
// Only some of the threads create a stream; the others launch into the block's own, one after another.
extern "C" __global__ void some_streams_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t stream = nullptr;
  if (t % 2 == 0) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set<<<1, 32, 0, stream>>>(cells + t, t + 8);
  if (t % 2 == 0) cudaStreamDestroy(stream);
}
extern "C" __global__ void event_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t first = created(), second = created();
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  set<<<1, 32, 0, first>>>(cells + t, t + 9);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  twice<<<1, 32, 0, second>>>(cells + t);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaEventDestroy(event);
}
// A heap-ordered binary tree: every launch in a stream of its own.
extern "C" __global__ void own_stream_tree(int* cells, int node, int nodes) {
  if (threadIdx.x == 0) cells[node] = node * node + 1;
  if (threadIdx.x > 1) return;
  const int next = 2 * node + 1 + static_cast<int>(threadIdx.x);
  if (next >= nodes) return;
  cudaStream_t stream = created();
  if (stream == nullptr) cells[node] = -1;
  own_stream_tree<<<1, 32, 0, stream>>>(cells, next, nodes);
  cudaStreamDestroy(stream);
}
// Both halves in streams that are there before either is launched.
extern "C" __global__ void halves_in_streams(int* cells, int begin, int end) {
  if (end - begin < 2) {
    cells[begin] = 3 * begin + 1;
    return;
  }
  const int middle = (begin + end) / 2;
  cudaStream_t left = created(), right = created();
  halves_in_streams<<<1, 1, 0, left>>>(cells, begin, middle);
  halves_in_streams<<<1, 1, 0, right>>>(cells, middle, end);
  cudaStreamDestroy(left);
  cudaStreamDestroy(right);
}
extern "C" __global__ void halves_in_array(int* cells, int begin, int end) {
  if (end - begin < 2) {
    cells[begin] = 3 * begin + 2;
    return;
  }
  const int middle = (begin + end) / 2;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  halves_in_array<<<1, 1, 0, streams[0]>>>(cells, begin, middle);
  halves_in_array<<<1, 1, 0, streams[1]>>>(cells, middle, end);
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}
// The second launch follows all that the first one leads to; the one between them does not.
extern "C" __global__ void two_after_another(int* cells, int begin, int end, int factor) {
  if (end - begin < 2) {
    cells[begin] = cells[begin] * factor + 1;
    return;
  }
  const int middle = (begin + end) / 2;
  cudaStream_t left = created(), right = created();
  two_after_another<<<1, 1, 0, left>>>(cells, begin, middle, factor);
  two_after_another<<<1, 1, 0, right>>>(cells, middle, end, factor);
  if (end - begin > 2) two_after_another<<<1, 1, 0, left>>>(cells, begin, middle, factor + 1);
  cudaStreamDestroy(left);
  cudaStreamDestroy(right);
}
__device__ __noinline__ int look(const int* cells, int& next) {
  next = cells[0] + 1;
  return cells[1];
}
// Other variables of the thread beside the stream, whose addresses are passed.
extern "C" __global__ void passing_parent(int* cells, const int* inputs) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int next = 0;
  const int value = look(inputs + 2 * t, next);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set<<<1, 32, 0, stream>>>(cells + t, 100 * next + value);
  cudaStreamDestroy(stream);
}
__global__ void set_twice(int* cell, int* copy, int value) {
  if (threadIdx.x == 0) *cell = value;
  if (threadIdx.x == 1) *copy = value + 1;
}
extern "C" __global__ void allocating_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int* memory = nullptr;
  cudaMalloc(&memory, 64);
  if (memory == nullptr) return;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set_twice<<<1, 32, 0, stream>>>(cells + t, memory, t + 10);
  cudaStreamDestroy(stream);
}

#else

namespace {

template <class Expected>
std::vector<int> numbers(int n, const Expected& expected_of) {
  std::vector<int> out;
  for (int t = 0; t < n; ++t) out.push_back(expected_of(t));
  return out;
}

template <class Expected>
void cells_of(klap::differential::Builder& c, const char* parent, int n, const Expected& expected_of) {
  const auto cells = c.buffer("cells", std::vector<int>(n), numbers(n, expected_of));
  c.launch(parent, {2, 1, 1}, {64, 1, 1}, c.address(cells));
}

}  // namespace

KLAP_CASE(own_stream, "a launch into a thread's own stream is lost") {
  c.contract("A stream may be destroyed while grids wait in it: they run all the same, in their order.",
             "one launch by each thread of two blocks");
  cells_of(c, "one_launch_parent", kThreads, [](int t) { return t + 3; });
  c.rewritten("one_launch_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_stream_of_another_lane, "a launch into a stream that another lane has just created is lost") {
  const auto sum = c.buffer("sum", std::vector<int>{0}, std::vector<int>{40});
  for (int i = 0; i < 5; ++i) c.launch("handed_on_parent", {8, 1, 1}, {32, 1, 1}, c.address(sum));
  c.left("handed_on_parent", "runtime-call");
  c.executed();
  c.by_warp("stream-unsupported");
}

KLAP_CASE(own_stream_answers, "creating or destroying a stream returns something else") {
  c.contract(
      "A thread may create streams and launch into them; calls that create and destroy them return no error.",
      "each code that the calls return");
  const auto cells = c.buffer("cells", std::vector<int>(kThreads),
                              numbers(kThreads, [](int t) { return t % 3 == 0 ? 0 : t + 4; }));
  const auto answers = c.buffer("answers", std::vector<int>(kThreads),
                                numbers(kThreads, [](int t) { return 10000 + (t % 3 == 0 ? 1000 : 0); }));
  c.launch("asking_parent", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(answers));
  c.rewritten("asking_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_streams_two, "a launch into one of a thread's two streams is lost") {
  c.contract("A stream may be destroyed while grids wait in it: they run all the same, in their order.",
             "two streams of a thread, one after the other");
  cells_of(c, "two_streams_parent", 2 * kThreads, [](int i) {
    return i % 2 == 0 ? i / 2 + 5 : i / 2 % 3 == 0 ? 0 : i / 2 + 6;
  });
  c.rewritten("two_streams_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_streams_array, "two launches into one of several streams are not run in order") {
  c.contract("A program may have many streams at the same time, each with an order of its own.",
             "an array of two streams of each thread");
  cells_of(c, "array_parent", kThreads, [](int t) { return 2 * (t + 7); });
  c.rewritten("array_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_stream_shared, "launches of a block into one stream overlap") {
  c.contract(
      "A created stream serves all threads of its block: what they launch into it runs one after another.",
      "64 threads of each of two blocks");
  const auto sums = c.buffer("sums", std::vector<int>(2), std::vector<int>(2, 63 * 64 / 2));
  c.launch("shared_stream_parent", {2, 1, 1}, {64, 1, 1}, c.address(sums));
  c.left("shared_stream_parent", "runtime-call");
  c.executed();
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_streams_of_some, "a launch into a stream that only some threads created is lost") {
  c.contract(
      "Lanes may launch at one place into different streams. Their grid is complete when all of these "
      "launches are.",
      "the NULL stream by every second thread");
  cells_of(c, "some_streams_parent", kThreads, [](int t) { return t + 8; });
  c.left("some_streams_parent", "runtime-call");
  c.executed();
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_streams_event, "an event does not order two streams") {
  c.contract(
      "A stream that waits for an event goes on behind all that the event's stream held when it was "
      "recorded, with all that these grids launched.",
      "two streams of each thread");
  cells_of(c, "event_parent", kThreads, [](int t) { return 2 * (t + 9); });
  c.left("event_parent", "runtime-call");
  c.executed();
  c.by_warp("stream-unsupported");
}
KLAP_CASE(recursion_in_own_streams, "a launch into a stream that a child created is lost") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "a tree, each launch in a stream of its own");
  constexpr int kNodes = 120;
  const auto cells =
      c.buffer("cells", std::vector<int>(kNodes), numbers(kNodes, [](int node) { return node * node + 1; }));
  c.launch("own_stream_tree", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, kNodes);
  c.left_on_device("own_stream_tree", "child-launches");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(recursion_in_two_own_streams, "a launch into one of two streams that a child created is lost") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "halves in two streams");
  constexpr int kCells = 61;
  const auto cells =
      c.buffer("cells", std::vector<int>(kCells), numbers(kCells, [](int i) { return 3 * i + 1; }));
  c.launch("halves_in_streams", {1, 1, 1}, {1, 1, 1}, c.address(cells), 0, kCells);
  c.left_on_device("halves_in_streams", "child-launches");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(recursion_in_array_of_streams, "a launch into one of an array of created streams is lost") {
  c.contract(
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.",
      "halves in an array of two streams");
  constexpr int kCells = 45;
  const auto cells =
      c.buffer("cells", std::vector<int>(kCells), numbers(kCells, [](int i) { return 3 * i + 2; }));
  c.launch("halves_in_array", {1, 1, 1}, {1, 1, 1}, c.address(cells), 0, kCells);
  c.left_on_device("halves_in_array", "child-launches");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(recursion_twice_in_own_stream, "two launches of a child into one created stream overlap") {
  c.contract("Each of a thread's streams keeps its order, whatever goes into the others.",
             "recursion, two launches into one of two streams");
  constexpr int kCells = 16;
  std::vector<int> after(kCells, 1);
  const auto run = [&](const auto& self, int begin, int end, int factor) -> void {
    if (end - begin < 2) {
      after[begin] = after[begin] * factor + 1;
      return;
    }
    const int middle = (begin + end) / 2;
    self(self, begin, middle, factor);
    self(self, middle, end, factor);
    if (end - begin > 2) self(self, begin, middle, factor + 1);
  };
  run(run, 0, kCells, 2);
  const auto cells = c.buffer("cells", std::vector<int>(kCells, 1), after);
  c.launch("two_after_another", {1, 1, 1}, {1, 1, 1}, c.address(cells), 0, kCells, 2);
  c.left("two_after_another", "several-sites");
  c.executed();
  c.otherwise_on_device("child-launches");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_stream_beside_reference, "a launch is lost whose thread passes another variable's address") {
  std::vector<int> inputs;
  for (int t = 0; t < kThreads; ++t) inputs.insert(inputs.end(), {t, t % 50});
  const auto in = c.buffer("inputs", inputs, inputs);
  const auto cells = c.buffer("cells", std::vector<int>(kThreads),
                              numbers(kThreads, [](int t) { return 100 * (t + 1) + t % 50; }));
  c.launch("passing_parent", {2, 1, 1}, {64, 1, 1}, c.address(cells), c.address(in));
  c.rewritten("passing_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(own_stream_beside_allocation, "a launch is lost whose thread also allocates memory") {
  cells_of(c, "allocating_parent", kThreads, [](int t) { return t + 10; });
  c.rewritten("allocating_parent");
  c.by_warp("stream-unsupported");
}

#endif
