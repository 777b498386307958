// Calls: one call taken apart, the values that it passes, and the callers of a function.
//
// Compilers put every call in a scope of its own that declares its parameters, stores the actual ones, calls
// and loads the result. Where a call looks like that, what it passes can be read off.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "ptx/tree.h"

namespace klap::analysis {

// A direct or indirect call, taken apart.
struct Call {
  const ptx::Statement* statement = nullptr;
  std::string_view callee;  // function name, or a register for an indirect call
  bool direct = false;
  std::vector<std::string_view> results, parameters;  // names of .param variables (or registers)
};
// Nothing unless the statement is a `call`.
std::optional<Call> parse_call(const ptx::Module& module, const ptx::Statement& statement,
                               const LocalNames& names);

// The contents of a scope of the form `{ .reg/.param declarations; st.param...; call; ld.param... }`. It
// declares the call's parameters and its result, stores the former before the call and loads the latter
// behind it, at most once each. Anything else is a problem, because a rewrite that replaces the scope would
// lose it.
struct CallScope {
  struct Actual {
    std::string operand;
    uint32_t bytes = 0;  // stored
  };
  // The stores of the actual parameters: parameter name -> offset.
  std::map<std::string_view, std::map<uint32_t, Actual>> actuals;
  std::string result;         // register that receives the (single) result; empty when it is dropped
  uint32_t result_bytes = 0;  // loaded to it
  std::string problem;        // why the scope is not of that form, with a place; empty when it is

  // The operand stored at an offset of a parameter; null if there is none. With `bytes`, only one of that
  // width.
  [[nodiscard]] const std::string* actual(std::string_view parameter, uint32_t offset,
                                          uint32_t bytes = 0) const;
};
CallScope read_call_scope(const ptx::Module& module, const ptx::Statement& scope, const ptx::Statement& call);

// One direct call of a function.
struct Caller {
  const ptx::Function* function = nullptr;  // that calls
  const ptx::Statement* call = nullptr;
  const ptx::Statement* scope = nullptr;  // innermost block around the call
  std::string place;                      // "line 12:2"
};
// The calls of a function that its module shows.
struct Callers {
  std::vector<Caller> calls;  // in text order
  std::string address_place;  // the first that uses the function's name for anything else; empty if none
};
Callers callers_of(const ptx::Module& module, std::string_view function);

// "parent (line 12:2), parent (line 40:2), through its address (line 7:9)" or "nothing in its unit".
std::string print(const Callers& callers);

}  // namespace klap::analysis
