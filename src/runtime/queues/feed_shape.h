// The layout of a queue that its own consumer fills (templates/worklist/feed.h): its head, the items and the
// records, one behind the other. The heads of groups of blocks are elsewhere. Their number differs from
// launch to launch, and the rest must not move.
//
// The number of children of a recursion cannot be told, so the queue gets a fixed part of the memory that it
// may have.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ptx-patterns/templates/worklist/feed.h"
#include "runtime/queues/queue_shape.h"

namespace klap::runtime {

struct FeedShape {
  uint64_t records = 0;
  uint32_t record_bytes = 0;

  // Most children have a few blocks. Larger ones take items until those run out.
  static constexpr uint64_t kItemsPerRecord = 4;
  // The queue takes a quarter of pool_bytes. If that is less than kLeast, it takes as much of pool_bytes as
  // there is up to kLeast.
  static constexpr uint64_t kLeast = uint64_t{16} << 20;

  // The queue for records of that size beside the heads of so many groups. `records` is 0 if there is no room
  // for a single one.
  static FeedShape within(uint64_t pool_bytes, uint32_t record_bytes, uint64_t groups = 0) {
    const uint64_t left = pool_bytes - std::min(pool_bytes, heads_bytes(groups));
    const uint64_t budget = std::min<uint64_t>({left, std::max(pool_bytes / 4, kLeast), KLAP_FEED_MAX_BYTES});
    FeedShape shape{0, QueueShape::aligned_record(record_bytes)};
    const uint64_t fixed = shape.bytes() + kAlign;
    const uint64_t each = shape.record_bytes + kItemsPerRecord * sizeof(unsigned long long);
    if (budget > fixed) shape.records = std::min<uint64_t>((budget - fixed) / each, KLAP_FEED_MAX_RECORDS);
    return shape;
  }

  [[nodiscard]] static constexpr uint64_t heads_bytes(uint64_t groups) { return groups * sizeof(KlapFeed); }
  [[nodiscard]] uint64_t items() const { return records * kItemsPerRecord; }
  [[nodiscard]] uint64_t items_offset() const { return round_up(sizeof(KlapFeed)); }
  [[nodiscard]] uint64_t items_bytes() const { return items() * sizeof(unsigned long long); }
  [[nodiscard]] uint64_t records_offset() const { return round_up(items_offset() + items_bytes()); }
  [[nodiscard]] uint64_t bytes() const { return records_offset() + records * record_bytes; }
  bool operator==(const FeedShape&) const = default;

  // The head of an empty queue at that device address; `report` and `groups` as in KlapFeed.
  [[nodiscard]] KlapFeed header(uint64_t address, uint64_t report, uint64_t groups) const {
    KlapFeed feed{};
    feed.record_capacity = static_cast<unsigned>(records);
    feed.item_capacity = static_cast<unsigned>(items());
    feed.items = std::bit_cast<unsigned long long*>(address + items_offset());
    feed.records = std::bit_cast<unsigned char*>(address + records_offset());
    feed.report = std::bit_cast<KlapReport*>(report);
    feed.groups = std::bit_cast<KlapFeed*>(groups);
    return feed;
  }

 private:
  // Arrays begin at the alignment of a fresh allocation.
  static constexpr uint64_t kAlign = 256;
  static constexpr uint64_t round_up(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
};

}  // namespace klap::runtime
