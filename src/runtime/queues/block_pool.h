// Device memory of one CUDA context, handed from launch context to launch context.
//
// A block's owner may outgrow it, or its stream may be destroyed, while enqueued kernels that have not run
// still read it. The block is therefore retired together with an event recorded in that stream. It becomes
// free once the event has completed; no launch ever waits for it. Blocks are reused, and returned to the
// driver only if the program runs out of memory. cuMemFree waits for the whole device, which can stop a
// program whose kernel waits for its host. Sizes grow geometrically, so the idle memory is bounded by the
// memory in use. All of it goes with the CUDA context.
//
// The device's memory is the program's first. So all blocks together never grow to more than an eighth of the
// memory that would be free without them, and with those of graphs to a quarter of that more. Graphs find
// memory where streams have taken theirs, since a graph that gets none runs the originals, which the driver
// was seen to replay wrongly (graphs/rewriter.cpp). A block of lazy memory (lazy_memory.h) counts with all
// that it can ever take, as long as a stream has it.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/launch_reasons.h"
#include "runtime/queues/lazy_memory.h"

namespace klap::runtime {

// Lets the calling thread allocate although another thread may be capturing a stream in global mode; the
// thread's own mode comes back at the end of the scope.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

enum class Capture { None, Active, Unknown };
// Whether the stream is being captured into a graph.
Capture capture_state(CUstream stream);

struct Block {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  uint64_t lazy_addresses = 0;  // bytes of addresses in lazy memory, 0 in ordinary memory
  bool is_spoilt = false;       // what is in it may not be what a block of lazy memory is to hold

  [[nodiscard]] bool is_lazy() const { return lazy_addresses != 0; }
};

// A block is for a stream, or for a node of a graph.
enum class BlockOf : uint8_t { Stream, Node };

class BlockPool {
 public:
  // `most`: the bytes that all blocks together may take.
  explicit BlockPool(uint64_t most) : most_(most) {}

  // A free block of at least `bytes`, or fresh memory. Address 0 and the reason where there is none.
  Block take(size_t bytes, MaybeReason& why, BlockOf of = BlockOf::Stream);
  // A free block of lazy memory of that shape, or a fresh one, for work that is enqueued into `stream` from
  // now on. Address 0 if there is none; without a reason, an ordinary one may be tried.
  //
  // A block goes only to queues of the same shape, which use the same part of it for the same thing. So the
  // owner may rely on what earlier owners left there, unless they say that it is spoilt.
  Block take_lazy(const LazyShape& shape, CUstream stream, MaybeReason& why);
  [[nodiscard]] LazyMemory& lazy() { return lazy_; }
  // Has free blocks of these sizes ready, if none are yet and there is memory for them.
  void stock(const std::vector<uint64_t>& sizes);
  // Has free blocks of these sizes, as far as there is memory, in place of lazy ones that streams have given
  // up. Those were within the limits when they were taken.
  void replace_lazy(const std::vector<uint64_t>& sizes);
  // The bytes that new blocks should have at most together. Streams leave some of what they may take.
  uint64_t left(BlockOf of);
  // True if blocks are about to become free.
  bool has_retired() { return !all_are_free(); }
  // Counts memory that is not the pool's. Null on success, otherwise the reason why it would be too much.
  MaybeReason reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);
  // The blocks are free once the work now in `stream` has completed. A block without an address stands for
  // reserved memory.
  void retire(std::vector<Block> blocks, CUstream stream);
  // The blocks are free once `done`, already recorded, has completed. Takes the event over.
  void retire(std::vector<Block> blocks, CUevent done);
  // Waits at most `patience` until all retired blocks are free. False if some are not.
  bool await_free(std::chrono::milliseconds patience);
  // Waits at most `patience` for retired blocks and returns all free ones to the driver; the result is their
  // bytes. Returns none if a kernel that uses them is still running, since the driver would wait for it.
  uint64_t give_back(std::chrono::milliseconds patience);

 private:
  struct Retired {
    std::vector<Block> blocks;
    CUevent done;
  };
  Block new_block(size_t bytes);
  void grow(uint64_t bytes);
  Block new_lazy(const LazyShape& shape, CUstream stream);
  void reclaim();
  void reclaim(const Block& block);
  [[nodiscard]] bool all_are_free();
  struct Limit {
    uint64_t bytes = 0;  // of all blocks together
    MaybeReason over = nullptr;
  };
  [[nodiscard]] Limit limit(BlockOf of) const;
  [[nodiscard]] MaybeReason too_much(uint64_t bytes, BlockOf of = BlockOf::Stream) const;

  const uint64_t most_;
  std::mutex mutex_;
  LazyMemory lazy_;
  uint64_t allocated_ = 0;  // bytes allocated or reserved, and bytes of lazy memory in use
  std::vector<Block> free_;
  std::vector<Retired> retired_;
};

// A new event without timing, null if the driver has none to give.
CUevent new_event();

}  // namespace klap::runtime
