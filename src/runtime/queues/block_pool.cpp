#include "runtime/queues/block_pool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/driver.h"

namespace klap::runtime {

namespace {

// The pool may take one part of so many of the memory that would be free without it.
constexpr uint64_t kShare = 8;

uint64_t free_memory() {
  size_t left = 0, total = 0;
  return driver()->mem_get_info(&left, &total) == CUDA_SUCCESS ? left : 0;
}

}  // namespace

RelaxedCapture::RelaxedCapture() { driver()->exchange_capture_mode(&mode_); }
RelaxedCapture::~RelaxedCapture() { driver()->exchange_capture_mode(&mode_); }

Capture capture_state(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error here (a legacy stream while another stream is being captured) is the program's to see.
  if (driver()->stream_is_capturing(stream, &status) != CUDA_SUCCESS) return Capture::Unknown;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? Capture::None : Capture::Active;
}

CUevent new_event() {
  CUevent event = nullptr;
  return driver()->event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}

// `allocated_` is small against what 64 bits hold, so no sum wraps.
MaybeReason BlockPool::too_much(uint64_t bytes) const {
  if (bytes > most_ || allocated_ > most_ - bytes) return &reasons::kQueuesOverTotalBytes;
  const uint64_t share = (free_memory() + allocated_) / kShare;
  return bytes > share || allocated_ > share - bytes ? &reasons::kQueuesOverShare : nullptr;
}

Block BlockPool::take(size_t bytes, MaybeReason& why) {
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
  why = too_much(bytes);
  if (why) return {};
  CUdeviceptr address = 0;
  if (driver()->mem_alloc(&address, bytes) != CUDA_SUCCESS) {
    why = &reasons::kNoDeviceMemory;
    return {};
  }
  allocated_ += bytes;
  return {address, bytes};
}

void BlockPool::stock(const std::vector<uint64_t>& sizes) {
  std::vector<Block> blocks;
  for (const uint64_t bytes : sizes) {
    MaybeReason why = nullptr;
    if (const Block block = take(bytes, why); block.address) blocks.push_back(block);
  }
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), blocks.begin(), blocks.end());
}

MaybeReason BlockPool::reserve(uint64_t bytes) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return nullptr;
  reclaim();
  if (const MaybeReason reason = too_much(bytes)) return reason;
  allocated_ += bytes;
  return nullptr;
}

void BlockPool::unreserve(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  allocated_ -= bytes;
}

void BlockPool::retire(std::vector<Block> blocks, CUstream stream) {
  const RelaxedCapture relaxed;
  const CUevent event = new_event();
  // Only an event tells when the blocks are free. If there is none, they stay allocated until the context
  // goes.
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

bool BlockPool::all_are_free() {
  const std::lock_guard lock(mutex_);
  reclaim();
  return retired_.empty();
}

uint64_t BlockPool::give_back(std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kPause(100);
  const auto until = std::chrono::steady_clock::now() + patience;
  const RelaxedCapture relaxed;
  while (!all_are_free()) {
    if (std::chrono::steady_clock::now() >= until) return 0;
    std::this_thread::sleep_for(kPause);
  }
  std::vector<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(free_);
  }
  // The lock is not held here: the driver may take its time, and other threads launch meanwhile.
  uint64_t bytes = 0;
  for (const Block& block : blocks) {
    if (driver()->mem_free(block.address) == CUDA_SUCCESS) bytes += block.bytes;
  }
  unreserve(bytes);
  return bytes;
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
