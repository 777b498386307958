// The memory of promoted chains in one stream.
//
// A launch leaves a ring as the next one wants it, its own or, where they take turns, the other one; and the
// stream runs them one after another. What a ring holds of earlier launches is told apart by the links'
// numbers, which only holds among launches that count them and mark them in the same way; so each kernel has
// a pair of its own (a few hundred KB). Kernels go by name: a module that is loaded again finds the rings of
// the time before.
#pragma once

#include <cuda.h>

#include <map>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/launch/launch_reasons.h"
#include "runtime/queues/block_pool.h"

namespace klap::runtime {

struct CudaContext;

class ChainRings {
 public:
  // By which the rings of a promoted variant are found: the same for variants that may use the same ones.
  static uint64_t number_of(const jit::Variant& variant);

  // Sees to it that there are rings for chain `number`. Null on success, otherwise the reason why this launch
  // must run the original.
  MaybeReason make_room(CudaContext& context, CUstream stream, CUdeviceptr report, uint64_t number,
                        uint32_t slot_bytes, uint64_t pool_bytes);
  // The head of the one that is next.
  [[nodiscard]] CUdeviceptr address(uint64_t number) const;
  // A launch is enqueued that makes the other one ready.
  void take_turns(uint64_t number);
  // The memory of all rings, which are gone.
  std::vector<Block> take();

 private:
  struct Pair {
    Block block;
    bool second_is_next = false;
  };

  std::map<uint64_t, Pair> rings_;
};

}  // namespace klap::runtime
