#include "random/waits/make_expression.h"

#include <array>

namespace klap::differential::waits {

namespace {

Expression make_place(random::Random& random, bool is_uniform) {
  const auto axis = static_cast<uint32_t>(random.chance(70) ? 0 : random.below(3));
  if (is_uniform) return leaf(random.chance(70) ? Op::Ctaid : Op::Nctaid, axis);
  static constexpr std::array<Op, 6> kPlaces = {Op::Thread, Op::Linear, Op::Tid,
                                                Op::Ctaid,  Op::Ntid,   Op::Nctaid};
  const Op op = kPlaces.at(random.below(kPlaces.size()));
  return leaf(op, op == Op::Thread || op == Op::Linear ? 0 : axis);
}

Expression make_leaf(random::Random& random, const Readable& readable) {
  switch (random.below(8)) {
    case 0:
      return constant(random.number());
    case 1:
      return make_place(random, readable.is_uniform);
    case 2:
      if (readable.values != 0)
        return leaf(Op::Parameter, static_cast<uint32_t>(random.below(readable.values)));
      return leaf(Op::Depth);
    case 3:
      return leaf(Op::Depth);
    case 4: {
      if (readable.is_uniform) return constant(static_cast<uint32_t>(random.below(8)));
      const auto word = static_cast<uint32_t>(random.below(kWords));
      const bool is_sum = word >= kFirstSum && word < kFirstResult;
      return leaf(Op::Own, is_sum && !readable.sums ? word + 2 : word);
    }
    default:
      if (readable.is_uniform || readable.variables == 0) return make_place(random, readable.is_uniform);
      return leaf(Op::Local, static_cast<uint32_t>(random.below(readable.variables)));
  }
}

}  // namespace

Expression is_thread(uint32_t modulus, uint32_t rest) {
  return binary(Op::Equal, {Op::Remainder, modulus, {leaf(Op::Thread)}}, constant(rest));
}

Expression make_expression(random::Random& random, const Readable& readable, uint32_t depth) {
  if (depth == 0 || random.chance(25)) return make_leaf(random, readable);
  const auto operand = [&] { return make_expression(random, readable, depth - 1); };
  switch (random.below(12)) {
    case 0:
      return {Op::Input, 0, {operand()}};
    case 1:
      return {Op::Message, static_cast<uint32_t>(random.below(kFirstSum)), {operand()}};
    case 2:
      return {Op::Select, 0, {operand(), operand(), operand()}};
    case 3:
      return {Op::Remainder, static_cast<uint32_t>(random.between(2, 9)), {operand()}};
    case 4:
      return {Op::ShiftRight, static_cast<uint32_t>(random.between(1, 17)), {operand()}};
    default: {
      static constexpr std::array<Op, 11> kOps = {Op::Add,     Op::Add,     Op::Subtract, Op::Multiply,
                                                  Op::Xor,     Op::Xor,     Op::And,      Op::Or,
                                                  Op::Minimum, Op::Maximum, Op::Equal};
      const Op op = random.chance(12) ? Op::Less : kOps.at(random.below(kOps.size()));
      Expression a = operand();
      return binary(op, std::move(a), operand());
    }
  }
}

}  // namespace klap::differential::waits
