// The layout of a queue that its own consumer fills (templates/worklist/work_queue.h): its head, the items
// and the records, one behind the other. The heads of groups of blocks are elsewhere. Their number differs
// from launch to launch, and the rest must not move.
//
// The number of children of a recursion cannot be told, so the queue gets a fixed part of the memory that it
// may have.
//
// A queue that uses lazy memory has two blocks. Ordinary memory holds its front: the head, which all atomics
// of counters go to, and the first records. Lazy memory holds the items, and behind them the other records.
//
// Items must be zero before a launch, and each launch leaves them so. In ordinary memory they are set to zero
// once. In lazy memory that would touch all of their pages. There they have a part of the block to
// themselves, the same for records of any size. It was zero when it was new, and nothing else is ever written
// there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/queues/lazy_memory.h"
#include "runtime/queues/queue_shape.h"

namespace klap::runtime {

struct WorkQueueShape {
  uint64_t records = 0;
  uint32_t record_bytes = 0;
  uint64_t records_at = 0;  // where the records begin in lazy memory, 0 for a queue that uses none

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

  // The ordinary memory for the front of a queue that uses lazy memory: enough for most launches.
  static constexpr uint64_t kFrontBytes = uint64_t{512} << 10;

  // This queue with lazy memory. A queue that small launches nearly fill is as it is.
  [[nodiscard]] WorkQueueShape in_lazy_memory() const {
    WorkQueueShape lazy = *this;
    if (bytes() >= kLeastLazy && record_bytes >= kLeastRecord) lazy.records_at = lazy_items_bytes();
    return lazy;
  }
  [[nodiscard]] bool is_lazy() const { return records_at != 0; }
  // The lazy memory for it, if it uses any. All records have addresses there. Those of the front are not
  // used.
  [[nodiscard]] LazyShape lazy_shape() const {
    return {records_at + round_up(bytes(), kPage), bytes() - kFrontBytes, kFirstItems};
  }
  // The bytes of ordinary memory for it.
  [[nodiscard]] uint64_t ordinary_bytes() const { return is_lazy() ? kFrontBytes : bytes(); }

  [[nodiscard]] static constexpr uint64_t heads_bytes(uint64_t groups) {
    return groups * sizeof(KlapWorkQueue);
  }
  [[nodiscard]] uint64_t items() const { return records * kItemsPerRecord; }
  [[nodiscard]] static constexpr uint64_t head_bytes() { return round_up(sizeof(KlapWorkQueue)); }
  // Where they are in ordinary memory, if all of the queue is there.
  [[nodiscard]] static constexpr uint64_t items_offset() { return head_bytes(); }
  [[nodiscard]] uint64_t items_bytes() const { return items() * sizeof(unsigned long long); }
  [[nodiscard]] uint64_t records_offset() const { return round_up(items_offset() + items_bytes()); }
  // All that can be used of both memories.
  [[nodiscard]] uint64_t bytes() const { return records_offset() + records * record_bytes; }
  bool operator==(const WorkQueueShape&) const = default;

  // Whether a queue with lazy memory at these device addresses has records in its front. Items name records
  // by their distance from the lower part. If the other one is so far away that they cannot, all records are
  // in lazy memory.
  [[nodiscard]] bool has_front(uint64_t address, uint64_t lazy) const {
    return are_near(address + head_bytes(), lazy + records_at);
  }

  // The head of an empty queue at that device address; `lazy` is that of its lazy memory, if it uses any;
  // `report` and `groups` as in KlapWorkQueue.
  [[nodiscard]] KlapWorkQueue header(uint64_t address, uint64_t lazy, uint64_t report,
                                     uint64_t groups) const {
    KlapWorkQueue work_queue{};
    work_queue.record_capacity = static_cast<unsigned>(records);
    work_queue.item_capacity = static_cast<unsigned>(items());
    work_queue.items = std::bit_cast<unsigned long long*>(is_lazy() ? lazy : address + items_offset());
    work_queue.report = std::bit_cast<KlapReport*>(report);
    work_queue.groups = std::bit_cast<KlapWorkQueue*>(groups);
    if (is_lazy()) {
      place_records(work_queue, address + head_bytes(), lazy + records_at);
    } else {
      work_queue.records = std::bit_cast<unsigned char*>(address + records_offset());
    }
    return work_queue;
  }

 private:
  [[nodiscard]] bool are_near(uint64_t front, uint64_t rest) const {
    const uint64_t distance = std::max(front, rest) - std::min(front, rest);
    return distance <= KLAP_WORK_NAMED_BYTES - records * record_bytes;
  }
  void place_records(KlapWorkQueue& work_queue, uint64_t front, uint64_t rest) const {
    const uint64_t first = std::min(front, rest);
    const bool is_near = are_near(front, rest);
    work_queue.records = std::bit_cast<unsigned char*>(is_near ? first : rest);
    if (!is_near) return;
    work_queue.places.front_records = static_cast<unsigned>((kFrontBytes - head_bytes()) / record_bytes);
    work_queue.places.front = static_cast<unsigned>((front - first) / KLAP_WORK_UNIT);
    work_queue.places.rest = static_cast<unsigned>((rest - first) / KLAP_WORK_UNIT);
  }

  // Arrays begin at the alignment of a fresh allocation.
  static constexpr uint64_t kAlign = 256;
  static constexpr uint64_t kPage = uint64_t{2} << 20;
  static constexpr uint64_t kLeastLazy = kPage;
  static constexpr uint64_t kFirstItems = uint64_t{256} << 10;  // bytes of those that a small launch uses
  static constexpr uint64_t kLeastRecord = 16;                  // its grid and block
  static constexpr uint64_t round_up(uint64_t bytes, uint64_t to = kAlign) {
    return (bytes + to - 1) / to * to;
  }

  // Room for the items of a queue of this size, whatever its records. Queues whose sizes differ by less than
  // a page have the same room, and hence blocks of the same size.
  [[nodiscard]] uint64_t lazy_items_bytes() const {
    constexpr uint64_t kItems = kItemsPerRecord * sizeof(unsigned long long);
    const uint64_t most = round_up(bytes(), kPage) / (kLeastRecord + kItems) * kItems;
    return round_up(most, kPage);
  }
};

}  // namespace klap::runtime
