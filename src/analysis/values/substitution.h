// This file replaces parts of expressions (expression.h) by other expressions.
#pragma once

#include <functional>
#include <optional>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// The expression in normal form with parts replaced where `replacement` gives something; it is asked from the
// outside in, and what it gives is not looked into.
using Replacement = std::function<std::optional<Expr>(const Expr& part)>;
Expr substitute(const Expr& expr, const Replacement& replacement);

}  // namespace klap::analysis
