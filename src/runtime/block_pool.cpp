#include "runtime/block_pool.h"

#include <utility>

#include "runtime/driver.h"

namespace klap::runtime {

RelaxedCapture::RelaxedCapture() { driver()->exchange_capture_mode(&mode_); }
RelaxedCapture::~RelaxedCapture() { driver()->exchange_capture_mode(&mode_); }

CUevent new_event() {
  CUevent event = nullptr;
  return driver()->event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}

Block BlockPool::take(size_t bytes, bool* limited) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  reclaim();
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->bytes >= bytes && (best == free_.end() || block->bytes < best->bytes)) best = block;
  }
  if (best != free_.end()) {
    const Block block = *best;
    free_.erase(best);
    return block;
  }
  const bool too_much = is_too_much(bytes);
  if (limited != nullptr) *limited = too_much;
  if (too_much) return {};
  CUdeviceptr address = 0;
  if (driver()->mem_alloc(&address, bytes) != CUDA_SUCCESS) return {};
  allocated_ += bytes;
  return {address, bytes};
}

bool BlockPool::reserve(uint64_t bytes) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return true;
  reclaim();
  if (is_too_much(bytes)) return false;
  allocated_ += bytes;
  return true;
}

void BlockPool::unreserve(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  allocated_ -= bytes;
}

void BlockPool::retire(std::vector<Block> blocks, CUstream stream) {
  const RelaxedCapture relaxed;
  const CUevent event = new_event();
  // Without an event nobody could tell when the blocks are free: they stay allocated until the context goes.
  if (!event) return;
  if (driver()->event_record(event, stream) != CUDA_SUCCESS) {
    driver()->event_destroy(event);
    return;
  }
  retire(std::move(blocks), event);
}

void BlockPool::retire(std::vector<Block> blocks, CUevent done) {
  const std::lock_guard lock(mutex_);
  retired_.push_back({std::move(blocks), done});
}

void BlockPool::reclaim() {
  std::erase_if(retired_, [this](const Retired& entry) {
    if (driver()->event_query(entry.done) != CUDA_SUCCESS) return false;
    driver()->event_destroy(entry.done);
    for (const Block& block : entry.blocks) {
      if (block.address != 0) {
        free_.push_back(block);
      } else {
        allocated_ -= block.bytes;
      }
    }
    return true;
  });
}

}  // namespace klap::runtime
