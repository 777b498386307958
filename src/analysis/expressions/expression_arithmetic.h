// This file has the operations on expressions (expression.h), with the exact arithmetic of PTX registers.
//
// Every operation gives its result in normal form. Both operands have one width, but for shifts, whose amount
// may have another one. An operation on an unknown expression gives an unknown one.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator*(const Expr& a, const Expr& b);
Expr divide(const Expr& a, const Expr& b, Sign sign);
Expr remainder(const Expr& a, const Expr& b, Sign sign);
Expr shift_left(const Expr& a, const Expr& amount);
Expr shift_right(const Expr& a, const Expr& amount, Sign sign);
Expr bit_and(const Expr& a, const Expr& b);
Expr bit_or(const Expr& a, const Expr& b);
Expr bit_xor(const Expr& a, const Expr& b);
Expr minimum(const Expr& a, const Expr& b, Sign sign);
Expr maximum(const Expr& a, const Expr& b, Sign sign);
Expr multiply_high(const Expr& a, const Expr& b, Sign sign);
// To exactly `bits`, wider or narrower.
Expr convert(const Expr& a, uint32_t bits, Sign sign);
Expr to_generic(const Expr& a, const std::string& space);
Expr from_generic(const Expr& a, const std::string& space);

}  // namespace klap::analysis
