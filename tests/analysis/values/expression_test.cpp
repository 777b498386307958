// The normal form of expressions: what is equal compares equal, and no wrap-around is lost. A random test
// compares every operation with the arithmetic of the machine.
#include "analysis/expressions/expression.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

Expr c(uint64_t value, uint32_t bits = 32) { return Expr::constant(value, bits); }
Expr p(uint32_t offset, uint32_t bits = 32) { return Expr::parameter(offset, bits); }
Expr special(const char* name) { return Expr::special(name); }
Expr u64(const Expr& e) { return convert(e, 64, Sign::Unsigned); }
Expr s64(const Expr& e) { return convert(e, 64, Sign::Signed); }

TEST(Expression, CollectsAndExpandsSums) {
  const Expr a = p(0), b = p(4);
  EXPECT_EQ((a + b) * c(2), b + a + b + a);
  EXPECT_EQ((a + b) * (a - b), a * a - b * b);
  EXPECT_EQ("0", to_string(a - a));
  EXPECT_EQ("2*p[0] - p[4] + 7", to_string(a * c(2) + c(7) - b));
  EXPECT_EQ("ctaid.x*ntid.x + tid.x", to_string(special("tid.x") + special("ntid.x") * special("ctaid.x")));
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(Expr() == Expr());
  EXPECT_FALSE((a + Expr()).known());
  EXPECT_FALSE((a + p(0, 64)).known()) << "operands of different widths";
}

TEST(Expression, WrapsAtItsWidth) {
  EXPECT_EQ(c(0), c(0xffffffff) + c(1));
  EXPECT_EQ(c(0x80000000), c(0x40000000) * c(2));
  EXPECT_EQ(c(0), shift_left(p(0), c(32)));
  EXPECT_EQ(c(0), shift_left(shift_left(p(0), c(31)), c(1)));
}

TEST(Expression, DoesNotTakeWidenedSumsApartThatMayWrap) {
  const Expr a = p(0);
  EXPECT_FALSE(u64(a + c(1)) == u64(a) + c(1, 64));
  EXPECT_FALSE(s64(a + c(1)) == s64(a) + c(1, 64));
  EXPECT_FALSE(s64(a * c(4)) == s64(a) * c(4, 64));
  EXPECT_EQ("s64(p[0] + 1)", to_string(s64(a + c(1))));
  // The block index times the block size may exceed 32 bits.
  const Expr index = special("ctaid.x") * special("ntid.x") + special("tid.x");
  EXPECT_FALSE(u64(index) == u64(special("ctaid.x")) * u64(special("ntid.x")) + u64(special("tid.x")));
}

TEST(Expression, TakesWidenedSumsApartThatCannotWrap) {
  const Expr t = special("tid.x");
  EXPECT_EQ(u64(t + c(1)), u64(t) + c(1, 64));
  EXPECT_EQ(s64(t - c(1)), s64(t) - c(1, 64));
  EXPECT_FALSE(u64(t - c(1)) == u64(t) - c(1, 64)) << "-1 as unsigned is large";
  EXPECT_EQ(s64(t), u64(t));
  EXPECT_EQ(s64(special("ntid.x") * t), u64(special("ntid.x")) * u64(t));
  EXPECT_EQ(p(0) + t, convert(u64(p(0) + t), 32, Sign::Unsigned)) << "narrowing undoes widening";
}

TEST(Expression, KnowsDivisionByShifts) {
  const Expr x = p(24) + c(31);
  const Expr bias = shift_right(shift_right(x, c(31), Sign::Signed), c(27), Sign::Unsigned);
  EXPECT_EQ("(p[24] + 31) / 32", to_string(shift_right(x + bias, c(5), Sign::Signed)));
  EXPECT_EQ(divide(x, c(32), Sign::Signed), shift_right(x + bias, c(5), Sign::Signed));
  // By two the bias is the sign bit itself.
  EXPECT_EQ(divide(x, c(2), Sign::Signed),
            shift_right(x + shift_right(x, c(31), Sign::Unsigned), c(1), Sign::Signed));
  // A bias for another power, or of another value, is no division.
  EXPECT_NE(ExprKind::DivideSigned, shift_right(x + bias, c(4), Sign::Signed)->kind);
  EXPECT_NE(ExprKind::DivideSigned, shift_right(p(24) + bias, c(5), Sign::Signed)->kind);
  EXPECT_EQ("p[24] >> 5", to_string(shift_right(p(24), c(5), Sign::Signed)));
  EXPECT_EQ("p[24] /u 32", to_string(shift_right(p(24), c(5), Sign::Unsigned)));
  EXPECT_FALSE(divide(p(24), c(32), Sign::Signed) == divide(p(24), c(32), Sign::Unsigned));
  EXPECT_EQ("tid.x / 32", to_string(shift_right(special("tid.x"), c(5), Sign::Signed)));
}

