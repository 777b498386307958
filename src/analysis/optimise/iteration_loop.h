// A loop whose iterations step through the linear index, as grid-stride loops do. IterationLoop gives the
// values of its registers in the iteration of index j, which may belong to any thread.
//
// Values are in terms of `j`, the index of the running iteration. The index of the iteration with which its
// thread began is `i`, and the number of threads is `n`. Both i and j are taken to be at most 2^26: then no
// index wraps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/values/guard.h"
#include "analysis/values/linear_index.h"
#include "analysis/values/values.h"

namespace klap::analysis {

// The index of the running iteration.
Expr iteration_of(uint32_t bits);
bool is_iteration(const ExprNode& n);
// The number of threads.
Expr count_in_iteration(uint32_t bits);
// The expression with `j` in place of `i`.
Expr in_iteration(const Expr& e);
// True for one term with one factor that is `wanted`, widened or not, of at least 32 bits.
bool is_multiple_of(const Term& term, bool (*wanted)(const ExprNode&));

class IterationLoop {
 public:
  // A natural loop with one latch, in which so many iterations stand one behind the other.
  // `before` is a loop of single iterations that a thread may have come through first.
  IterationLoop(const Values& child, const LinearIndex& form, const Loop& loop, uint32_t iterations = 1,
                const IterationLoop* before = nullptr);

  [[nodiscard]] bool contains(uint32_t instruction) const {
    return loop_->contains(v_->flow.instructions()[instruction].block);
  }
  [[nodiscard]] const Loop& loop() const { return *loop_; }
  [[nodiscard]] uint32_t iterations() const { return iterations_; }
  // The last instruction of the latch.
  [[nodiscard]] uint32_t branch() const;
  // The comparison that decides the branch, if it is one comparison.
  [[nodiscard]] std::optional<uint32_t> condition() const;
  // The value of the branch's predicate with which the loop goes on; nothing if the branch is no choice
  // between both.
  [[nodiscard]] std::optional<bool> stays_when() const;

  // A register that steps by as much as the index does.
  struct Counter {
    Expr value;                       // in iteration j
    uint32_t writer = 0;              // the instruction that steps it
    std::vector<uint32_t> beginning;  // instructions that give it its value ahead of the loop, ascending
  };
  [[nodiscard]] const std::map<uint32_t, Counter>& counters() const { return counters_; }
  // Other registers that an iteration hands on to the next, each with an instruction that writes it.
  struct HandedOn {
    uint32_t reg = 0, writer = 0;
  };
  [[nodiscard]] const std::vector<HandedOn>& handed_on() const { return handed_on_; }

  // The value that an instruction of the loop reads (symbolic.h), in iteration j. If the loop has several
  // iterations in a row, j is the first of them.
  [[nodiscard]] Expr value(const Expr& raw) const;
  // True if the loop goes on as long as the guard holds for the iteration that would be next.
  [[nodiscard]] bool ends_by(const Guard& guard) const;

 private:
  void find_counters();
  [[nodiscard]] bool writes(uint32_t i, uint32_t reg) const;
  [[nodiscard]] bool gives(uint32_t i, uint32_t reg) const;
  [[nodiscard]] std::optional<Counter> counted(uint32_t writer, uint32_t reg) const;
  [[nodiscard]] std::optional<Counter> begun(const ExprNode& leaf, uint32_t writer, uint32_t reg,
                                             uint64_t step) const;
  [[nodiscard]] std::optional<Expr> first_value(uint32_t reg, const std::vector<uint32_t>& definitions) const;
  [[nodiscard]] std::optional<Counter> computed_behind(uint32_t reg, uint32_t writer,
                                                       const std::vector<uint32_t>& definitions) const;
  [[nodiscard]] std::optional<Counter> gone_on(uint32_t reg, uint32_t writer,
                                               const std::vector<uint32_t>& definitions) const;

  const Values* v_;
  const Loop* loop_;
  uint32_t iterations_;
  const IterationLoop* before_;
  LinearIndex form_;
  std::map<uint32_t, Counter> counters_;
  std::vector<HandedOn> handed_on_;
};

}  // namespace klap::analysis
