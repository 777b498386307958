// The layout of a record queue's memory: its two heads, the groups' counters, the prefix array and the
// records, one behind the other. The runtime, which allocates queues for the program, shares it with the C
// API, whose callers allocate them themselves.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ptx-patterns/templates/common/queue.h"

namespace klap::runtime {

struct QueueShape {
  uint64_t capacity = 0;      // in records
  uint32_t record_bytes = 0;  // a multiple of kRecordAlign
  uint64_t groups = 0;        // that count apart

  // The first queue of a stream: most parents are small, and this much (a few hundred KB) costs nothing.
  static constexpr uint64_t kFirstCapacity = 4096;
  static constexpr uint64_t kFirstGroups = 256;
  static constexpr QueueShape first(uint32_t bytes, bool has_groups) {
    return {kFirstCapacity, aligned_record(bytes), has_groups ? kFirstGroups : 0};
  }

  // Each variant's kernels know how its records are aligned. This alignment is only about the room for them.
  static constexpr uint32_t kRecordAlign = 4;
  static constexpr uint32_t aligned_record(uint32_t bytes) {
    return (bytes + kRecordAlign - 1) / kRecordAlign * kRecordAlign;
  }

  static_assert(sizeof(KlapQueue) <= KLAP_ONCE_OFFSET);
  // A fused kernel takes two words of the head for one (templates/aggregate/fused.cu).
  static_assert(offsetof(KlapCounters, threads) % sizeof(uint64_t) == 0 &&
                offsetof(KlapCounters, shared_bytes) == offsetof(KlapCounters, threads) + sizeof(uint32_t));

  // The groups' counters, which must be zero before the queue is first used.
  [[nodiscard]] static constexpr uint64_t groups_offset() { return round_up(uint64_t{2} * KLAP_HEAD_BYTES); }
  [[nodiscard]] uint64_t groups_bytes() const { return groups * sizeof(KlapGroup); }
  [[nodiscard]] uint64_t prefix_offset() const { return round_up(groups_offset() + groups_bytes()); }
  [[nodiscard]] uint64_t records_offset() const {
    return round_up(prefix_offset() + capacity * sizeof(unsigned long long));
  }
  [[nodiscard]] uint64_t bytes() const { return records_offset() + capacity * record_bytes; }

  // The only head of an empty queue at that device address; `report` as in KlapQueue.
  [[nodiscard]] KlapQueue header(uint64_t address, uint64_t report) const {
    KlapQueue queue{};
    queue.capacity = static_cast<unsigned>(capacity);
    queue.prefix = std::bit_cast<unsigned long long*>(address + prefix_offset());
    queue.records = std::bit_cast<unsigned char*>(address + records_offset());
    queue.report = std::bit_cast<KlapReport*>(report);
    if (groups != 0) queue.groups = std::bit_cast<KlapGroup*>(address + groups_offset());
    return queue;
  }

  // Both heads of one queue, with the bytes between them.
  struct Heads {
    KlapQueue first;
    std::array<unsigned char, KLAP_HEAD_BYTES - sizeof(KlapQueue)> between;
    KlapQueue second;
  };
  [[nodiscard]] Heads heads(uint64_t address, uint64_t report) const {
    Heads heads{header(address, report), {}, header(address, report)};
    heads.first.other = KLAP_HEAD_BYTES;
    heads.second.other = -KLAP_HEAD_BYTES;
    return heads;
  }

 private:
  // Arrays begin at the alignment of a fresh allocation.
  static constexpr uint64_t round_up(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
};

}  // namespace klap::runtime
