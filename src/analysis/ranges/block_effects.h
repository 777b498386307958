// The effects that a block has on memory behind a loop that sums up its elements (block_sum.h).
//
// If one thread alone reads and writes there, it does so in its own order, and other blocks of the child are
// not there. Then a block of another size does the same if its thread does, with the same values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranges/opaque_values.h"

namespace klap::analysis {

struct EndOfBlock {
  std::string why_not;  // empty if one thread writes, or none, and it is known what
  uint32_t thread = 0;
  std::vector<std::string> effects{};  // in its order
  bool is_rounded = false;             // it depends on the order of additions what is written
  // Set if what is done depends on a condition that is not known: how that was computed.
  std::optional<std::string> undecided{};
};

// Conditions, by how they were computed, and what is assumed of them.
using AssumedConditions = std::map<std::string, bool>;

class BlockEffects {
 public:
  BlockEffects(OpaqueValues& values, size_t threads) : values_(values), threads_(threads) {}

  [[nodiscard]] OpaqueValues& values() { return values_; }

  // `instruction`: with its address, and its operands. Returns the number of what the thread finds in memory.
  size_t load(uint32_t thread, Computed instruction);
  size_t write(uint32_t thread, Computed instruction);
  // Says that the condition decides what is done.
  void go_by(const Computed& condition) { is_rounded_ = is_rounded_ || condition.is_rounded; }

  [[nodiscard]] EndOfBlock end() const;

 private:
  struct Thread {
    std::vector<std::string> effects;
    size_t loads = 0;
  };

  OpaqueValues& values_;
  std::vector<Thread> threads_;
  bool is_rounded_ = false;
};

}  // namespace klap::analysis
