// The virtual registers of one function, each with its own number, and which instruction touches which.
//
// A name is not a register: scopes may declare a name again, and inline assembly that is expanded twice does
// so side by side. ptxas resolves a name to the nearest declaration *before* the use, in the innermost scope
// first; a scope that declares `%r<3>` leaves `%r5` to the scopes around it. This table does the same, so two
// registers that share a name are never mixed up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/graph/flow.h"

namespace klap::analysis {

struct VirtualRegister {
  std::string_view name;
  std::string_view type;                  // ".b32", ".pred"
  uint32_t lanes = 1;                     // of a vector register: `.reg .v4 .f32 v`
  const ptx::Statement* scope = nullptr;  // that declares it
  bool is_parameter = false;              // declared in the function's header

  [[nodiscard]] bool is_predicate() const { return type == ".pred"; }
  // 32-bit registers it needs. A type of unknown size counts as the largest there is.
  [[nodiscard]] uint32_t words() const;
};

// The access that an instruction makes to one register.
struct Access {
  uint32_t reg = 0;
  bool read = false;
  bool written = false;  // or may be
  // Whatever happens, the register's former value is gone: an unpredicated write of the whole register.
  bool kills = false;
};

class VirtualRegisters {
 public:
  static constexpr uint32_t kNone = ~0u;
  explicit VirtualRegisters(const ControlFlow& flow);

  // All that are used, numbered in the order of their first appearance in the code.
  [[nodiscard]] const std::vector<VirtualRegister>& all() const { return registers_; }
  [[nodiscard]] const VirtualRegister& operator[](uint32_t reg) const { return registers_[reg]; }
  // One entry a register the instruction names.
  [[nodiscard]] std::span<const Access> accesses(uint32_t instruction) const {
    return {accesses_.data() + start_[instruction], accesses_.data() + start_[instruction + 1]};
  }
  // Position of accesses(instruction)[0] among all accesses, for tables that run alongside.
  [[nodiscard]] uint32_t first_access(uint32_t instruction) const { return start_[instruction]; }
  [[nodiscard]] uint32_t access_count() const { return static_cast<uint32_t>(accesses_.size()); }
  // The register that a name means in an instruction that names it; kNone if it names no such register.
  [[nodiscard]] uint32_t find(uint32_t instruction, std::string_view name) const;
  // Instructions whose opcode is unknown: what they write is a guess to the safe side.
  [[nodiscard]] const std::vector<uint32_t>& unknown_instructions() const { return unknown_; }
  // The registers in which the function returns its results, where its header declares such: every `ret`
  // reads them.
  [[nodiscard]] const std::vector<uint32_t>& results() const { return results_; }

 private:
  struct Declaration {
    uint32_t token, count;  // count: of a range, else 0
    std::string_view type;
    uint32_t lanes;
  };
  using ScopedName = std::pair<const ptx::Statement*, std::string_view>;

  void declare_header();
  void declare(const ptx::Statement& scope);
  void read_instruction(uint32_t instruction);
  void read_range(uint32_t instruction, ptx::TokenRange range, Access access);
  void add(uint32_t instruction, Access access);
  [[nodiscard]] uint32_t resolve(const ptx::Statement* scope, uint32_t token);
  [[nodiscard]] const Declaration* declaration(const ptx::Statement* scope, std::string_view name,
                                               uint32_t token) const;
  uint32_t number(const Declaration& declaration, const ptx::Statement* scope, std::string_view name);

  const ControlFlow& flow_;
  const ptx::Module& module_;
  struct ScopedNameHash {
    size_t operator()(const ScopedName& name) const {
      return std::hash<std::string_view>()(name.second) ^ std::hash<const void*>()(name.first);
    }
  };
  std::unordered_map<ScopedName, Declaration, ScopedNameHash> declarations_, ranges_;
  std::unordered_map<ScopedName, uint32_t, ScopedNameHash> numbers_;
  std::vector<VirtualRegister> registers_;
  std::vector<Access> accesses_;
  std::vector<uint32_t> start_, unknown_, results_;
};

}  // namespace klap::analysis