TEST(Expression, KnowsRemaindersByMasksAndByHand) {
  const Expr t = special("tid.x"), a = p(0);
  EXPECT_EQ(remainder(t, c(32), Sign::Signed), bit_and(t, c(31)));
  EXPECT_EQ(remainder(a, c(10), Sign::Unsigned), a - divide(a, c(10), Sign::Unsigned) * c(10));
  EXPECT_EQ(remainder(a, c(10), Sign::Signed), a - divide(a, c(10), Sign::Signed) * c(10));
  EXPECT_FALSE(remainder(a, c(10), Sign::Signed) == remainder(a, c(10), Sign::Unsigned));
  EXPECT_EQ(bit_and(a, c(~uint64_t{31})), a - bit_and(a, c(31)));
}

TEST(Expression, OrIsASumOnlyWithoutCommonBits) {
  const Expr lane = bit_and(special("tid.x"), c(31)), high = shift_left(p(0), c(5));
  EXPECT_EQ(high + lane, bit_or(high, lane));
  EXPECT_EQ(high + lane, bit_or(lane, high));
  EXPECT_EQ(ExprKind::Or, bit_or(shift_left(p(0), c(4)), lane)->kind);
}

TEST(Expression, ASymbolKeepsItsRange) {
  const Expr wide = Expr::symbol("i", 64, uint64_t{1} << 41),
             narrow = Expr::symbol("i", 32, uint64_t{1} << 41);
  EXPECT_EQ(uint64_t{1} << 41, wide->range.most);
  EXPECT_EQ(0xffffffff, narrow->range.most);
  EXPECT_EQ("s64(i)", to_string(s64(narrow)));
  EXPECT_FALSE(wide == narrow);
}

TEST(Expression, LeavesDivisionByZeroAlone) {
  EXPECT_FALSE(divide(c(7), c(0), Sign::Unsigned).as_constant());
  EXPECT_FALSE(remainder(c(7), c(0), Sign::Signed).as_constant());
  EXPECT_FALSE(divide(c(0x80000000), c(0xffffffff), Sign::Signed).as_constant());
}

TEST(Expression, GrowsTooLargeToBeKnown) {
  Expr e = p(0);
  for (uint32_t i = 1; i < 64 && e.known(); ++i) e = bit_xor(e, p(4 * i)) * p(4 * i);
  EXPECT_TRUE(e.known());
  for (uint32_t i = 1; i < 64 && e.known(); ++i) e = bit_xor(e, e * c(3) + p(4 * i));
  EXPECT_FALSE(e.known());
  EXPECT_EQ("unknown", to_string(e));
}

TEST(Affine, SaysWhetherItHoldsOverTheIntegers) {
  const Expr t = special("tid.x");
  EXPECT_EQ("4*tid.x + 16 (exact)", to_string(*affine(t * c(4) + c(16))));
  EXPECT_EQ("tid.x - 1 (exact as signed)", to_string(*affine(t - c(1))));
  EXPECT_EQ("p[0] + 1 (modulo 2^32)", to_string(*affine(p(0) + c(1))));
  EXPECT_EQ("p[0] (exact)", to_string(*affine(p(0))));
  EXPECT_EQ("32 (exact)", to_string(*affine(c(32))));
  EXPECT_EQ("(p[0] + 31) / 32 (exact)", to_string(*affine(divide(p(0) + c(31), c(32), Sign::Signed))));
}

TEST(Affine, IsUnknownForProductsOfSymbols) {
  EXPECT_FALSE(affine(special("ctaid.x") * special("ntid.x")));
  EXPECT_FALSE(affine(Expr()));
}

// ---- against the machine ----

