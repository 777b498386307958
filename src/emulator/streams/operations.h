// Work that is put into streams: the dependences, and the choice of the next operation to begin.
//
// Streams, events and the rules between them all come down to this: an operation begins when certain earlier
// ones have finished. Streams of the host and of device code only say which ones. The schedule chooses among
// the operations that could begin. CUDA allows any order of them, so a program that works in one order only
// is found out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/memory_model/model.h"

namespace klap::emulator {

struct GridOperation;

class Operation {
 public:
  virtual ~Operation() = default;

  [[nodiscard]] bool is_finished() const { return finished_; }
  // The history before its begin, and before its end; `before_end` is complete once it is finished.
  HistoryRef before_begin, before_end;
  GridOperation* launcher = nullptr;  // the grid that made it, if device code did
  bool is_tail = false;               // of its launcher

 protected:
  // Does the operation, or sets it going; true if it is done. Otherwise Operations::finish() is called later.
  virtual bool begin() = 0;

 private:
  friend class Operations;
  uint32_t waits_for_ = 0;
  bool finished_ = false;
  std::vector<std::shared_ptr<Operation>> followers_;
};
using OperationRef = std::shared_ptr<Operation>;

// Does nothing: others wait for it.
class Marker final : public Operation {
  bool begin() override;
};

class OperationsListener {
 public:
  virtual ~OperationsListener() = default;
  virtual void operation_finished(Operation& operation) = 0;
};

class Operations {
 public:
  // `in_order`: the one that could begin first begins first; otherwise the seed decides.
  Operations(bool in_order, uint64_t seed);
  void set_listener(OperationsListener* listener) { listener_ = listener; }

  // Begins after all of `predecessors` (null and finished ones count too, as satisfied). `held`: nor before
  // release() was called for it.
  void add(const OperationRef& operation, std::span<const OperationRef> predecessors, bool held = false);
  void release(const OperationRef& operation);
  // It has ended, and others may begin.
  void finish(Operation& operation);

  [[nodiscard]] bool can_begin() const { return !ready_.empty(); }
  void begin_one();
  // A choice of the schedule: true in one of `in` cases on average, always when operations begin in order.
  [[nodiscard]] bool choose(uint32_t in);
  [[nodiscard]] uint64_t unfinished() const { return unfinished_.size(); }
  // Forgets all that is not finished.
  void clear();

 private:
  uint64_t random();
  void satisfied(const OperationRef& operation);

  bool in_order_;
  uint64_t random_;
  OperationsListener* listener_ = nullptr;
  std::deque<OperationRef> ready_;
  std::unordered_map<Operation*, OperationRef> unfinished_;
};

// The union of two histories, either of which may be missing.
HistoryRef joined(const HistoryRef& a, const HistoryRef& b);

}  // namespace klap::emulator
