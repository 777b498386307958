// The layout of a promoted chain's memory (templates/promote/promote.h): two heads, which launches use
// alternately, and behind them their rings.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ptx-patterns/templates/promote/promote.h"

namespace klap::runtime {

struct ChainShape {
  uint32_t slot_bytes = 0;

  static constexpr uint64_t kHeads = 2;
  struct Heads {
    KlapChain first{}, second{};
  };

  // The parts of a head that are zero before a first launch: where they begin and end.
  static constexpr std::array<std::pair<uint64_t, uint64_t>, 2> kCounters{
      std::pair{offsetof(KlapChain, first), offsetof(KlapChain, other)},
      std::pair{offsetof(KlapChain, ahead), sizeof(KlapChain)}};

  [[nodiscard]] static constexpr uint64_t head_offset(bool second) {
    return second ? offsetof(Heads, second) : 0;
  }
  [[nodiscard]] uint64_t ring_offset(bool second) const {
    return (sizeof(Heads) + 255) / 256 * 256 + (second ? ring_bytes() : 0);
  }
  [[nodiscard]] uint64_t ring_bytes() const { return uint64_t{KLAP_CHAIN_SLOTS} * slot_bytes; }
  [[nodiscard]] uint64_t rings_bytes() const { return kHeads * ring_bytes(); }  // one behind the other
  [[nodiscard]] uint64_t bytes() const { return ring_offset(false) + rings_bytes(); }

  // The heads before the first launch, at that device address; `report` as in KlapChain.
  [[nodiscard]] Heads heads(uint64_t address, uint64_t report) const {
    Heads heads;
    for (KlapChain* const chain : {&heads.first, &heads.second}) {
      const bool is_second = chain == &heads.second;
      chain->ring = std::bit_cast<unsigned long long*>(address + ring_offset(is_second));
      chain->report = std::bit_cast<KlapReport*>(report);
      const auto distance = static_cast<int64_t>(head_offset(true));
      chain->other = is_second ? -distance : distance;
    }
    return heads;
  }
};

}  // namespace klap::runtime
