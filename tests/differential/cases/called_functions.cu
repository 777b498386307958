// Launches in called functions, and children whose called functions ask where they stand: none of them is
// inlined by the compiler.
#include "case.h"

constexpr int kThreads = 70;  // of a parent's grid of three blocks of 32
constexpr int kCells = 64;    // of each thread
constexpr int kRounds = 4;
constexpr int kBlock = 32;

// Cells that a thread's launch fills: also none, and more than it has room for, which is refused by the
// function that launches.
KLAP_SHARED static constexpr int wanted_by(int thread) { return thread * 13 % 80; }

// Arguments of every kind that a call can pass.
struct Shape {
  int* out;
  int count;
  short step;
  unsigned char flag;
  float scale;
  double weights[3];
};

#ifdef __CUDACC__

#define KLAP_CALLED __device__ __noinline__

__device__ int own_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// ---- launches ----

__global__ void fill(int* out, int count, int value) {
  const int i = own_index();
  if (i < count) atomicAdd(out + i, value + i);
}
KLAP_CALLED int start(Shape shape, int value) {
  if (shape.count <= 0) return 1;
  if (shape.count > kCells) return shape.step;
  fill<<<(shape.count + kBlock - 1) / kBlock, kBlock>>>(shape.out, shape.count, value);
  return 0;
}
KLAP_CALLED Shape shape_of(int* out, int thread) {
  Shape shape{};
  shape.out = out + thread * kCells;
  shape.count = wanted_by(thread);
  shape.step = static_cast<short>(-thread);
  return shape;
}
extern "C" __global__ void start_parent(int* out, int* answers) {
  const int t = own_index();
  if (t < kThreads) answers[t] = start(shape_of(out, t), t);
}
extern "C" __global__ void start_again_parent(int* out, int* answers) {
  const int t = own_index();
  if (t >= kThreads) return;
  Shape shape = shape_of(out, t);
  shape.count = shape.count / 2;
  answers[t] = start(shape, -t);
}

__global__ void add(int* out, int value) { atomicAdd(out + own_index(), value); }
KLAP_CALLED void start_one(int* out, int value) { add<<<1, kBlock>>>(out, value); }
KLAP_CALLED void start_two(int* out, int thread) {
  if (thread % 3 == 0) return;
  start_one(out, thread);
  start_one(out + kBlock, 2 * thread);
}
extern "C" __global__ void levels_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) start_two(out + t * kCells, t);
}
extern "C" __global__ void twice_parent(int* out) {
  const int t = own_index();
  if (t >= kThreads) return;
  start_one(out + t * kCells, t);
  if (t % 2 == 0) start_one(out + t * kCells + kBlock, 3 * t);
}
extern "C" __global__ void rounds_parent(int* out) {
  const int t = own_index();
  if (t >= kThreads) return;
#pragma unroll 1
  for (int i = 0; i < t % (kRounds + 1); ++i) start_one(out + t * kCells, i + 1);
}
KLAP_CALLED void start_halves(int* out, int value) {
  if (value == 0) return;
  start_halves(out, value / 2);
  add<<<1, kBlock>>>(out, value);
}
extern "C" __global__ void halves_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) start_halves(out + t * kCells, t);
}

// ---- places ----

KLAP_CALLED int place() {
  return static_cast<int>(((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x +
                          threadIdx.x);
}
KLAP_CALLED long long mixed(Shape shape, int at, bool negative, char small, float2 pair) {
  if (at % 7 == 6) return shape.step;
  const long long value = static_cast<long long>(shape.weights[at % 3]) + shape.flag + small +
                          static_cast<long long>(pair.x * shape.scale) + static_cast<long long>(pair.y) +
                          (place() - at);
  return negative ? -value : value;
}
KLAP_CALLED float2 pair_at(int factor) {
  return make_float2(static_cast<float>(threadIdx.x), static_cast<float>(factor * threadIdx.y));
}
KLAP_CALLED void write_mixed(Shape shape, int thread) {
  const int at = place();
  if (at >= shape.count) return;
  shape.out[at] =
      static_cast<int>(mixed(shape, at, thread % 2 == 0, static_cast<char>(thread - 35), pair_at(thread)));
}
__global__ void mix(int* out, int count, int thread) {
  const double weight = thread;
  write_mixed({out,
               count,
               static_cast<short>(-thread),
               static_cast<unsigned char>(3 * thread),
               2.0F,
               {weight, weight + 1, weight + 2}},
              thread);
}
extern "C" __global__ void mix_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) mix<<<dim3(2, 2), dim3(8, 2)>>>(out + t * kCells, kCells - t % 5, t);
}

__shared__ int shared_cells[kBlock];
KLAP_CALLED int turned(int value) {
  shared_cells[threadIdx.x] = value;
  __syncthreads();
  const int other = shared_cells[kBlock - 1 - threadIdx.x];
  __syncthreads();
  return other;
}
__global__ void turn(int* out, int value) {
  const int i = own_index();
  out[i] = turned(turned(value * i) + i);
}
extern "C" __global__ void turn_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) turn<<<2, kBlock>>>(out + t * kCells, t);
}

KLAP_CALLED int digits_of_place(int value) {
  return value == 0 ? static_cast<int>(threadIdx.x) : value % 10 + digits_of_place(value / 10);
}
__global__ void digits(int* out, int value) { out[threadIdx.x] = digits_of_place(value); }
extern "C" __global__ void digits_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) digits<<<1, kBlock>>>(out + t * kCells, t * 37);
}

