// The memory of record queues, as the setting `buffer` chooses it.
//
// pool: blocks of the CUDA context (block_pool.h), which a stream keeps for its next launches. malloc: memory
// of one launch alone. It is taken in its stream before the parent and given back behind its consumers, so
// that nothing is held between two launches.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/launch_reasons.h"
#include "runtime/queues/block_pool.h"

namespace klap::runtime {

// Memory for queues of one stream.
class QueueMemory {
 public:
  virtual ~QueueMemory() = default;
  // At least `bytes`, for work that is enqueued from now on. If there is none, the address is 0 and `why` is
  // set.
  virtual Block take(uint64_t bytes, MaybeReason& why) = 0;
  // A block of lazy memory, as BlockPool::take_lazy() gives it.
  virtual Block take_lazy(const LazyShape& shape, MaybeReason& why) = 0;
  // Brings a part of it that is soon used. Without that, its pages come when kernels touch them.
  virtual void fetch_lazy(CUdeviceptr address, uint64_t bytes) = 0;
  // True if a queue is to have lazy memory; `has_it` if it does already.
  [[nodiscard]] virtual bool is_lazy(bool has_it) const = 0;
  // Takes the block back. Work that is enqueued from now on does not use it.
  virtual void give_back(const Block& block) = 0;
  // True if later launches have it too, so that more than one launch needs may be worthwhile.
  [[nodiscard]] virtual bool lasts() const = 0;
};

class PooledMemory : public QueueMemory {
 public:
  PooledMemory(BlockPool& pool, CUstream stream, BlockOf of) : pool_(pool), stream_(stream), of_(of) {}
  Block take(uint64_t bytes, MaybeReason& why) override;
  Block take_lazy(const LazyShape& shape, MaybeReason& why) override;
  void fetch_lazy(CUdeviceptr address, uint64_t bytes) override {
    const RelaxedCapture relaxed;
    (void)pool_.lazy().fetch(address, bytes, stream_);
  }
  // Lazy memory is left when the program needs memory, so a queue that has it must be one that may move.
  [[nodiscard]] bool is_lazy(bool has_it) const override {
    return of_ == BlockOf::Stream && (has_it ? pool_.lazy().may_be_kept() : pool_.lazy().is_on());
  }
  void give_back(const Block& block) override { pool_.retire({block}, stream_); }
  [[nodiscard]] bool lasts() const override { return true; }

 private:
  BlockPool& pool_;
  const CUstream stream_;
  const BlockOf of_;
};

// A memory pool of the driver for the memory that single launches of a CUDA context take.
//
// It is not the device's own pool. That is the program's, with the limits and the statistics that the program
// gave it. In ours, an allocation never waits for memory that other streams free, as it may in the device's
// pool when memory is short. Two streams could then wait for each other that are independent in the program.
class LaunchPool {
 public:
  // The pool, made in the current context on the first call. Null, logged once, if the driver has no such
  // pools.
  CUmemoryPool get();
  // Returns the memory that no launch has to the device.
  void trim();

 private:
  std::mutex mutex_;
  std::optional<CUmemoryPool> pool_;  // nothing before the first call
};

// Memory of one launch after another of a stream.
//
// The memory of its largest launch so far counts as `limit`'s until the stream ends. Launches of a stream
// that wait behind each other have the same memory. Whether one is redirected must not depend on the progress
// of earlier ones.
class LaunchMemory : public QueueMemory {
 public:
  LaunchMemory(LaunchPool& source, BlockPool& limit, CUstream stream)
      : source_(source), limit_(limit), stream_(stream) {}
  Block take(uint64_t bytes, MaybeReason& why) override;
  // A launch takes its memory and gives it back, so pages would be brought again each time.
  Block take_lazy(const LazyShape&, MaybeReason&) override { return {}; }
  void fetch_lazy(CUdeviceptr, uint64_t) override {}
  [[nodiscard]] bool is_lazy(bool) const override { return false; }
  void give_back(const Block& block) override;
  [[nodiscard]] bool lasts() const override { return false; }

  // Returns the bytes that count for the stream; from now on none do.
  uint64_t take_reserved();

 private:
  LaunchPool& source_;
  BlockPool& limit_;
  const CUstream stream_;
  uint64_t taken_ = 0;     // by the launch that is being enqueued
  uint64_t reserved_ = 0;  // of the limit
};

}  // namespace klap::runtime
