// The memory of promoted chains in one stream.
//
// A launch leaves a ring as the next launch needs it: its own ring or, if they are double-buffered, the other
// one. The stream runs the launches one after another. The links' numbers tell entries of earlier launches
// apart. That works only among launches that count links and mark them in one way. So each kernel has a pair
// of rings of its own (a few hundred KB). Kernels go by name: a module that is loaded again finds the rings
// of the time before.
#pragma once

#include <cuda.h>

#include <map>
#include <vector>

#include "jit/data/variant.h"
#include "runtime/launch_reasons.h"
#include "runtime/queues/queue_memory.h"

namespace klap::runtime {

class ChainRings {
 public:
  // The number by which the rings of a promoted variant are found. It is equal for variants that may share
  // them.
  static uint64_t number_of(const jit::Variant& variant);

  // Provides rings for chain `number`. Null on success, otherwise the reason why this launch must run the
  // original.
  MaybeReason make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report, uint64_t number,
                        uint32_t slot_bytes, uint64_t pool_bytes);
  // The head of the ring that is next.
  [[nodiscard]] CUdeviceptr address(uint64_t number) const;
  // Called when a launch is enqueued that makes the other ring ready.
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