KLAP_CALLED int first_place(int value) { return value + static_cast<int>(threadIdx.x); }
KLAP_CALLED int second_place(int value) { return value - static_cast<int>(threadIdx.x); }
__device__ int (*const places[2])(int) = {first_place, second_place};
__global__ void choose(int* out, int value) { out[threadIdx.x] = places[value % 2](value); }
extern "C" __global__ void choose_parent(int* out) {
  const int t = own_index();
  if (t < kThreads) choose<<<1, kBlock>>>(out + t * kCells, t);
}

#else

namespace {

using klap::differential::Builder;

// What each of a thread's cells must hold at the end; they begin with 0.
template <class Expected>
std::vector<int> cells(const Expected& expected) {
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t)
    for (int i = 0; i < kCells; ++i) out.push_back(expected(t, i));
  return out;
}

template <class Expected>
void of_parent(Builder& c, const std::string& parent, const Expected& expected) {
  const auto after = cells(expected);
  const auto out = c.buffer("out", std::vector<int>(after.size()), after);
  c.launch(parent, {3, 1, 1}, {32, 1, 1}, c.address(out));
}

int filled(int wanted, int value, int cell) { return wanted <= kCells && cell < wanted ? value + cell : 0; }
int answer(int wanted, int thread) { return wanted <= 0 ? 1 : wanted > kCells ? -thread : 0; }

int mixed_at(int thread, int at) {
  if (at >= kCells - thread % 5) return 0;
  if (at % 7 == 6) return static_cast<short>(-thread);
  const int x = at % 8, y = at / 8 % 2;
  const int value =
      thread + at % 3 + static_cast<unsigned char>(3 * thread) + (thread - 35) + 2 * x + thread * y;
  return thread % 2 == 0 ? -value : value;
}

int turned_at(int thread, int cell) {
  const int block = cell / kBlock * kBlock, other = block + kBlock - 1 - cell % kBlock;
  return thread * cell + other;
}

}  // namespace

KLAP_CASE(function_launches, "a called function's launch passes other values, or its answer is another") {
  std::vector<int> answers;
  for (int t = 0; t < kThreads; ++t) answers.push_back(answer(wanted_by(t), t));
  const auto after = cells([](int t, int i) { return filled(wanted_by(t), t, i); });
  const auto out = c.buffer("out", std::vector<int>(after.size()), after);
  const auto a = c.buffer("answers", std::vector<int>(kThreads, 7), answers);
  c.launch("start_parent", {3, 1, 1}, {32, 1, 1}, c.address(out), c.address(a));
  c.rewritten("start_parent");
}

KLAP_CASE(function_of_two_parents, "two kernels that call a launching function get each other's copy") {
  std::vector<int> answers;
  for (int t = 0; t < kThreads; ++t) answers.push_back(answer(wanted_by(t) / 2, t));
  const auto after =
      cells([](int t, int i) { return filled(wanted_by(t), t, i) + filled(wanted_by(t) / 2, -t, i); });
  const auto out = c.buffer("out", std::vector<int>(after.size()), after);
  const auto a = c.buffer("answers", std::vector<int>(kThreads, 7), answers);
  c.launch("start_parent", {3, 1, 1}, {32, 1, 1}, c.address(out), c.address(a));
  c.launch("start_again_parent", {3, 1, 1}, {32, 1, 1}, c.address(out), c.address(a));
  c.rewritten("start_parent");
  c.rewritten("start_again_parent");
}

KLAP_CASE(function_in_function_launches, "a launch two calls deep is lost, or belongs to another thread") {
  of_parent(c, "levels_parent", [](int t, int i) { return t % 3 == 0 ? 0 : i < kBlock ? t : 2 * t; });
  c.rewritten("levels_parent");
}

KLAP_CASE(function_launches_twice, "two calls of a launching function share what they record") {
  of_parent(c, "twice_parent", [](int t, int i) { return i < kBlock ? t : t % 2 == 0 ? 3 * t : 0; });
  c.rewritten("twice_parent");
}

KLAP_CASE(function_launches_in_loop, "a called function's launch runs once where its call runs often") {
  of_parent(c, "rounds_parent", [](int t, int i) {
    const int rounds = t % (kRounds + 1);
    return i < kBlock ? rounds * (rounds + 1) / 2 : 0;
  });
  c.rewritten("rounds_parent");
  c.by_warp("rewritten");
}

KLAP_CASE(function_launches_and_calls_itself, "a recursive function's launches are those of one call") {
  of_parent(c, "halves_parent", [](int t, int i) {
    int sum = 0;
    for (int value = t; value != 0; value /= 2) sum += value;
    return i < kBlock ? sum : 0;
  });
  c.left("_Z12start_halvesPii", "launch-in-function");
}

KLAP_CASE(child_function_reads_place,
          "a child's called function sees the consumer's place, or other arguments") {
  of_parent(c, "mix_parent", mixed_at);
  c.rewritten("mix_parent");
}

KLAP_CASE(child_function_meets,
          "a barrier in a child's called function lets threads of another child through") {
  of_parent(c, "turn_parent", turned_at);
  c.rewritten("turn_parent");
}

KLAP_CASE(child_recursive_function_reads_place, "a recursive function sees the consumer's place") {
  of_parent(c, "digits_parent", [](int t, int i) {
    if (i >= kBlock) return 0;
    int sum = i;
    for (int value = t * 37; value != 0; value /= 10) sum += value % 10;
    return sum;
  });
  c.left("digits_parent", "child-calls-unknown");
}

KLAP_CASE(child_pointed_function_reads_place, "a function called by its address sees the consumer's place") {
  of_parent(c, "choose_parent", [](int t, int i) { return i >= kBlock ? 0 : t % 2 == 0 ? t + i : t - i; });
  c.left("choose_parent", "child-calls-unknown");
}

#endif
