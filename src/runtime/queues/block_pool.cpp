#include "runtime/queues/block_pool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/driver.h"
#include "runtime/stats.h"

namespace klap::runtime {

namespace {

// The pool may take one part of so many of the memory that would be free without it. Graphs may take one part
// of so many more.
constexpr uint64_t kShare = 8, kShareOfGraphs = 32;

// The memory that would be free without so many bytes. Lazy memory is counted though most of it may be free,
// so the sum could be more than the device has.
uint64_t free_without(uint64_t bytes) {
  size_t left = 0, total = 0;
  if (driver()->mem_get_info(&left, &total) != CUDA_SUCCESS) return bytes;
  return std::min<uint64_t>(left + bytes, total);
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
BlockPool::Limit BlockPool::limit(BlockOf of) const {
  const uint64_t free = free_without(allocated_);
  const uint64_t share = free / kShare + (of == BlockOf::Node ? free / kShareOfGraphs : 0);
  return most_ <= share ? Limit{most_, &reasons::kQueuesOverTotalBytes}
                        : Limit{share, &reasons::kQueuesOverShare};
}

MaybeReason BlockPool::too_much(uint64_t bytes, BlockOf of) const {
  const Limit all = limit(of);
  return bytes > all.bytes || allocated_ > all.bytes - bytes ? all.over : nullptr;
}

uint64_t BlockPool::left(BlockOf of) {
  constexpr uint64_t kLeftByStreams = 5;  // one part of so many
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  reclaim();
  const uint64_t all = limit(of).bytes;
  const uint64_t most = of == BlockOf::Stream ? all - all / kLeftByStreams : all;
  return most - std::min(most, allocated_);
}

Block BlockPool::take(size_t bytes, MaybeReason& why, BlockOf of) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  reclaim();
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (!block->is_lazy() && block->bytes >= bytes && (best == free_.end() || block->bytes < best->bytes))
      best = block;
  }
  if (best != free_.end()) {
    const Block block = *best;
    free_.erase(best);
    return block;
  }
  why = too_much(bytes, of);
  if (why) return {};
  const Block block = new_block(bytes);
  if (block.address == 0) why = &reasons::kNoDeviceMemory;
  return block;
}

void BlockPool::grow(uint64_t bytes) {
  allocated_ += bytes;
  Stats::instance().queues_hold(allocated_);
}

Block BlockPool::new_block(size_t bytes) {
  CUdeviceptr address = 0;
  if (driver()->mem_alloc(&address, bytes) != CUDA_SUCCESS) return {};
  grow(bytes);
  return {address, bytes};
}

// A block that is not used because the driver fails is kept with the free ones. To give it back at once could
// wait for the device.
Block BlockPool::new_lazy(const LazyShape& shape, CUstream stream) {
  const Block block{lazy_.allocate(shape), 0, shape.addresses};
  if (block.address == 0 || lazy_.fetch(block.address, shape.first, stream)) return block;
  free_.push_back(block);
  return {};
}

Block BlockPool::take_lazy(const LazyShape& shape, CUstream stream, MaybeReason& why) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!lazy_.is_on()) return {};
  reclaim();
  why = too_much(shape.most_used);
  if (why || !lazy_.add(shape.most_used)) return {};
  Block block{};
  const auto found = std::ranges::find_if(free_, [&shape](const Block& free) {
    return free.lazy_addresses == shape.addresses && !free.is_spoilt;
  });
  if (found != free_.end()) {
    block = *found;
    free_.erase(found);
  } else {
    block = new_lazy(shape, stream);
  }
  if (block.address == 0) {
    lazy_.remove(shape.most_used);
    return {};
  }
  block.bytes = shape.most_used;
  grow(block.bytes);
  return block;
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

void BlockPool::replace_lazy(const std::vector<uint64_t>& sizes) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  for (const uint64_t bytes : sizes) {
    if (const Block block = new_block(bytes); block.address) free_.push_back(block);
  }
}

MaybeReason BlockPool::reserve(uint64_t bytes) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return nullptr;
  reclaim();
  if (const MaybeReason reason = too_much(bytes)) return reason;
  grow(bytes);
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

bool BlockPool::await_free(std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kPause(100);
  const auto until = std::chrono::steady_clock::now() + patience;
  const RelaxedCapture relaxed;
  while (!all_are_free()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

uint64_t BlockPool::give_back(std::chrono::milliseconds patience) {
  const RelaxedCapture relaxed;
  if (!await_free(patience)) return 0;
  std::vector<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(free_);
  }
  // The lock is not held here: the driver may take its time, and other threads launch meanwhile.
  uint64_t bytes = 0, counted = 0;
  for (const Block& block : blocks) {
    if (driver()->mem_free(block.address) != CUDA_SUCCESS) continue;
    bytes += block.bytes;
    if (!block.is_lazy()) counted += block.bytes;
  }
  unreserve(counted);
  return bytes;
}

void BlockPool::reclaim(const Block& block) {
  if (block.address == 0 || block.is_lazy()) allocated_ -= block.bytes;
  if (block.is_lazy()) lazy_.remove(block.bytes);
  if (block.address != 0) free_.push_back(block);
}

void BlockPool::reclaim() {
  std::erase_if(retired_, [this](const Retired& entry) {
    if (driver()->event_query(entry.done) != CUDA_SUCCESS) return false;
    driver()->event_destroy(entry.done);
    for (const Block& block : entry.blocks) reclaim(block);
    return true;
  });
}

}  // namespace klap::runtime
