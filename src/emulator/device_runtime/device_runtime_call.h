// One call of a function of the machine: its arguments, its result, and the error numbers.
#pragma once

#include <algorithm>
#include <cstring>

#include "emulator/executor/executor.h"
#include "emulator/streams/grid_tree.h"

namespace klap::emulator {

namespace runtime_error {  // cudaError numbers
inline constexpr int kSuccess = 0, kInvalidValue = 1, kMemoryAllocation = 2, kInvalidConfiguration = 9,
                     kInvalidPitch = 12, kInvalidMemcpyDirection = 21, kPendingCountExceeded = 69,
                     kInvalidDevice = 101, kUnsupportedLimit = 215, kIllegalAddress = 700, kAssert = 710,
                     kLaunchFailure = 719, kNotSupported = 801, kUnknown = 999;
}

// The arguments in order. Each stands at a multiple of its alignment, as PTX lays parameters out.
class CallArguments {
 public:
  explicit CallArguments(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T next() {
    offset_ = (offset_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T value{};
    if (offset_ + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

template <typename T>
void give_result(const ThreadCall& call, T value) {
  std::memcpy(call.result.data(), &value, std::min(sizeof value, call.result.size()));
}

inline GridOperation& calling_grid(const ThreadCall& call) { return static_cast<GridOperation&>(call.grid); }

// The number of the calling thread in its block.
inline uint32_t calling_thread(const ThreadCall& call) {
  const Dim3& size = call.grid.launch.block;
  return (call.thread_index[2] * size[1] + call.thread_index[1]) * size[0] + call.thread_index[0];
}

}  // namespace klap::emulator
