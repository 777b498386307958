// This file runs the instructions of a loop's body symbolically, along one path (loop_termination.h).
//
// Values are numbers. Equal operations on equal values get equal numbers, and comparisons that a path has
// passed tell the order of the numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/effects/value_order.h"
#include "analysis/graph/dataflow.h"
#include "ptx/tree.h"

namespace klap::analysis {

// The order in which comparisons are read; comparisons of other types are not used.
struct RankReading {
  char letter = 's';  // the type's letter: .s32 or .u64, ...
  uint32_t bytes = 4;
  bool falls = true;  // the rank; else it rises
};

struct PathState {
  std::map<std::string_view, ValueOrder::Value> registers;
  std::map<std::string_view, ValueOrder::Value> start;  // values that registers had at the loop's head
  std::map<std::string, ValueOrder::Value> memory;      // by address and type
  ValueOrder order;
  std::vector<uint32_t> path;  // blocks
};

// Runs instructions of all paths of one loop.
class PathRun {
 public:
  using Value = ValueOrder::Value;

  // The arguments must outlive this object.
  PathRun(const ptx::Module& module, const DataFlow& data, const RankReading& reading)
      : m_(module), data_(data), reading_(reading) {}

  // True if the instruction may write memory that other threads see.
  [[nodiscard]] bool writes_memory(const ptx::Statement& s) const;

  // The value of an operand: of a register, or of any other text.
  Value value_of(std::string_view operand, PathState& state);
  Value value_of(ptx::TokenRange operand, PathState& state);
  // The cell that a load or an atomic names, and what is in it.
  [[nodiscard]] std::string cell(const ptx::Statement& s, PathState& state);
  Value content(const std::string& cell, PathState& state);

  // Gives the result of the instruction a value, or one that nothing is known of.
  void set(const ptx::Statement& s, Value value, PathState& state);
  void set_unknown(const ptx::Statement& s, PathState& state);
  // Runs an instruction that does not end a block.
  void execute(const ptx::Statement& s, PathState& state);
  // Takes a predicate to be true or false from here on.
  void assume(Value predicate, bool holds, PathState& state);
  // True if comparisons of this type are in the order that ranks are read in.
  [[nodiscard]] bool orders(std::string_view type) const;

  // A number for what a text says, the same at every place.
  Value named(const std::string& text) { return values_.named(text); }

 private:
  // A condition that a predicate stands for.
  struct Condition {
    enum Kind { Unknown, Compare, And, Or } kind = Unknown;
    bool negated = false;
    std::string relation, type;  // Compare
    Value a = 0, b = 0;          // values, or predicates for And and Or
  };

  // Numbers for values. Equal operations on equal values get equal numbers, in all runs of one loop.
  class PathValues {
   public:
    Value fresh() { return ++last_; }
    Value named(const std::string& text) {
      const auto [entry, is_new] = by_text_.emplace(text, last_ + 1);
      if (is_new) ++last_;
      return entry->second;
    }
    Value condition(Condition condition) {
      const Value value = fresh();
      conditions_.emplace(value, std::move(condition));
      return value;
    }
    [[nodiscard]] const Condition* condition_of(Value value) const {
      const auto found = conditions_.find(value);
      return found == conditions_.end() ? nullptr : &found->second;
    }

   private:
    Value last_ = 0;
    std::map<std::string, Value> by_text_;
    std::map<Value, Condition> conditions_;
  };

  void combine(const ptx::Statement& s, std::string_view opcode, PathState& state);
  void compute(const ptx::Statement& s, std::string_view opcode, PathState& state);
  void assume(const Condition& c, bool holds, ValueOrder& order) const;

  const ptx::Module& m_;
  const DataFlow& data_;
  const RankReading reading_;
  PathValues values_;
};

}  // namespace klap::analysis
