// What the programs that select elements (sc, pt, unq) share: options, ranks of the selected elements within
// a tile, and the check.
#pragma once

#include <string>
#include <vector>

#include "compare.h"
#include "tile_chain.cuh"

namespace bench {

// Below, `chosen` has bit i set if the thread's element i is selected.

// Reads the thread's elements and selects those below `limit`.
template <int kPerThread>
__device__ __forceinline__ unsigned read_and_choose(const int* data, int elements, int limit, int tile,
                                                    int (&value)[kPerThread]) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = element_index<kPerThread>(tile, i);
    value[i] = index < elements ? data[index] : limit;
  }
  unsigned chosen = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) chosen |= (value[i] < limit ? 1U : 0U) << i;
  return chosen;
}

// How many elements the warps before this one and the whole block select. Contains a barrier.
__device__ __forceinline__ WarpShares<Sum> count_chosen(unsigned chosen) {
  return share_in_block<Sum>(reduce_warp<Sum>(__popc(chosen)));
}

// Calls body(i, rank) for each of the thread's elements, all threads of a warp together; rank is `first` plus
// the number of the warp's selected elements before this one.
template <int kPerThread, class Body>
__device__ __forceinline__ void with_ranks(unsigned chosen, int first, const Body& body) {
  const unsigned lower_lanes = (1U << lane_index()) - 1;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const unsigned row = __ballot_sync(kAllLanes, ((chosen >> i) & 1U) != 0);
    body(i, first + __popc(row & lower_lanes));
    first += __popc(row);
  }
}

struct SelectionOptions {
  long long elements = kMediumElements;
  long long keep = 50;

  void add_to(Options& options) {
    options.integer("elements", elements, 1, "length of the sequence");
    options.integer("keep", keep, 0, "elements selected, in percent");
  }
  void require_valid(const char* program) const {
    if (elements > kMostElements) refuse_option(program, "too many elements");
    if (keep > 100) refuse_option(program, "--keep is at most 100 percent");
  }
  // Random values below this are selected.
  [[nodiscard]] int limit() const { return static_cast<int>(keep * kValueRange / 100); }
};

// Compares the number of selected elements and those at the front of `found`; empty when they are right.
inline std::string selection_mistake(const std::vector<int>& expected, const DeviceArray<int>& size,
                                     const DeviceArray<int>& found) {
  const int found_size = size.to_host()[0];
  if (found_size != static_cast<int>(expected.size())) {
    return std::to_string(found_size) + " elements selected instead of " + std::to_string(expected.size());
  }
  std::vector<int> values = found.to_host();
  values.resize(expected.size());
  return differences("elements", expected, values);
}

}  // namespace bench
