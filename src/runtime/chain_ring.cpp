#include "runtime/chain_ring.h"

#include <utility>

#include "runtime/chain_shape.h"
#include "runtime/driver.h"
#include "runtime/launch_context.h"

namespace klap::runtime {

namespace {

// All zero but for the heads. In the stream, behind whatever used the memory before.
MaybeReason write_rings(CUdeviceptr address, const ChainShape& shape, CUdeviceptr report, CUstream stream) {
  const ChainShape::Heads heads = shape.heads(address, report);
  const Driver& cuda = *driver();
  const bool is_written = cuda.memset_d8_async(address + shape.ring_offset(false), 0, shape.rings_bytes(),
                                               stream) == CUDA_SUCCESS &&
                          cuda.memcpy_htod_async(address, &heads, sizeof heads, stream) == CUDA_SUCCESS;
  return is_written ? nullptr : &reasons::kQueueNotWritable;
}

}  // namespace

ChainRings::Key ChainRings::key_of(const jit::Variant& variant) {
  return {variant.parent_variant, variant.promoted->mode, variant.promoted->slot_bytes};
}

MaybeReason ChainRings::make_room(CudaContext& context, CUstream stream, CUdeviceptr report,
                                  const jit::Variant& variant, uint64_t pool_bytes) {
  const ChainShape shape{variant.promoted->slot_bytes};
  // As with queues: what ran before must not decide.
  if (shape.bytes() > pool_bytes) return &reasons::kQueueOverPoolBytes;
  if (rings_.contains(key_of(variant))) return nullptr;
  const RelaxedCapture relaxed;
  bool limited = false;
  const Block block = context.pool.take(shape.bytes(), &limited);
  if (!block.address) return limited ? &reasons::kQueuesOverTotalBytes : &reasons::kNoDeviceMemory;
  if (const MaybeReason reason = write_rings(block.address, shape, report, stream)) {
    context.pool.retire({block}, stream);
    return reason;
  }
  rings_.emplace(key_of(variant), Pair{block});
  return nullptr;
}

CUdeviceptr ChainRings::address(const jit::Variant& variant) const {
  const Pair& pair = rings_.at(key_of(variant));
  return pair.block.address + ChainShape::head_offset(pair.second_is_next);
}

void ChainRings::take_turns(const jit::Variant& variant) {
  Pair& pair = rings_.at(key_of(variant));
  pair.second_is_next = !pair.second_is_next;
}

std::vector<Block> ChainRings::take() {
  std::vector<Block> blocks;
  for (const auto& [key, pair] : std::exchange(rings_, {})) blocks.push_back(pair.block);
  return blocks;
}

}  // namespace klap::runtime
