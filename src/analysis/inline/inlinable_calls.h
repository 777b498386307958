// This file says whether a single call can be inlined, and how its parameters and results are then carried.
//
// That depends on two things: how the called function accesses its parameters and results, and how the
// caller's scope around the call passes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/graph/register_bits.h"
#include "analysis/launches/calls.h"
#include "ptx/tree.h"

namespace klap::analysis {

// How a parameter or a result of a call is carried where there is no call: in one register for each piece, or
// in an array where the pieces do not fit each other.
struct PassedValue {
  bool in_memory = false;
  uint32_t bytes = 0, align = 1;
  std::map<uint32_t, uint32_t> pieces;  // offset -> bytes
};

// A call that can be inlined. Its scope names the passed values in plain loads and stores only.
struct InlinableCall {
  const ptx::Function* callee = nullptr;
  const ptx::Statement* call = nullptr;
  std::vector<std::string_view> parameters, results;  // .param variables of the scope
  std::vector<PassedValue> passed, returned;          // in the order of these
};

// A `ld.param` or `st.param` of a named variable at a constant place. Nothing for other statements.
struct ParameterAccess {
  std::string_view name;
  bool is_store = false;
  uint32_t offset = 0;
  std::string_view type;                // ".u32"
  std::vector<std::string> components;  // registers or literals
  [[nodiscard]] uint32_t bytes() const { return ptx::type_bytes(type); }
};
std::optional<ParameterAccess> parameter_access(const ptx::Module& module, const ptx::Statement& s);

// The uses that a body makes of the function's parameters and results.
struct CalleeForm {
  std::map<std::string_view, std::vector<ParameterAccess>> accesses;
  std::set<std::string_view> addressed;
  bool has_shared_memory = false;
  std::string problem;  // why calls of it cannot be inlined; empty if they can
};
CalleeForm callee_form(const ptx::Module& module, const ptx::Function& callee);

// A function that can be called, with what a call of it has to fit.
struct Callee {
  const ptx::Function& function;
  const CalleeForm& form;
  const RegisterBits& registers;
};
// The call in the block around it; nothing if that is not of the known form. `registers` are those of the
// caller.
std::optional<InlinableCall> inlinable_call(const ptx::Module& module, const ptx::Statement& scope,
                                            const Call& call, const RegisterBits& registers,
                                            const Callee& callee);

}  // namespace klap::analysis
