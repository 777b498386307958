// Children that reach their array by a number that the host passes. The pointer for itself lies in another
// allocation: it counts from below the array, or is the address of something else. So the array that one
// pointer means is that of the other, too (src/analysis/order/host_distance.h).
#include "case.h"

namespace klap::differential::distances {

constexpr int kWidth = 32, kChildren = 24, kWords = kWidth * (kChildren + 1);
constexpr int kLow = 200;  // words: enough to lie in the allocation before

#ifdef __CUDACC__

// Changes its row for a while, and reads the next one.
__device__ void work_at(volatile int* row, const volatile int* next, int* out) {
  const int is = row[threadIdx.x];
  row[threadIdx.x] = -1;
  int least = next[threadIdx.x];
  for (int i = 0; i < 10; ++i) least = min(least, next[threadIdx.x]);
  row[threadIdx.x] = is;
  out[threadIdx.x] = least;
}

__global__ void from_below(int* rows, const int* below, int* out, int i, int low) {
  work_at(rows + i * kWidth, below + low + (i + 1) * kWidth, out + i * kWidth);
}
extern "C" __global__ void parent_from_below(int* rows, const int* below, int* out, int low) {
  from_below<<<1, kWidth>>>(rows, below, out, threadIdx.x, low);
}

__global__ void by_address(int* rows, const int* same, int* out, int i) {
  work_at(rows + i * kWidth, same + (i + 1) * kWidth, out + i * kWidth);
}
extern "C" __global__ void parent_by_address(int* rows, unsigned long long base, int* out, int words) {
  by_address<<<1, kWidth>>>(rows, reinterpret_cast<const int*>(base + 4LL * words), out, threadIdx.x);
}

// A pointer in two words, and another one for want of it.
__device__ int spare[kWords];
__global__ void in_words(int* rows, unsigned high, unsigned low, int* out, int i) {
  const int* given = reinterpret_cast<const int*>(static_cast<unsigned long long>(high) << 32 | low);
  if (given == nullptr) given = spare;
  work_at(rows + i * kWidth, given + (i + 1) * kWidth, out + i * kWidth);
}
extern "C" __global__ void parent_in_words(int* rows, unsigned long long same, int* out, int) {
  in_words<<<1, kWidth>>>(rows, static_cast<unsigned>(same >> 32), static_cast<unsigned>(same), out,
                          threadIdx.x);
}

#else

namespace {
void by_distance(Builder& c, const char* parent, int words_below = kLow) {
  std::vector<int> rows(kWords), next(kWidth * kChildren);
  for (int i = 0; i < kWords; ++i) rows[i] = 7 * i + 1;
  for (int i = 0; i < kWidth * kChildren; ++i) next[i] = 7 * (i + kWidth) + 1;
  c.input("below", rows);
  const auto of_rows = c.buffer("rows", rows, rows);
  const auto of_out = c.buffer("out", std::vector<int>(kWidth * kChildren), next);
  const uint64_t low = 4 * static_cast<uint64_t>(words_below);
  c.launch(parent, {1, 1, 1}, {kChildren, 1, 1}, c.address(of_rows), c.address(of_rows, -low),
           c.address(of_out), kLow);
}
}  // namespace

KLAP_CASE(distance_from_below,
          "a pointer that counts from below its array, and the number that leads there") {
  by_distance(c, "parent_from_below");
  c.rewritten("parent_from_below");
  c.by_warp("as it is");
}
KLAP_CASE(distance_in_words, "a pointer that is put together of two words, or is another one") {
  by_distance(c, "parent_in_words", 0);
  c.rewritten("parent_in_words");
  c.by_warp("order-kept");
}
KLAP_CASE(distance_by_address, "an address that is computed with a number that the host passes") {
  by_distance(c, "parent_by_address");
  c.rewritten("parent_by_address");
  c.by_warp("as it is");
}
#endif
}  // namespace klap::differential::distances
