// Where things lie in the memory of a promoted chain (templates/promote.h): its head and behind it the ring.
#pragma once

#include <bit>
#include <cstdint>

#include "ptx-patterns/templates/promote.h"

namespace klap::runtime {

struct ChainShape {
  uint32_t slot_bytes = 0;

  [[nodiscard]] static constexpr uint64_t ring_offset() { return (sizeof(KlapChain) + 255) / 256 * 256; }
  [[nodiscard]] uint64_t ring_bytes() const { return uint64_t{KLAP_CHAIN_SLOTS} * slot_bytes; }
  [[nodiscard]] uint64_t bytes() const { return ring_offset() + ring_bytes(); }

  // The head before the first launch, at that device address; `report` as in KlapChain.
  [[nodiscard]] KlapChain header(uint64_t address, uint64_t report) const {
    KlapChain chain{};
    chain.ring = std::bit_cast<unsigned long long*>(address + ring_offset());
    chain.report = std::bit_cast<KlapReport*>(report);
    return chain;
  }
};

}  // namespace klap::runtime
