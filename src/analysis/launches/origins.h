// Where a value comes from: the places from which a register may have been copied.
//
// A register is followed through moves, selections, address-space casts and all its definitions, wherever
// they stand; what it can hold is at most what is found. The analysis is for naming things and for values
// that are copied unchanged; anything that is computed is a place of its own, "computed".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "ptx/tree.h"

namespace klap::analysis {

enum class OriginKind {
  Constant,         // an integer literal: `value`
  Symbol,           // the address of `name`
  Parameter,        // of the kernel or function itself: `name`, number `value`
  Load,             // from memory: `name` is the state space, "generic" if none is stated
  CallResult,       // of a call of `name`, empty for an indirect one
  SpecialRegister,  // `name`
  Computed,         // by the instruction `name`
  Undefined,        // nothing writes the register
};

struct Origin {
  OriginKind kind = OriginKind::Undefined;
  std::string name;
  uint64_t value = 0;
  const ptx::Statement* statement = nullptr;  // the last instruction followed; null for a literal operand
  std::string place;                          // its place; empty without one
};

struct OriginQuery {
  const ptx::Module& module;
  const ptx::Function& function;
  const ControlFlow& flow;
  const DataFlow& data;
};

// All places that `operand` may have been copied from, each once, in the order in which they were found.
std::vector<Origin> origins_of(const OriginQuery& query, std::string_view operand);

// "the constant 5", "the address of f", "parameter 0 of g", "loaded from global memory (line 12:2)", ...
std::string print(const Origin& origin, const ptx::Function& function);
// Prints several origins, joined by "or".
std::string print(const std::vector<Origin>& origins, const ptx::Function& function);

}  // namespace klap::analysis
