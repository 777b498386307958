// Attributes of the emulated device, and the runtime's error texts.
#include "emulator/device_runtime/device_attributes.h"

#include <algorithm>
#include <iterator>

namespace klap::emulator {
namespace {

struct Attribute {
  int number, value;
};

// The attributes that do not depend on the device's shape.
constexpr Attribute kFixed[] = {
    {1, 1024},         // threads per block
    {2, 1024},         // block dimensions
    {3, 1024},         //
    {4, 64},           //
    {5, 0x7fffffff},   // grid dimensions
    {6, 65535},        //
    {7, 65535},        //
    {9, 65536},        // constant memory
    {10, 32},          // warp
    {11, 0x7fffffff},  // pitch
    {12, 65536},       // registers per block
    {13, 1000000},     // clock, kHz
    {14, 512},         // texture alignment
    {15, 1},           // copies while it computes
    {17, 0},           // no time-out
    {18, 0},           // not integrated
    {19, 1},           // maps host memory
    {20, 0},           // default compute mode
    {30, 512},         // surface alignment
    {31, 1},           // concurrent kernels
    {32, 0},           // no ECC
    {33, 0},           // PCI bus
    {34, 0},           // PCI device
    {35, 0},           // no TCC
    {36, 1000000},     // memory clock, kHz
    {37, 64},          // memory bus, bits
    {38, 4 << 20},     // L2 cache
    {40, 1},           // copy engines
    {41, 1},           // unified addressing
    {50, 0},           // PCI domain
    {78, 0},           // no stream priorities
    {79, 1},           // global L1 cache
    {80, 1},           // local L1 cache
    {82, 65536},       // registers per multiprocessor
    {83, 1},           // managed memory
    {84, 0},           // one device per board
    {86, 0},           // no native host atomics
    {87, 2},           // single to double
    {88, 0},           // no pageable memory access
    {90, 1},           // compute preemption
    {91, 1},           // host pointer for registered memory
    {95, 0},           // no cooperative launch
    {111, 0},          // shared memory reserved by the driver, per block
    {115, 0},          // no memory pools
};

struct ErrorName {
  int number;
  std::string_view name;
};

constexpr ErrorName kErrors[] = {
#define X(number, name) {number, name},
#include "emulator/device_runtime/device_runtime_errors.def"
#undef X
};

}  // namespace

std::optional<int> device_attribute(const DeviceShape& device, int attribute) {
  switch (attribute) {
    case 8:
      return static_cast<int>(device.shared_per_block);
    case 16:
      return static_cast<int>(device.multiprocessors);
    case 39:
      return static_cast<int>(device.threads_per_multiprocessor);
    case 75:
      return static_cast<int>(device.compute_capability / 10);
    case 76:
      return static_cast<int>(device.compute_capability % 10);
    case 89:  // concurrent managed access
      return device.shares_managed_memory ? 1 : 0;
    case 81:
      return static_cast<int>(device.shared_per_multiprocessor);
    case 97:
      return static_cast<int>(device.shared_per_block_optin);
    case 106:
      return static_cast<int>(device.resident_blocks);
    default:
      break;
  }
  for (const Attribute& fixed : kFixed) {
    if (fixed.number == attribute) return fixed.value;
  }
  return std::nullopt;
}

std::string_view runtime_error_name(int error) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [error](const ErrorName& e) { return e.number == error; });
  return found == std::end(kErrors) ? "unrecognized error code" : found->name;
}

}  // namespace klap::emulator
