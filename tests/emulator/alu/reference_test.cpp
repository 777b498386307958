// Arithmetic against references of another kind: exact values in 113 bits for everything that rounds, and the
// manual's own bit-by-bit definitions for fields and permutations.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <sstream>

#include "emulator/alu/small_float.h"
#include "run_case.h"

namespace klap::emulator {
namespace {

using Exact = __float128;
constexpr int kTries = 3000;

// One lane's results of an instruction in the suite's notation, "add.rz.f32 | 32 | 32 32".
class Instruction {
 public:
  explicit Instruction(const std::string& text) : case_(suite::parse_case(text + " | " + zeros(text), 0)) {}
  uint64_t operator()(std::initializer_list<uint64_t> values) {
    size_t i = 0;
    for (const uint64_t value : values) case_.values[i++] = {value, 0};
    return suite::run_case(case_, 1)[0].low;
  }

 private:
  static std::string zeros(const std::string& text) {
    std::string values;
    for (const std::string& each : suite::split(suite::split(text, '|')[2], ' '))
      values += each.empty() ? "" : "0 ";
    return values;
  }
  suite::Case case_;
};

uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }
template <class T>
T from_bits(uint64_t bits) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else {
    return std::bit_cast<double>(bits);
  }
}

// The sign of the exact result minus its argument.
using Position = std::function<int(Exact)>;
int sign_of(Exact value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// Whether `result`, with the numbers of its format below and above it, is where the exact value rounds to.
bool is_rounded(const std::string& mode, const Position& exact, Exact below, Exact result, Exact above) {
  const bool down = exact(result) >= 0 && exact(above) < 0;
  const bool up = exact(result) <= 0 && exact(below) > 0;
  if (mode == "rm") return down;
  if (mode == "rp") return up;
  if (mode == "rz") return exact(0) >= 0 ? down : up;
  return exact((result + above) / 2) <= 0 && exact((result + below) / 2) >= 0;
}

// Operands of moderate size, so that the exact results fit into 113 bits.
template <class T>
T moderate(std::mt19937_64& random) {
  std::uniform_int_distribution<int> exponent(-12, 12);
  const int digits = std::numeric_limits<T>::digits;
  const auto mantissa = static_cast<T>(random() >> (64 - digits) | 1ull << (digits - 1));
  return std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent(random) - digits);
}

template <class T>
class Rounding : public testing::Test {
 protected:
  // `position` says where the exact result of the operands lies.
  void expect_rounded(const std::string& opcode, size_t operands,
                      const std::function<int(const std::vector<Exact>&, Exact)>& position) {
    const int width = sizeof(T) * 8;
    for (const char* mode : {"rn", "rz", "rm", "rp"}) {
      std::ostringstream text;
      text << opcode << "." << mode << ".f" << width << " | " << width << " |";
      for (size_t i = 0; i < operands; ++i) text << " " << width;
      Instruction instruction(text.str());
      for (int i = 0; i < kTries; ++i) {
        const T a = opcode == "sqrt" ? std::fabs(moderate<T>(random_)) : moderate<T>(random_);
        const T b = moderate<T>(random_), c = moderate<T>(random_);
        const auto bits = operands == 1   ? instruction({bits_of(a)})
                          : operands == 2 ? instruction({bits_of(a), bits_of(b)})
                                          : instruction({bits_of(a), bits_of(b), bits_of(c)});
        const T result = from_bits<T>(bits), infinity = std::numeric_limits<T>::infinity();
        const std::vector<Exact> values{a, b, c};
        EXPECT_TRUE(is_rounded(
            mode, [&](Exact at) { return position(values, at); }, std::nextafter(result, -infinity), result,
            std::nextafter(result, infinity)))
            << opcode << "." << mode << " of " << a << ", " << b << ", " << c << " is " << result;
      }
    }
  }

 private:
  std::mt19937_64 random_{7};
};
using Widths = testing::Types<float, double>;
TYPED_TEST_SUITE(Rounding, Widths);

TYPED_TEST(Rounding, Sum) {
  this->expect_rounded("add", 2, [](const auto& v, Exact at) { return sign_of(v[0] + v[1] - at); });
  this->expect_rounded("sub", 2, [](const auto& v, Exact at) { return sign_of(v[0] - v[1] - at); });
}
TYPED_TEST(Rounding, Product) {
  this->expect_rounded("mul", 2, [](const auto& v, Exact at) { return sign_of(v[0] * v[1] - at); });
}
TYPED_TEST(Rounding, Quotient) {
  this->expect_rounded("div", 2,
                       [](const auto& v, Exact at) { return sign_of(v[0] - at * v[1]) * sign_of(v[1]); });
  this->expect_rounded("rcp", 1,
                       [](const auto& v, Exact at) { return sign_of(1 - at * v[0]) * sign_of(v[0]); });
}
TYPED_TEST(Rounding, Root) {
  this->expect_rounded("sqrt", 1,
                       [](const auto& v, Exact at) { return at < 0 ? 1 : sign_of(v[0] - at * at); });
}

