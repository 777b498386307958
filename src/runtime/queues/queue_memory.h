// Where record queues have their memory from: the setting `buffer`.
//
// pool: blocks of the CUDA context (block_pool.h), which a stream keeps for its next launches. malloc: memory
// of one launch alone, taken in its stream before the parent and given back behind what runs the children, so
// that nothing is held between two launches.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/launch/launch_reasons.h"
#include "runtime/queues/block_pool.h"

namespace klap::runtime {

// Memory for queues of one stream.
class QueueMemory {
 public:
  virtual ~QueueMemory() = default;
  // At least `bytes`, for work that is enqueued from now on. Address 0 where there is none, and why.
  virtual Block take(uint64_t bytes, MaybeReason& why) = 0;
  // What is enqueued from now on does not use the block.
  virtual void give_back(const Block& block) = 0;
  // Whether later launches have it too, so that more than one needs may be worth its while.
  [[nodiscard]] virtual bool lasts() const = 0;
};

class PooledMemory : public QueueMemory {
 public:
  PooledMemory(BlockPool& pool, CUstream stream) : pool_(pool), stream_(stream) {}
  Block take(uint64_t bytes, MaybeReason& why) override;
  void give_back(const Block& block) override { pool_.retire({block}, stream_); }
  [[nodiscard]] bool lasts() const override { return true; }

 private:
  BlockPool& pool_;
  const CUstream stream_;
};

// A memory pool of the driver for what single launches of a CUDA context take.
//
// Not the device's own pool: that is the program's, with the limits and the statistics that the program gave
// it. And in ours an allocation never waits for what other streams free, as it may in the device's when
// memory is short: two streams could then wait for each other that are independent in the program.
class LaunchPool {
 public:
  // Made in the current context on the first call. Null, said once, where the driver has no such pools.
  CUmemoryPool get();
  // Returns to the device what no launch has.
  void trim();

 private:
  std::mutex mutex_;
  std::optional<CUmemoryPool> pool_;  // nothing before the first call
};

// Memory of one launch after another of a stream.
//
// What its largest launch so far took counts as `limit`'s until the stream ends. Launches of a stream that
// wait behind each other have the same memory, and whether one is redirected must not depend on how far those
// before it are.
class LaunchMemory : public QueueMemory {
 public:
  LaunchMemory(LaunchPool& source, BlockPool& limit, CUstream stream)
      : source_(source), limit_(limit), stream_(stream) {}
  Block take(uint64_t bytes, MaybeReason& why) override;
  void give_back(const Block& block) override;
  [[nodiscard]] bool lasts() const override { return false; }

  // What counts for the stream; from now on nothing does.
  uint64_t take_reserved();

 private:
  LaunchPool& source_;
  BlockPool& limit_;
  const CUstream stream_;
  uint64_t taken_ = 0;     // by the launch that is being enqueued
  uint64_t reserved_ = 0;  // of the limit
};

}  // namespace klap::runtime
