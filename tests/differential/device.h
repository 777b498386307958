// Runs cases through the CUDA driver API.
//
// The driver is the one that dlopen("libcuda.so.1") finds: LD_LIBRARY_PATH decides between the emulated
// driver and that of a GPU, and LD_PRELOAD puts klap_jit in between. Nothing here knows which it is, except
// that the emulated one can be told to start anew with another seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "case.h"

namespace klap::differential {

struct Result {
  enum class Kind : uint8_t { Equal, Different, Failed } kind = Kind::Equal;
  std::string detail;  // Different: the first differences; Failed: what the driver said
};
const char* to_string(Result::Kind kind);

class Device {
 public:
  Device();
  ~Device();
  // Why there is nothing to run on; empty if there is.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  [[nodiscard]] bool is_emulated() const;
  // Starts the emulator anew with this seed; does nothing on a GPU.
  void reset(uint64_t seed);
  Result run(const Case& c);
  // Counts of the kernels' operations so far; nothing on a GPU.
  struct Counts {
    uint64_t heap_allocations = 0;
    uint64_t heap_kept = 0;         // bytes that were not freed
    uint64_t device_launches = 0;   // that were made
    uint64_t launches_refused = 0;  // because too many were pending
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;
  std::string missing_;
};

}  // namespace klap::differential
