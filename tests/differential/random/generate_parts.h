// Short names for the expressions and statements that generators put together.
#pragma once

#include <utility>
#include <vector>

#include "random/print_turns.h"
#include "random/program.h"
#include "random/random_source.h"

namespace klap::differential::random {

inline Expression leaf(Op op, uint32_t value = 0) { return {op, value, {}}; }
inline Expression with(Op op, uint32_t value, Expression a) { return {op, value, {std::move(a)}}; }
inline Expression with(Op op, Expression a, Expression b) { return {op, 0, {std::move(a), std::move(b)}}; }
inline Expression select(Expression condition, Expression a, Expression b) {
  return {Op::Select, 0, {std::move(condition), std::move(a), std::move(b)}};
}

inline Statement statement(Kind kind, uint32_t number, uint32_t limit, std::vector<Expression> values,
                           std::vector<Statement> body = {}) {
  return {kind, number, limit, std::move(values), std::move(body), {}, {}, {}, {}};
}
inline Statement only_if(Expression condition, std::vector<Statement> body) {
  return statement(Kind::If, 0, 0, {std::move(condition)}, std::move(body));
}
inline Statement barrier(Random& random) {
  return statement(Kind::Barrier, 0, static_cast<uint32_t>(random.below(kBarrierForms)), {});
}

}  // namespace klap::differential::random