// The exact a * b + c of doubles may need more than 113 bits, that of floats does not.
TEST(RoundingOfFma, InSinglePrecision) {
  std::mt19937_64 random(11);
  for (const char* mode : {"rn", "rz", "rm", "rp"}) {
    Instruction fma(std::string("fma.") + mode + ".f32 | 32 | 32 32 32");
    for (int i = 0; i < kTries; ++i) {
      const float a = moderate<float>(random), b = moderate<float>(random), c = moderate<float>(random);
      const auto result = from_bits<float>(fma({bits_of(a), bits_of(b), bits_of(c)}));
      const auto position = [&](Exact at) { return sign_of(Exact{a} * b + c - at); };
      EXPECT_TRUE(is_rounded(mode, position, std::nextafter(result, -INFINITY), result,
                             std::nextafter(result, INFINITY)))
          << mode << " of " << a << ", " << b << ", " << c << " is " << result;
    }
  }
}

template <class Format>
class SmallFloat : public testing::Test {};
struct HalfFormat {
  static constexpr const alu::SmallFormat& format = alu::kHalf;
  static constexpr const char* name = ".f16";
};
struct BFloatFormat {
  static constexpr const alu::SmallFormat& format = alu::kBFloat;
  static constexpr const char* name = ".bf16";
};
struct E4M3Format {
  static constexpr const alu::SmallFormat& format = alu::kE4M3;
};
struct E5M2Format {
  static constexpr const alu::SmallFormat& format = alu::kE5M2;
};
using Formats = testing::Types<HalfFormat, BFloatFormat, E4M3Format, E5M2Format>;
TYPED_TEST_SUITE(SmallFloat, Formats);

TYPED_TEST(SmallFloat, EveryNumberComesBack) {
  const alu::SmallFormat& format = TypeParam::format;
  const uint32_t sign = 1u << (format.mantissa + format.exponent);
  for (uint32_t bits = 0; bits <= format.largest; ++bits) {
    EXPECT_EQ(alu::encode(format, alu::decode(format, bits)), bits);
    EXPECT_EQ(alu::encode(format, alu::decode(format, bits | sign)), bits | sign);
    EXPECT_TRUE(bits == 0 || alu::decode(format, bits) > alu::decode(format, bits - 1));
  }
}

TYPED_TEST(SmallFloat, WhatLiesBetweenRounds) {
  const alu::SmallFormat& format = TypeParam::format;
  for (uint32_t bits = 0; bits < format.largest; ++bits) {
    const double low = alu::decode(format, bits), high = alu::decode(format, bits + 1);
    const double middle = (low + high) / 2;
    const auto check = [&](double value, alu::Rounding rounding, uint32_t expected) {
      EXPECT_EQ(alu::encode(format, value, rounding), expected) << value;
    };
    check(middle, alu::Rounding::Nearest, (bits & 1) != 0 ? bits + 1 : bits);
    check(middle, alu::Rounding::NearestAway, bits + 1);
    check(std::nextafter(middle, low), alu::Rounding::Nearest, bits);
    check(std::nextafter(middle, high), alu::Rounding::Nearest, bits + 1);
    check(std::nextafter(high, low), alu::Rounding::Zero, bits);
    check(std::nextafter(high, low), alu::Rounding::Down, bits);
    check(std::nextafter(low, high), alu::Rounding::Up, bits + 1);
  }
}

template <class Format>
void expect_half_fma_rounded() {
  std::mt19937_64 random(13);
  Instruction fma(std::string("fma.rn") + Format::name + " | 16 | 16 16 16");
  const alu::SmallFormat& format = Format::format;
  const uint32_t sign = 0x8000;
  int checked = 0;
  for (int i = 0; i < 20 * kTries; ++i) {
    // The third operand is often near the first two's product, and often far below it.
    const auto any = [&] { return static_cast<uint32_t>(random() & 0xffff); };
    const uint32_t a = any(), b = any(), c = any();
    if (((a | b | c) & format.largest) > format.largest) continue;
    const Exact exact =
        Exact{alu::decode(format, a)} * Exact{alu::decode(format, b)} + Exact{alu::decode(format, c)};
    const auto bits = static_cast<uint32_t>(fma({a, b, c}));
    const uint32_t magnitude = bits & ~sign;
    if (magnitude == 0 || magnitude >= format.largest || exact != exact) continue;
    ++checked;
    const Exact absolute = exact < 0 ? -exact : exact;
    EXPECT_EQ((bits & sign) != 0, exact < 0);
    EXPECT_TRUE(is_rounded(
        "rn", [&](Exact at) { return sign_of(absolute - at); }, alu::decode(format, magnitude - 1),
        alu::decode(format, magnitude), alu::decode(format, magnitude + 1)))
        << std::hex << a << " " << b << " " << c << " " << bits;
  }
  EXPECT_GT(checked, kTries);
}
TEST(RoundingOfFma, InHalfPrecision) {
  expect_half_fma_rounded<HalfFormat>();
  expect_half_fma_rounded<BFloatFormat>();
}

