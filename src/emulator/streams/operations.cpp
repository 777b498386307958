// Operations as a graph: each counts the operations that it still waits for.
#include "emulator/streams/operations.h"

#include <utility>

namespace klap::emulator {

HistoryRef joined(const HistoryRef& a, const HistoryRef& b) {
  if (!a || a == b) return b;
  return b ? MemoryModel::both(a, b) : a;
}

bool Marker::begin() {
  before_end = before_begin;
  return true;
}

Operations::Operations(bool in_order, uint64_t seed) : in_order_(in_order), random_(seed) {}

// splitmix64
uint64_t Operations::random() {
  uint64_t z = random_ += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

bool Operations::choose(uint32_t in) { return in_order_ || random() % in == 0; }

void Operations::add(const OperationRef& operation, std::span<const OperationRef> predecessors, bool held) {
  unfinished_.emplace(operation.get(), operation);
  operation->waits_for_ = held ? 2 : 1;
  for (const OperationRef& before : predecessors) {
    if (!before) continue;
    if (before->finished_) {
      operation->before_begin = joined(operation->before_begin, before->before_end);
    } else {
      ++operation->waits_for_;
      before->followers_.push_back(operation);
    }
  }
  satisfied(operation);
}

void Operations::release(const OperationRef& operation) { satisfied(operation); }

void Operations::satisfied(const OperationRef& operation) {
  if (--operation->waits_for_ == 0) ready_.push_back(operation);
}

void Operations::begin_one() {
  if (!in_order_) std::swap(ready_.front(), ready_[random() % ready_.size()]);
  const OperationRef operation = std::move(ready_.front());
  ready_.pop_front();
  bool done = true;
  try {
    done = operation->begin();
  } catch (...) {
    finish(*operation);  // it will not be done again
    throw;
  }
  if (done) finish(*operation);
}

void Operations::finish(Operation& operation) {
  const auto found = unfinished_.find(&operation);
  if (found == unfinished_.end()) return;  // thrown away by clear()
  const OperationRef keep = std::move(found->second);
  unfinished_.erase(found);
  operation.finished_ = true;
  for (const OperationRef& next : operation.followers_) {
    next->before_begin = joined(next->before_begin, operation.before_end);
    satisfied(next);
  }
  operation.followers_.clear();
  if (listener_ != nullptr) listener_->operation_finished(operation);
}

void Operations::clear() {
  for (auto& [address, operation] : unfinished_) {
    operation->followers_.clear();
    operation->finished_ = true;
  }
  unfinished_.clear();
  ready_.clear();
}

}  // namespace klap::emulator
