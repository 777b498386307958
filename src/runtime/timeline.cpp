#include "runtime/timeline.h"

#include <algorithm>
#include <utility>

namespace klap::runtime {

namespace {

bool is_slower(const TimedRecord& a, const TimedRecord& b) {
  return a.parent_ms + a.children_ms > b.parent_ms + b.children_ms;
}

Json as_json(const std::vector<TimedRecord>& records) {
  Json::Array out;
  for (const TimedRecord& record : records)
    out.push_back(Json::Object{{"parent", record.parent},
                               {"context", record.context_id},
                               {"begin_ms", record.begin_ms},
                               {"parent_ms", record.parent_ms},
                               {"children_ms", record.children_ms},
                               {"is_slice", record.is_slice}});
  return out;
}

}  // namespace

void Timeline::add(TimedRecord record) {
  if (first_.size() < kFirst) first_.push_back(record);
  if (slowest_.size() == kSlowest) {
    if (!is_slower(record, slowest_.front())) return;
    std::ranges::pop_heap(slowest_, is_slower);
    slowest_.pop_back();
  }
  slowest_.push_back(std::move(record));
  std::ranges::push_heap(slowest_, is_slower);
}

Json Timeline::json() const {
  if (first_.empty()) return {};
  std::vector<TimedRecord> slowest = slowest_;
  std::ranges::sort(slowest, is_slower);
  return Json::Object{{"first", as_json(first_)}, {"slowest", as_json(slowest)}};
}

}  // namespace klap::runtime