// The manual's definitions, bit by bit.
uint64_t bit(uint64_t value, uint32_t index) { return value >> index & 1; }

uint64_t extract(uint64_t a, uint32_t position, uint32_t length, uint32_t bits, bool is_signed) {
  const uint32_t top = bits - 1;
  const uint64_t sign = !is_signed || length == 0 ? 0 : bit(a, std::min(position + length - 1, top));
  uint64_t result = 0;
  for (uint32_t i = 0; i <= top; ++i) {
    result |= (i < length && position + i <= top ? bit(a, position + i) : sign) << i;
  }
  return result;
}
uint64_t insert(uint64_t a, uint64_t b, uint32_t position, uint32_t length, uint32_t bits) {
  for (uint32_t i = 0; i < length && position + i < bits; ++i) {
    b = (b & ~(1ull << (position + i))) | bit(a, i) << (position + i);
  }
  return b;
}

TEST(Bits, FieldsAreAsTheManualDefinesThem) {
  std::mt19937_64 random(17);
  for (const uint32_t bits : {32u, 64u}) {
    const auto field = [&](const char* opcode, int operands) {
      std::ostringstream text;
      text << opcode << bits << " | " << bits << " |";
      for (int i = 0; i < operands; ++i) text << " " << bits;
      text << " 32 32";
      return Instruction(text.str());
    };
    Instruction bfe_u = field("bfe.u", 1), bfe_s = field("bfe.s", 1), bfi = field("bfi.b", 2);
    for (int i = 0; i < kTries; ++i) {
      const uint64_t a = random() >> (64 - bits), b = random() >> (64 - bits);
      const auto position = static_cast<uint32_t>(random() % 80),
                 length = static_cast<uint32_t>(random() % 80);
      EXPECT_EQ(bfe_u({a, position, length}), extract(a, position, length, bits, false));
      EXPECT_EQ(bfe_s({a, position, length}), extract(a, position, length, bits, true));
      EXPECT_EQ(bfi({a, b, position, length}), insert(a, b, position, length, bits));
    }
  }
}

TEST(Bits, LookUpTablesAreAsTheManualDefinesThem) {
  std::mt19937 random(19);
  for (uint32_t table = 0; table < 256; ++table) {
    Instruction lop3("lop3.b32 | 32 | 32 32 32 imm");
    const uint32_t a = random(), b = random(), c = random();
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      const auto index = static_cast<uint32_t>(bit(a, i) << 2 | bit(b, i) << 1 | bit(c, i));
      expected |= (table >> index & 1) << i;
    }
    EXPECT_EQ(lop3({a, b, c, table}), expected) << table;
  }
}

// 64-bit products and 128-bit sums from pieces, with the carry going from one to the next.
TEST(Carry, ChainsMakeWideNumbers) {
  std::mt19937_64 random(23);
  using Wide = unsigned __int128;
  const auto run = [](const std::string& line, std::initializer_list<uint64_t> values) {
    suite::Case each = suite::parse_case(line, 0);
    size_t i = 0;
    for (const uint64_t value : values) each.values[i++] = {value, 0};
    return suite::run_case(each, 1);
  };
  for (int i = 0; i < 300; ++i) {
    const uint64_t a = random(), b = random(), c = random(), d = random();
    const Wide x = Wide{a} << 64 | b, y = Wide{c} << 64 | d;
    const auto low = run("add.cc.u64 | 64 cc | 64 64 | 0 0", {b, d});
    const auto high = run("addc.u64 | 64 | 64 64 cc | 0 0 0", {a, c, low[1].low});
    EXPECT_TRUE((Wide{high[0].low} << 64 | low[0].low) == x + y);
    const auto low_less = run("sub.cc.s64 | 64 cc | 64 64 | 0 0", {b, d});
    const auto high_less = run("subc.s64 | 64 | 64 64 cc | 0 0 0", {a, c, low_less[1].low});
    EXPECT_TRUE((Wide{high_less[0].low} << 64 | low_less[0].low) == x - y);
    // The textbook multiply-add of 64 bits: lo(a b) + c, then hi(a b) + d + carry.
    const auto sum = run("mad.lo.cc.u64 | 64 cc | 64 64 64 | 0 0 0", {a, b, c});
    const auto top = run("madc.hi.u64 | 64 | 64 64 64 cc | 0 0 0 0", {a, b, d, sum[1].low});
    EXPECT_TRUE((Wide{top[0].low} << 64 | sum[0].low) == Wide{a} * b + (Wide{d} << 64 | c));
  }
}

}  // namespace
}  // namespace klap::emulator
