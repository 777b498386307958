#include "analysis/ranges/integer_code.h"

#include <string>
#include <string_view>

#include "analysis/expressions/expression_arithmetic.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

std::string last_type(const Module& m, const Statement& s) {
  return s.modifiers.empty() ? "" : std::string(m.text(s.modifiers.last - 1));
}
uint32_t type_bits(const std::string& type) { return 8 * ptx::type_bytes(type); }
Sign sign_of(const std::string& type) { return type.starts_with(".s") ? Sign::Signed : Sign::Unsigned; }
bool is_word(uint32_t bits) { return bits == 32 || bits == 64; }

// `cvta.to.global.u64 d, a`
Expr converted_address(const Module& m, const Statement& s, const OperandNumber& number) {
  for (const std::string space : {"global", "shared", "const", "local"}) {
    if (!m.has_modifier(s, "." + space)) continue;
    const Expr from = number(1, type_bits(last_type(m, s)));
    return m.has_modifier(s, ".to") ? from_generic(from, space) : to_generic(from, space);
  }
  return {};
}

// `cvt.s64.s32 d, a`
Expr converted_type(const Module& m, const Statement& s, const OperandNumber& number) {
  if (s.modifiers.size() != 2) return {};
  const std::string to(m.text(s.modifiers.first)), from = last_type(m, s);
  const bool is_integer =
      !to.starts_with(".f") && !from.starts_with(".f") && is_word(type_bits(to)) && is_word(type_bits(from));
  return is_integer ? convert(number(1, type_bits(from)), type_bits(to), sign_of(from)) : Expr();
}

// `mul` and `mad`, in the forms .lo and .wide.
Expr product_of(const Module& m, const Statement& s, const std::string& type, const OperandNumber& number) {
  const bool is_wide = m.has_modifier(s, ".wide");
  if (!is_wide && !m.has_modifier(s, ".lo")) return {};
  const uint32_t bits = type_bits(type), result_bits = is_wide ? 2 * bits : bits;
  const auto factor = [&](size_t operand) {
    return convert(number(operand, bits), result_bits, sign_of(type));
  };
  const Expr product = factor(1) * factor(2);
  return m.is(s.head, "mul") ? product : product + number(3, result_bits);
}

}  // namespace

Expr integer_result(const Module& m, const Statement& s, const OperandNumber& number) {
  const std::string_view opcode = m.text(s.head);
  const std::string type = last_type(m, s);
  if (opcode == "cvta") return converted_address(m, s, number);
  if (opcode == "cvt") return converted_type(m, s, number);
  const bool is_predicate = type == ".pred";
  const uint32_t bits = is_predicate ? 32 : type_bits(type);
  const Sign sign = sign_of(type);
  if (!is_word(bits) || type.starts_with(".f")) return {};
  for (uint32_t token = s.modifiers.first; token + 1 < s.modifiers.last; ++token) {
    if (!m.is(token, ".wide") && !m.is(token, ".lo")) return {};
  }
  if (opcode == "mul" || opcode == "mad") return product_of(m, s, type, number);
  const auto in = [&](size_t operand) { return number(operand, bits); };
  if (opcode == "add") return in(1) + in(2);
  if (opcode == "sub") return in(1) - in(2);
  if (opcode == "shl") return shift_left(in(1), number(2, 32));
  if (opcode == "shr") return shift_right(in(1), number(2, 32), sign);
  if (opcode == "and") return bit_and(in(1), in(2));
  if (opcode == "or") return bit_or(in(1), in(2));
  if (opcode == "xor") return bit_xor(in(1), in(2));
  if (opcode == "min") return minimum(in(1), in(2), sign);
  if (opcode == "max") return maximum(in(1), in(2), sign);
  if (opcode == "div") return divide(in(1), in(2), sign);
  if (opcode == "rem") return remainder(in(1), in(2), sign);
  if (opcode == "neg") return -in(1);
  if (opcode == "not")
    return is_predicate ? Expr::constant(1, bits) - in(1) : -in(1) - Expr::constant(1, bits);
  return {};
}

std::optional<bool> comparison_result(const Module& m, const Statement& s, const OperandNumber& number) {
  const std::string type = last_type(m, s);
  const uint32_t bits = type_bits(type);
  const bool is_plain = s.modifiers.size() == 2 && s.operands.size() == 3 && s.operands[0].size() == 1 &&
                        is_word(bits) && !type.starts_with(".f");
  if (!is_plain) return std::nullopt;
  const auto a = number(1, bits).as_constant(), b = number(2, bits).as_constant();
  if (!a || !b) return std::nullopt;
  const auto as_signed = [&](uint64_t value) {
    return bits == 32 ? static_cast<int64_t>(static_cast<int32_t>(value)) : static_cast<int64_t>(value);
  };
  const bool less = sign_of(type) == Sign::Signed ? as_signed(*a) < as_signed(*b) : *a < *b;
  const std::string_view how = m.text(s.modifiers.first);
  if (how == ".eq") return *a == *b;
  if (how == ".ne") return *a != *b;
  if (how == ".lt" || how == ".lo") return less;
  if (how == ".ge" || how == ".hs") return !less;
  if (how == ".le" || how == ".ls") return less || *a == *b;
  if (how == ".gt" || how == ".hi") return !less && *a != *b;
  return std::nullopt;
}

std::pair<uint32_t, bool> shuffled_lane(const Module& m, const Statement& s, uint32_t lane, uint32_t b,
                                        uint32_t c) {
  const uint32_t clamp = c & 31, segment = (c >> 8) & 31;
  const uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int32_t from = 0;
  bool is_there = false;
  if (m.has_modifier(s, ".up")) {
    from = static_cast<int32_t>(lane) - static_cast<int32_t>(b);
    is_there = from >= static_cast<int32_t>(most);
  } else {
    if (m.has_modifier(s, ".down")) from = static_cast<int32_t>(lane + b);
    if (m.has_modifier(s, ".bfly")) from = static_cast<int32_t>(lane ^ b);
    if (m.has_modifier(s, ".idx")) from = static_cast<int32_t>(least | (b & ~segment));
    is_there = from <= static_cast<int32_t>(most);
  }
  return {is_there ? static_cast<uint32_t>(from) : lane, is_there};
}

}  // namespace klap::analysis
