// This file resolves registers to places in the local variables of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "analysis/facts/flow_facts.h"

namespace klap::analysis {

// A place in a local variable; the offset is missing where it is not constant.
struct LocalPlace {
  std::string_view variable;
  std::optional<int64_t> offset;
  int64_t bytes = 8;  // a pointer, or a stream's handle
};
bool overlap(const LocalPlace& a, const LocalPlace& b);

class LocalAddresses {
 public:
  explicit LocalAddresses(const FlowFacts& kernel);

  // Nothing if the value is not, or not only, an address in one local variable.
  std::optional<LocalPlace> of(std::string_view name);
  // The place that a load, store or atomic accesses by one of its operands.
  std::optional<LocalPlace> of_memory(const ptx::Statement& s, size_t operand);

 private:
  std::optional<LocalPlace> joined(std::string_view name);
  std::optional<LocalPlace> value(const ptx::Statement& s);
  [[nodiscard]] bool is_apart(const LocalPlace& place, uint64_t constant) const;

  const ptx::Module& m_;
  const FlowFacts& k_;
  std::map<std::string_view, uint64_t> alignments_;  // of the variables
  std::map<std::string_view, std::optional<LocalPlace>> known_;
};

}  // namespace klap::analysis
