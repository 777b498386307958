// Chains whose condition holds again behind their end, because the value that it compares wraps around.
// Nobody runs those links natively; who counts links without running them must not either.
#include "case.h"

#ifdef __CUDACC__

extern "C" __global__ void chain_to_largest(const int* weights, int* sums, int tile, int tiles) {
  const int t = static_cast<int>(threadIdx.x);
  const int weight = weights[t];
  if (t == 0 && tile + 1 < tiles) chain_to_largest<<<1, 32>>>(weights, sums, tile + 1, tiles);
  atomicAdd(sums + t, weight);
}

extern "C" __global__ void chain_to_smallest(const int* weights, int* sums, unsigned tile, unsigned least) {
  const int t = static_cast<int>(threadIdx.x);
  const int weight = weights[t];
  if (t == 0 && tile > least) chain_to_smallest<<<1, 32>>>(weights, sums, tile - 1, least);
  atomicAdd(sums + t, weight);
}

#else

#include <limits>

namespace {

template <typename Tile>
void wrap(klap::differential::Builder& c, const char* kernel, int links, Tile from, Tile to) {
  std::vector<int> weights, sums;
  for (int t = 0; t < 32; ++t) {
    weights.push_back(t + 1);
    sums.push_back(links * (t + 1));
  }
  const auto in = c.buffer("weights", weights, weights);
  const auto out = c.buffer("sums", std::vector<int>(32, 0), sums);
  c.launch(kernel, {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), from, to);
  c.rewritten(kernel);
}

}  // namespace

KLAP_CASE(chain_to_largest_number, "links are run behind the end, where a sum has wrapped around") {
  constexpr int kLargest = std::numeric_limits<int>::max();
  wrap(c, "chain_to_largest", 3, kLargest - 3, kLargest);
}

KLAP_CASE(chain_to_smallest_number, "links are run behind the end, where a difference has wrapped around") {
  wrap(c, "chain_to_smallest", 3, 2U, 0U);
}

#endif
