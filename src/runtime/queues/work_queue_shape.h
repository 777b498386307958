// The layout of a queue that its own consumer fills (templates/worklist/work_queue.h): its head, the items
// and the records, one behind the other. The heads of groups of blocks are elsewhere. Their number differs
// from launch to launch, and the rest must not move.
//
// The number of children of a recursion cannot be told, so the queue gets a fixed part of the memory that it
// may have.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/queues/queue_shape.h"

namespace klap::runtime {

struct WorkQueueShape {
  uint64_t records = 0;
  uint32_t record_bytes = 0;

  // Most children have a few blocks. Larger ones take items until those run out.
  static constexpr uint64_t kItemsPerRecord = 4;
  // The queue takes a quarter of pool_bytes. If that is less than kLeast, it takes as much of pool_bytes as
  // there is up to kLeast.
  static constexpr uint64_t kLeast = uint64_t{16} << 20;

  // The queue for records of that size beside the heads of so many groups. `records` is 0 if there is no room
  // for a single one.
  static WorkQueueShape within(uint64_t pool_bytes, uint32_t record_bytes, uint64_t groups = 0) {
    const uint64_t left = pool_bytes - std::min(pool_bytes, heads_bytes(groups));
    const uint64_t budget = std::min<uint64_t>({left, std::max(pool_bytes / 4, kLeast), KLAP_WORK_MAX_BYTES});
    WorkQueueShape shape{0, QueueShape::aligned_record(record_bytes)};
    const uint64_t fixed = shape.bytes() + kAlign;
    const uint64_t each = shape.record_bytes + kItemsPerRecord * sizeof(unsigned long long);
    if (budget > fixed) shape.records = std::min<uint64_t>((budget - fixed) / each, KLAP_WORK_MAX_RECORDS);
    return shape;
  }

  [[nodiscard]] static constexpr uint64_t heads_bytes(uint64_t groups) {
    return groups * sizeof(KlapWorkQueue);
  }
  [[nodiscard]] uint64_t items() const { return records * kItemsPerRecord; }
  [[nodiscard]] uint64_t items_offset() const { return round_up(sizeof(KlapWorkQueue)); }
  [[nodiscard]] uint64_t items_bytes() const { return items() * sizeof(unsigned long long); }
  [[nodiscard]] uint64_t records_offset() const { return round_up(items_offset() + items_bytes()); }
  [[nodiscard]] uint64_t bytes() const { return records_offset() + records * record_bytes; }
  bool operator==(const WorkQueueShape&) const = default;

  // The head of an empty queue at that device address; `report` and `groups` as in KlapWorkQueue.
  [[nodiscard]] KlapWorkQueue header(uint64_t address, uint64_t report, uint64_t groups) const {
    KlapWorkQueue work_queue{};
    work_queue.record_capacity = static_cast<unsigned>(records);
    work_queue.item_capacity = static_cast<unsigned>(items());
    work_queue.items = std::bit_cast<unsigned long long*>(address + items_offset());
    work_queue.records = std::bit_cast<unsigned char*>(address + records_offset());
    work_queue.report = std::bit_cast<KlapReport*>(report);
    work_queue.groups = std::bit_cast<KlapWorkQueue*>(groups);
    return work_queue;
  }

 private:
  // Arrays begin at the alignment of a fresh allocation.
  static constexpr uint64_t kAlign = 256;
  static constexpr uint64_t round_up(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
};

}  // namespace klap::runtime
