// Registers of one function: the instructions that write and read them, and known facts about their values.
//
// nvcc's PTX is close to SSA: almost every register has one definition. The analyses use that: a value is
// followed through single definitions only, and anything else is "not known", which every client treats as
// the worst case. Registers go by their names here, which serves code that names each register once; names
// that scopes declare again are ambiguous, and nothing is followed through them. registers.h and reaching.h
// tell them apart.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/graph/flow.h"

namespace klap::analysis {

// Names declared in a function body: registers (plain and `%r<13>` ranges), variables, parameters, labels. A
// name that several scopes declare is listed once. If several ranges share a name, the longest one counts.
class LocalNames {
 public:
  LocalNames(const ptx::Module& module, const ptx::Statement& body);
  [[nodiscard]] bool contains(std::string_view name) const {
    return is_register(name) || others_.contains(name);
  }
  [[nodiscard]] bool is_register(std::string_view name) const;
  // The "%r" of a declaration `.reg .b32 %r<13>`, which is not itself a register.
  [[nodiscard]] bool is_range(std::string_view name) const { return ranges_.contains(name); }
  [[nodiscard]] const std::set<std::string, std::less<>>& variables() const { return variables_; }
  [[nodiscard]] bool declares_shared() const { return !shared_.empty(); }
  // True for a variable in shared memory, in whichever scope the name is declared.
  [[nodiscard]] bool is_shared(std::string_view name) const {
    return shared_.contains(name) && !unshared_.contains(name);
  }

 private:
  void declaration(const ptx::Module& module, const ptx::Statement& directive);
  std::set<std::string, std::less<>> registers_, others_, variables_, shared_, unshared_;
  std::map<std::string, uint32_t, std::less<>> ranges_;  // "%r" -> 13
};

class DataFlow {
 public:
  DataFlow(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow);

  // Instructions (indices into the flow) that write or read a register, or any of those that share the name.
  [[nodiscard]] const std::vector<uint32_t>& definitions(std::string_view name) const;
  [[nodiscard]] const std::vector<uint32_t>& uses(std::string_view name) const;
  // True if the name alone does not say where a value comes from: several registers share it (scopes declare
  // it again), or the caller passes a value in it. Then facts that are known by name only do not hold.
  [[nodiscard]] bool is_ambiguous(std::string_view name) const { return ambiguous_.contains(name); }

  // The value as an unsigned 64-bit number, if `operand` is an integer literal or a register whose only
  // definition gives one. That definition is an unpredicated mov (followed through moves), or a load of a
  // constant that the module holds. Nothing for ambiguous names.
  [[nodiscard]] std::optional<uint64_t> constant(std::string_view operand) const;
  // The module-level symbol whose address `operand` is, found the same way.
  [[nodiscard]] std::optional<std::string> symbol(std::string_view operand) const;

  [[nodiscard]] const LocalNames& names() const { return names_; }

 private:
  [[nodiscard]] std::string_view moved_from(std::string_view operand) const;
  [[nodiscard]] std::optional<uint64_t> constant_loaded_to(std::string_view reg) const;
  const ptx::Module& module_;
  const ControlFlow& flow_;
  LocalNames names_;
  std::unordered_map<std::string_view, std::vector<uint32_t>> definitions_, uses_;
  std::unordered_set<std::string_view> ambiguous_;
};

// The registers an instruction writes and reads, as texts; memory operands are reads.
struct Registers {
  std::vector<std::string_view> written, read;
};
Registers registers_of(const ptx::Module& module, const ptx::Statement& instruction, const LocalNames& names);

// All registers whose value depends on an instruction for which `is_source` holds, through any number of
// steps. `is_independent`: the instruction's results do not depend on what it reads.
using RegisterSet = std::set<std::string_view>;
RegisterSet dependents(const ptx::Module& module, const ControlFlow& flow, const LocalNames& names,
                       const std::function<bool(const ptx::Statement&)>& is_source,
                       const std::function<bool(const ptx::Statement&)>& is_independent = nullptr);

// A memory operand `[base+offset]`.
struct Address {
  std::string_view base;  // register or symbol; empty for an absolute address
  int64_t offset = 0;
};
std::optional<Address> parse_address(const ptx::Module& module, ptx::TokenRange operand);

// The components of an operand, at least one: `{a, b}` gives a and b, `{}` an empty text, anything else
// itself. Signed literals keep their sign.
std::vector<std::string> components(const ptx::Module& module, ptx::TokenRange operand);

}  // namespace klap::analysis
