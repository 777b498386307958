// Chains whose links carry values on or move data: positions, the highest value so far, and one value for
// each operation by which the values of many links are combined.
#include "chain_links.h"

constexpr unsigned kMultiplier = 1664525;
KLAP_SHARED static inline unsigned bits_of(int value) { return static_cast<unsigned>(value) * kMultiplier; }
KLAP_SHARED static inline long long wide_of(int value) {
  return (static_cast<long long>(value) << 30) - value;
}
KLAP_SHARED static inline unsigned long long mixed(long long sum, unsigned long long lowest, int least,
                                                   int most, unsigned all, unsigned any, unsigned odd) {
  unsigned long long mix = static_cast<unsigned long long>(sum) * 3 + lowest;
  mix = mix * 5 + static_cast<unsigned>(least);
  mix = mix * 7 + static_cast<unsigned>(most);
  return ((mix * 11 + all) * 13 + any) * 17 + odd;
}

#ifdef __CUDACC__

// Moves each element to a later place, from the last tile to the first: nothing is passed on but the order.
extern "C" __global__ void chain_shift(int* data, int by, int tile) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = data[tile * kWidth + t];
  __syncthreads();
  if (t == 0 && tile > 0) chain_shift<<<1, kWidth>>>(data, by, tile - 1);
  data[tile * kWidth + t + by] = value;
}

// The highest value so far.
extern "C" __global__ void chain_highest(const float* values, float* highest, int tile, int tiles,
                                         float before) {
  __shared__ float of_tile;
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) {
    of_tile = values[tile * kWidth];
    for (int i = 1; i < kWidth; ++i) of_tile = fmaxf(of_tile, values[tile * kWidth + i]);
  }
  __syncthreads();
  float own = of_tile;
  here(own);
  const float highest_so_far = fmaxf(before, own);
  if (t == 0 && tile + 1 < tiles)
    chain_highest<<<1, kWidth>>>(values, highest, tile + 1, tiles, highest_so_far);
  highest[tile * kWidth + t] = highest_so_far + static_cast<float>(t);
}

// One value for each operation, of both widths.
extern "C" __global__ void chain_all_operations(const int* values, unsigned long long* out, int tile,
                                                int tiles, long long sum, unsigned long long lowest,
                                                int least, int most, unsigned all, unsigned any,
                                                unsigned odd) {
  const int t = static_cast<int>(threadIdx.x);
  int value = __shfl_sync(~0U, values[tile * 32 + t], 5) + 1;
  unsigned bits = bits_of(value), more = bits | 0xff00ffU, less = bits & 0x10101U;
  long long wide = wide_of(value);
  unsigned long long low = static_cast<unsigned long long>(bits) << 16;
  here(value), here(bits), here(more), here(less), here(wide), here(low);
  sum += wide;
  lowest = min(lowest, low);
  least = min(least, value);
  most = max(most, value);
  all &= more;
  any |= less;
  odd ^= bits;
  if (t == 0 && tile + 1 < tiles) {
    chain_all_operations<<<1, 32>>>(values, out, tile + 1, tiles, sum, lowest, least, most, all, any, odd);
  }
  out[tile * 32 + t] = mixed(sum, lowest, least, most, all, any, odd) + static_cast<unsigned>(t);
}

#else

#include <algorithm>

KLAP_CASE(chain_shifted, "a tile is overwritten before it was read") {
  const int tiles = 30, by = 17;
  std::vector<int> before = chain_values(tiles * kWidth + by), after = before;
  for (int i = 0; i < tiles * kWidth; ++i)
    after[static_cast<size_t>(i + by)] = before[static_cast<size_t>(i)];
  const auto data = c.buffer("data", before, after);
  c.launch("chain_shift", {1, 1, 1}, {kWidth, 1, 1}, c.address(data), by, tiles - 1);
  c.rewritten("chain_shift");
}

KLAP_CASE(chain_maximum, "a link does not know the highest value before it") {
  const int tiles = 40;
  std::vector<float> values, after;
  for (int i = 0; i < tiles * kWidth; ++i) values.push_back(static_cast<float>(chain_value(i) + i) - 300.5F);
  float highest = -1000.0F;
  for (int tile = 0; tile < tiles; ++tile) {
    const auto* const of_tile = &values[static_cast<size_t>(tile * kWidth)];
    highest = std::max(highest, *std::max_element(of_tile, of_tile + kWidth));
    for (int t = 0; t < kWidth; ++t) after.push_back(highest + static_cast<float>(t));
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("highest", std::vector<float>(values.size(), 0), after);
  c.launch("chain_highest", {1, 1, 1}, {kWidth, 1, 1}, c.address(in), c.address(out), 0, tiles, -1000.0F);
  c.rewritten("chain_highest");
}

KLAP_CASE(chain_operations, "one of the operations that combine many links is another one") {
  const int tiles = 70;
  const std::vector<int> values = chain_values(tiles * 32);
  std::vector<unsigned long long> after;
  long long sum = 5;
  unsigned long long lowest = ~0ULL;
  int least = 500, most = 500;
  unsigned all = ~0U, any = 0, odd = 1;
  for (int tile = 0; tile < tiles; ++tile) {
    const int value = values[static_cast<size_t>(tile * 32 + 5)] + 1;
    const unsigned bits = bits_of(value);
    sum += wide_of(value);
    lowest = std::min(lowest, static_cast<unsigned long long>(bits) << 16);
    least = std::min(least, value);
    most = std::max(most, value);
    all &= bits | 0xff00ffU;
    any |= bits & 0x10101U;
    odd ^= bits;
    for (unsigned t = 0; t < 32; ++t) after.push_back(mixed(sum, lowest, least, most, all, any, odd) + t);
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<unsigned long long>(after.size(), 0), after);
  c.launch("chain_all_operations", {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), 0, tiles, 5LL, ~0ULL,
           500, 500, ~0U, 0U, 1U);
  c.rewritten("chain_all_operations");
}

#endif
