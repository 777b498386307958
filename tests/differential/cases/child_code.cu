// What a child may contain: arrays in local memory, called functions, early returns, uniform loads; and
// parents that return early.
#include "case.h"

constexpr unsigned kThreads = 80;
constexpr unsigned kItems = 40;

#ifdef __CUDACC__
#define KLAP_CALLED __noinline__ __device__
#else
#define KLAP_CALLED inline
#endif

KLAP_CALLED unsigned digits(unsigned x, unsigned base) {
  unsigned sum = 0;
  while (x != 0) {
    sum += x % base;
    x /= base;
  }
  return sum;
}
// A permutation of 0..15 by insertion into a local array, its element `wanted`.
KLAP_SHARED static inline unsigned shuffled(unsigned seed, unsigned wanted) {
  unsigned items[16];
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned at = (seed * (i + 3)) % (i + 1);
    items[i] = items[at];
    items[at] = i;
  }
  return items[wanted % 16];
}

#ifdef __CUDACC__

__global__ void call(unsigned* out, unsigned n, unsigned t) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = digits(t * 1000 + i, t % 7 + 2);
}
__global__ void shuffle(unsigned* out, unsigned n, unsigned t) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i % 5 == 4) {
    out[i] = 77;
    return;
  }
  out[i] = shuffled(t, i);
}

extern "C" __global__ void calls_parent(unsigned* out) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kThreads) return;
  call<<<2, 32>>>(out + t * kItems, kItems, t);
}
extern "C" __global__ void local_parent(unsigned* out, const int* wanted) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kThreads) return;
  if (wanted[t] == 0) return;
  if (wanted[t] < 0) {
    out[t * kItems] = 5;
    return;
  }
  shuffle<<<2, 32>>>(out + t * kItems, kItems, t);
}

// A load of one address by all threads of a warp.
__device__ unsigned same_for_all(const unsigned* from) {
  unsigned value = 0;
  asm volatile("ldu.global.u32 %0, [%1];" : "=r"(value) : "l"(from));
  return value;
}
__global__ void scale(unsigned* out, const unsigned* table, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = same_for_all(table) * i + same_for_all(table + 1);
}
extern "C" __global__ void uniform_parent(unsigned* out, const unsigned* table) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kThreads) return;
  scale<<<2, 32>>>(out + t * kItems, table + t, same_for_all(table + kThreads + 1));
}

#else

KLAP_CASE(device_functions, "a function that a child calls gets wrong arguments") {
  std::vector<unsigned> after;
  for (unsigned t = 0; t < kThreads; ++t)
    for (unsigned i = 0; i < kItems; ++i) after.push_back(digits(t * 1000 + i, t % 7 + 2));
  const auto out = c.buffer("out", std::vector<unsigned>(after.size()), after);
  c.launch("calls_parent", {3, 1, 1}, {32, 1, 1}, c.address(out));
  c.rewritten("calls_parent");
  c.children_never_meet();
}

KLAP_CASE(local_arrays, "children share local memory, or an early return ends more than its thread") {
  std::vector<unsigned> before(kThreads * kItems, 1), after = before;
  std::vector<int> wanted;
  for (unsigned t = 0; t < kThreads; ++t) {
    wanted.push_back(static_cast<int>(t * 5 % 7) - 1);
    if (wanted[t] == 0) continue;
    if (wanted[t] < 0) after[t * kItems] = 5;
    for (unsigned i = 0; i < kItems && wanted[t] > 0; ++i)
      after[t * kItems + i] = i % 5 == 4 ? 77 : shuffled(t, i);
  }
  const auto out = c.buffer("out", before, after), w = c.input("wanted", wanted);
  c.launch("local_parent", {3, 1, 1}, {32, 1, 1}, c.address(out), c.address(w));
  c.rewritten("local_parent");
  c.children_never_meet();
}

KLAP_CASE(uniform_loads, "a uniform load reads what another child reads") {
  std::vector<unsigned> table, after;
  for (unsigned t = 0; t <= kThreads; ++t) table.push_back(7 * t + 3);
  table.push_back(kItems);
  for (unsigned t = 0; t < kThreads; ++t)
    for (unsigned i = 0; i < kItems; ++i) after.push_back(table[t] * i + table[t + 1]);
  const auto out = c.buffer("out", std::vector<unsigned>(after.size()), after), of = c.input("table", table);
  c.launch("uniform_parent", {3, 1, 1}, {32, 1, 1}, c.address(out), c.address(of));
  c.rewritten("uniform_parent");
  c.children_never_meet();
}

#endif
