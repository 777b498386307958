// Registers that hold addresses of a thread's local variables or of its block's shared ones.
//
// A kernel that goes on in another grid has its variables elsewhere. So such a value is kept as the distance
// from its variable. That is right only if it is known of every register which variable its value leads to,
// and if no such address is in memory, where nobody would correct it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

struct OwnVariable {
  std::string_view name;
  bool is_shared = false;
};

// A value is this variable's address and something that has nothing to do with where it lies.
struct OwnAddress {
  uint32_t variable = 0;    // among the variables
  bool is_generic = false;  // not an address within its space
  friend bool operator==(const OwnAddress&, const OwnAddress&) = default;
};

class OwnAddresses {
 public:
  // The arguments must outlive this object. `variables` are all that the kernel names.
  OwnAddresses(const FlowFacts& kernel, const VirtualRegisters& registers,
               const std::vector<OwnVariable>& variables);

  // Nothing for a register that holds no such address.
  [[nodiscard]] std::optional<OwnAddress> of(uint32_t reg) const;
  // True if it holds one of several such addresses, or perhaps none.
  [[nodiscard]] bool is_mixed(uint32_t reg) const { return values_[reg].is_mixed; }
  // Why the addresses are not known, with a place; empty if they are.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // A value that is not an address, one address, or one of several.
  struct Value {
    bool is_address = false, is_mixed = false;
    OwnAddress address;
    friend bool operator==(const Value&, const Value&) = default;
  };

  [[nodiscard]] std::optional<uint32_t> variable(std::string_view name) const;
  [[nodiscard]] Value value_of(uint32_t instruction, ptx::TokenRange operand) const;
  [[nodiscard]] Value result_of(uint32_t instruction) const;
  [[nodiscard]] static Value joined(const Value& a, const Value& b);
  bool spread(uint32_t instruction);
  void check(uint32_t instruction);
  void refuse(uint32_t instruction, const char* why);

  const FlowFacts& kernel_;
  const VirtualRegisters& registers_;
  const std::vector<OwnVariable>& variables_;
  std::vector<Value> values_;  // by register
  std::vector<bool> is_set_;   // some write of it has been seen
  std::string problem_;
};

}  // namespace klap::analysis
