// Single launches with their times, for reports: the first ones of a process, and the slowest.
//
// A program may launch millions of times, so no more than these are kept. The caller locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/json.h"

namespace klap::runtime {

struct TimedRecord {
  std::string parent;
  uint64_t context_id = 0;
  double begin_ms = 0;  // since the first timed launch of the context, and before it if negative
  double parent_ms = 0, children_ms = 0;
  bool is_slice = false;  // a further slice of the launch before
};

class Timeline {
 public:
  static constexpr size_t kFirst = 128, kSlowest = 32;

  void add(TimedRecord record);
  // Null if there is no launch.
  [[nodiscard]] Json json() const;

 private:
  std::vector<TimedRecord> first_;    // in the order in which they were read
  std::vector<TimedRecord> slowest_;  // a heap with the fastest of them in front
};

}  // namespace klap::runtime
