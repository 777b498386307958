// The heap of device code: malloc and free, and cudaMalloc and cudaFree in kernels.
//
// It is as small as the program was told (cudaLimitMallocHeapSize), because programs that use it up get null
// and must cope with that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator {

class DeviceHeap {
 public:
  DeviceHeap(Memory& memory, MemoryModel& order, uint64_t bytes)
      : memory_(memory), order_(order), bytes_(bytes) {}

  uint64_t allocate(uint64_t bytes);  // 0 when it is used up, or for 0 bytes
  // Frees the address, and returns what is wrong with that; empty if it was done. Null is ignored.
  std::string free(uint64_t address);
  // The limit counts from the next allocation on, as with CUDA.
  void resize(uint64_t bytes) { bytes_ = bytes; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t used() const { return used_; }
  // How often something was allocated.
  [[nodiscard]] uint64_t allocations() const { return allocations_; }

 private:
  Memory& memory_;
  MemoryModel& order_;
  uint64_t bytes_, used_ = 0, allocations_ = 0;
};

}  // namespace klap::emulator
