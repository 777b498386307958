#include "runtime/queues/chain_ring.h"

#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/driver.h"
#include "runtime/queues/chain_shape.h"

namespace klap::runtime {

namespace {

// Writes the rings, all zero but for the heads. This goes through the stream, behind the last user of the
// memory.
MaybeReason write_rings(CUdeviceptr address, const ChainShape& shape, CUdeviceptr report, CUstream stream) {
  const ChainShape::Heads heads = shape.heads(address, report);
  const Driver& cuda = *driver();
  const bool is_written = cuda.memset_d8_async(address + shape.ring_offset(false), 0, shape.rings_bytes(),
                                               stream) == CUDA_SUCCESS &&
                          cuda.memcpy_htod_async(address, &heads, sizeof heads, stream) == CUDA_SUCCESS;
  return is_written ? nullptr : &reasons::kQueueNotWritable;
}

}  // namespace

uint64_t ChainRings::number_of(const jit::Variant& variant) {
  using Key = std::tuple<std::string, std::string, uint32_t>;  // name, mode, bytes of a slot
  static std::mutex mutex;
  static auto* const numbers = new std::map<Key, uint64_t>;
  const std::lock_guard lock(mutex);
  const Key key{variant.parent_variant, variant.promoted->mode, variant.promoted->slot_bytes};
  return numbers->emplace(key, numbers->size()).first->second;
}

MaybeReason ChainRings::make_room(QueueMemory& memory, CUstream stream, CUdeviceptr report, uint64_t number,
                                  uint32_t slot_bytes, uint64_t pool_bytes) {
  const ChainShape shape{slot_bytes};
  // Earlier launches must not decide, as with queues.
  if (shape.bytes() > pool_bytes) return &reasons::kQueueOverPoolBytes;
  if (rings_.contains(number)) return nullptr;
  const RelaxedCapture relaxed;
  MaybeReason why = nullptr;
  const Block block = memory.take(shape.bytes(), why);
  if (!block.address) return why;
  if (const MaybeReason reason = write_rings(block.address, shape, report, stream)) {
    memory.give_back(block);
    return reason;
  }
  rings_.emplace(number, Pair{block});
  return nullptr;
}

CUdeviceptr ChainRings::address(uint64_t number) const {
  const Pair& pair = rings_.at(number);
  return pair.block.address + ChainShape::head_offset(pair.second_is_next);
}

void ChainRings::take_turns(uint64_t number) {
  Pair& pair = rings_.at(number);
  pair.second_is_next = !pair.second_is_next;
}

std::vector<Block> ChainRings::take() {
  std::vector<Block> blocks;
  for (const auto& [number, pair] : std::exchange(rings_, {})) blocks.push_back(pair.block);
  return blocks;
}

}  // namespace klap::runtime