uint64_t mask(uint32_t bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
int64_t as_signed(uint64_t v, uint32_t bits) { return static_cast<int64_t>(v << (64 - bits)) >> (64 - bits); }

// A random expression and its value for given parameters, computed without the normal form.
class Machine {
 public:
  explicit Machine(uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < 3; ++i) values_[i] = interesting();
    thread_ = random_() % 1024;
  }

  struct Pair {
    Expr expr;
    uint64_t value = 0;
  };

  Pair make(uint32_t bits, int depth) {
    if (depth == 0 || random_() % 8 == 0) return leaf(bits);
    Pair a = make(bits, depth - 1);
    const Sign sign = random_() % 2 == 0 ? Sign::Signed : Sign::Unsigned;
    const int64_t x = as_signed(a.value, bits);
    switch (random_() % 12) {
      case 0: {
        const uint32_t from = bits == 64 ? 32 : 64;
        a = make(from, depth - 1);
        const uint64_t wide =
            sign == Sign::Signed ? static_cast<uint64_t>(as_signed(a.value, from)) : a.value;
        return {convert(a.expr, bits, sign), wide & mask(bits)};
      }
      case 1: {
        const uint64_t k = 1 + random_() % 40;
        const uint64_t by = std::min<uint64_t>(k, bits - 1);
        const uint64_t value = sign == Sign::Signed ? static_cast<uint64_t>(x >> by) & mask(bits)
                               : k >= bits          ? 0
                                                    : a.value >> k;
        return {shift_right(a.expr, c(k), sign), value};
      }
      case 2: {
        const uint64_t k = random_() % 40;
        return {shift_left(a.expr, c(k)), k >= bits ? 0 : (a.value << k) & mask(bits)};
      }
      case 3:
        return divided(a, bits, sign, false);
      case 4:
        return divided(a, bits, sign, true);
      default:
        return combined(a, make(bits, depth - 1), bits, sign);
    }
  }

  // The value of a normal form, by substituting the leaves.
  std::optional<uint64_t> evaluate(const Expr& e) const {
    return substitute(e,
                      [&](const Expr& leaf) -> std::optional<Expr> {
                        if (leaf->kind == ExprKind::Parameter)
                          return c(values_[leaf->value] & mask(leaf->bits), leaf->bits);
                        if (leaf->kind == ExprKind::Special) return c(thread_, 32);
                        return std::nullopt;
                      })
        .as_constant();
  }

 private:
  uint64_t interesting() {
    static constexpr uint64_t kEdges[] = {0, 1, 31, 0x7fffffff, 0x80000000, 0xffffffff, 0x8000000000000000};
    return random_() % 2 == 0 ? kEdges[random_() % std::size(kEdges)] : random_();
  }

  Pair leaf(uint32_t bits) {
    const uint64_t which = random_() % 5;
    if (which == 4) {
      return {convert(Expr::special("tid.x"), bits, Sign::Unsigned), thread_};
    }
    if (which == 3) {
      const uint64_t value = interesting() & mask(bits);
      return {c(value, bits), value};
    }
    const auto offset = static_cast<uint32_t>(which);
    return {Expr::parameter(offset, bits), values_[offset] & mask(bits)};
  }

  Pair divided(const Pair& a, uint32_t bits, Sign sign, bool rest) {
    const uint64_t by =
        uint64_t{1} + (random_() % 2 == 0 ? (uint64_t{1} << random_() % 8) - 1 : random_() % 100);
    const auto d = static_cast<int64_t>(by);
    const int64_t x = as_signed(a.value, bits);
    const uint64_t value = sign == Sign::Signed ? static_cast<uint64_t>(rest ? x % d : x / d)
                                                : (rest ? a.value % by : a.value / by);
    return {rest ? remainder(a.expr, c(by, bits), sign) : divide(a.expr, c(by, bits), sign),
            value & mask(bits)};
  }

  Pair combined(const Pair& a, const Pair& b, uint32_t bits, Sign sign) {
    const bool smaller =
        sign == Sign::Signed ? as_signed(a.value, bits) < as_signed(b.value, bits) : a.value < b.value;
    switch (random_() % 8) {
      case 0:
        return {a.expr + b.expr, (a.value + b.value) & mask(bits)};
      case 1:
        return {a.expr - b.expr, (a.value - b.value) & mask(bits)};
      case 2:
        return {a.expr * b.expr, (a.value * b.value) & mask(bits)};
      case 3:
        return {bit_and(a.expr, b.expr), a.value & b.value};
      case 4:
        return {bit_or(a.expr, b.expr), a.value | b.value};
      case 5:
        return {bit_xor(a.expr, b.expr), a.value ^ b.value};
      case 6:
        return {minimum(a.expr, b.expr, sign), smaller ? a.value : b.value};
      default:
        return {maximum(a.expr, b.expr, sign), smaller ? b.value : a.value};
    }
  }

  std::mt19937_64 random_;
  uint64_t values_[3] = {};
  uint64_t thread_ = 0;
};

TEST(Expression, ComputesWhatTheMachineComputes) {
  int known = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Machine machine(seed);
    const uint32_t bits = seed % 2 == 0 ? 32 : 64;
    const auto [expr, value] = machine.make(bits, 4);
    if (!expr.known()) continue;
    ++known;
    ASSERT_EQ(value, machine.evaluate(expr)) << "seed " << seed << ": " << to_string(expr);
    ASSERT_LE(expr->range.least, value) << "seed " << seed << ": " << to_string(expr);
    ASSERT_GE(expr->range.most, value) << "seed " << seed << ": " << to_string(expr);
    ASSERT_LE(expr->range.signed_least, as_signed(value, bits)) << "seed " << seed;
    ASSERT_GE(expr->range.signed_most, as_signed(value, bits)) << "seed " << seed;
  }
  EXPECT_GT(known, 15000);
}

}  // namespace
}  // namespace klap::analysis
