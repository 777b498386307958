// Device memory of one CUDA context, handed from launch context to launch context.
//
// A block may still be read by kernels that are enqueued but have not run when its owner has outgrown it or
// its stream is being destroyed. It is therefore retired together with an event recorded in that stream and
// becomes free once the event has completed; nobody ever waits for it. Blocks are reused but not returned to
// the driver: cuMemFree waits for the whole device, which can stop a program whose kernel waits for its host.
// Sizes grow geometrically, so what lies idle is bounded by what is in use. It all goes with the CUDA
// context.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

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

struct Block {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

class BlockPool {
 public:
  // `most`: what all blocks together may take.
  explicit BlockPool(uint64_t most) : most_(most) {}

  // A free block of at least `bytes`, or fresh memory. Address 0 when the device has none, and where there
  // would be more of it than there may be: `limited`, if not null, tells which.
  Block take(size_t bytes, bool* limited = nullptr);
  // The same limit for memory that is not the pool's: false where there would be too much.
  bool reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);
  // The blocks are free once the work now in `stream` has completed. One without an address is what was
  // reserved.
  void retire(std::vector<Block> blocks, CUstream stream);
  // The blocks are free once `done`, already recorded, has completed. Takes the event over.
  void retire(std::vector<Block> blocks, CUevent done);

 private:
  struct Retired {
    std::vector<Block> blocks;
    CUevent done;
  };
  void reclaim();
  [[nodiscard]] bool is_too_much(uint64_t bytes) const { return bytes > most_ || allocated_ > most_ - bytes; }

  const uint64_t most_;
  std::mutex mutex_;
  uint64_t allocated_ = 0;  // or reserved
  std::vector<Block> free_;
  std::vector<Retired> retired_;
};

// A new event without timing, null if the driver has none to give.
CUevent new_event();

}  // namespace klap::runtime
