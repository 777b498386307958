// The device heap on top of the device's memory; each piece costs a header, as in any heap.
#include "emulator/device_runtime/device_heap.h"

namespace klap::emulator {
namespace {

constexpr uint64_t kGrain = 16, kHeader = 16;

uint64_t cost(uint64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain + kHeader; }

}  // namespace

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > bytes_ || used_ + cost(bytes) > bytes_) return 0;
  const std::optional<uint64_t> address = memory_.allocate(bytes, Owner::DeviceHeap, kGrain);
  if (!address) return 0;
  used_ += cost(bytes);
  ++allocations_;
  order_.allocated(*address, bytes);
  return *address;
}

std::string DeviceHeap::free(uint64_t address) {
  if (address == 0) return {};
  const Allocation* piece = memory_.find(address, 1);
  if (piece == nullptr) return "free of " + memory_.describe(address, 1);
  if (piece->owner != Owner::DeviceHeap || piece->address != address)
    return "free of an address that malloc did not return";
  const uint64_t bytes = piece->bytes;
  order_.freed(address, bytes);
  memory_.free(address, Owner::DeviceHeap);
  used_ -= cost(bytes);
  return {};
}

}  // namespace klap::emulator
