// Child launches aggregated by hand, as the KLAP paper does it for a whole grid, for `--variant klap`.
//
// Every parent thread that would launch a child records the child's arguments instead. One addition of 64
// bits reserves the record and the child's blocks together, so the first blocks of all records are in
// ascending order. Once the parent is done, the host reads how many blocks there are and launches one grid
// with all of them. Each of its blocks looks for its record, and then does what the child's block would have
// done.
#pragma once

#include <cuda_runtime.h>

#include "cuda_check.h"

namespace bench {

// A parent records its launches here.
template <class Arguments>
struct Recorder {
  unsigned long long* total;  // children in the upper half, their blocks in the lower one
  unsigned* first_block;      // of each child in the grid of all
  Arguments* arguments;       // of each child

  __device__ __forceinline__ void record(unsigned blocks, const Arguments& of_child) const {
    const unsigned long long before = atomicAdd(total, 1ULL << 32 | blocks);
    const auto child = static_cast<unsigned>(before >> 32);
    first_block[child] = static_cast<unsigned>(before);
    arguments[child] = of_child;
  }
};

// The host reads these counts after the parent.
struct Recorded {
  unsigned children;
  unsigned blocks;
};

// Block number `block` belongs to the last child that begins no later.
__device__ __forceinline__ unsigned child_of_block(const unsigned* first_block, unsigned children,
                                                   unsigned block) {
  unsigned child = 0;
  for (unsigned end = children; end - child > 1;) {
    const unsigned middle = (child + end) / 2;
    if (first_block[middle] <= block) {
      child = middle;
    } else {
      end = middle;
    }
  }
  return child;
}

// The memory for the launches of one parent at a time. A run may have several parents, each with its own
// total.
template <class Arguments>
class Records {
 public:
  Records(size_t most_children, size_t most_parents)
      : totals_(most_parents), first_block_(most_children), arguments_(most_children) {
    check(cudaMallocHost(&on_host_, sizeof(*on_host_)), "cudaMallocHost");
  }
  ~Records() { cudaFreeHost(on_host_); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  void reset() { totals_.fill_bytes(0); }
  [[nodiscard]] Recorder<Arguments> of_parent(size_t parent) const {
    return {totals_.data() + parent, first_block_.data(), arguments_.data()};
  }
  // Waits for the parent.
  [[nodiscard]] Recorded read(size_t parent) const {
    check(cudaMemcpy(on_host_, totals_.data() + parent, sizeof(*on_host_), cudaMemcpyDeviceToHost),
          "reading what a parent recorded");
    return {static_cast<unsigned>(*on_host_ >> 32), static_cast<unsigned>(*on_host_)};
  }

 private:
  DeviceArray<unsigned long long> totals_;
  DeviceArray<unsigned> first_block_;
  DeviceArray<Arguments> arguments_;
  unsigned long long* on_host_ = nullptr;
};

}  // namespace bench
