// This file reads the types and the state space among the modifiers of an instruction.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/expressions/expression.h"
#include "ptx/tree.h"

namespace klap::analysis {

struct ValueType {
  uint32_t bits = 0;
  Sign sign = Sign::Unsigned;
  bool integer = false;
};

// The type that a modifier such as ".u32" names; nothing for other modifiers and for types of more than 8
// bytes.
std::optional<ValueType> parse_type(std::string_view text);

// The types among an instruction's modifiers, in order.
std::vector<ValueType> types_of(const ptx::Module& m, const ptx::Statement& s);

// True if nothing but types and `known` modifies the instruction: a modifier that is not known could change
// what it computes.
bool only_modified_by(const ptx::Module& m, const ptx::Statement& s,
                      std::initializer_list<std::string_view> known);

// "global" of ".to.global", "param" of ".param::entry".
std::string address_space(const ptx::Module& m, const ptx::Statement& s);

}  // namespace klap::analysis
