// The launch that a guard decided last, so that the next one like it is decided at once.
//
// A program pauses between its launches, and then the code and the data that decide about one are in no
// cache: 15 us were measured on an H100 for a launch that runs as it is. That is much beside a kernel of
// 10 us. So this comparison comes before all else, and looks at a few lines of memory.
//
// How many children an original may have depends on the number of streams that launch (guarded_launch.h), so
// each stream must have been seen. The one that is remembered was, and launches into others are not known.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "jit/data/variant.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

// All but may_know() are called under the guard's mutex.
class KnownLaunch {
 public:
  // The launch was decided with these.
  struct Circumstances {
    uint64_t context_id = 0;
    uint64_t streams_ended = 0;  // that launched, in this process
    uint64_t children = 0;
  };
  // The next `times` launches are known if they are like this one. Launches of more parameters than there is
  // room for are not remembered, nor are those into a stream that each thread has of its own.
  void remember(const Launch& launch, const jit::Variant& variant, const Circumstances& in, uint64_t times);
  // Forgets the launch, and says how often it was found.
  uint64_t forget();

  // False if no launch is known. Any thread may ask.
  [[nodiscard]] bool may_know() const { return left_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool knows(const Launch& launch) const;
  [[nodiscard]] const Circumstances& circumstances() const { return in_; }
  // Called for each launch that is known, and made like the last one.
  void count();

 private:
  std::atomic<uint32_t> left_{0};  // launches that are still known
  uint32_t found_ = 0;
  Circumstances in_;
  CUstream stream_ = nullptr;
  std::array<uint32_t, 7> sizes_{};  // grid, block and shared memory
  uint32_t count_ = 0;               // of parameters
  std::array<uint8_t, 16> parameter_bytes_{};
  std::array<unsigned char, 128> parameters_{};
};

}  // namespace klap::runtime
