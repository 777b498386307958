// Reading constant expressions by precedence climbing.
#include "emulator/decode/decode_constant.h"

#include <bit>
#include <charconv>

namespace klap::emulator {

using ConstantKind = ConstantValue::Kind;
using ptx::TokenKind;

Error error_at(ErrorCode code, const ptx::Module& module, uint32_t token, const std::string& reason) {
  const uint32_t offset = module.tokens[token].begin;
  const ptx::Position where = ptx::position_of(module.source, offset);
  return Error(code, reason)
      .at(module.name, where.line, where.column)
      .source_line(ptx::line_at(module.source, offset));
}

void ConstantReader::fail(ErrorCode code, const std::string& reason) const {
  throw error_at(code, module_, at_ < last_ || at_ == 0 ? at_ : at_ - 1, reason);
}

bool ConstantReader::accept(std::string_view text) {
  if (!is(at_, text)) return false;
  ++at_;
  return true;
}

namespace {

// The precedence of an operator, as in C.
int precedence(std::string_view op) {
  if (op == "|") return 1;
  if (op == "^") return 2;
  if (op == "&") return 3;
  if (op == "<<" || op == ">>") return 4;
  if (op == "+" || op == "-") return 5;
  if (op == "*" || op == "/" || op == "%") return 6;
  return 0;
}

uint64_t integer(std::string_view op, uint64_t a, uint64_t b) {
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "<<") return b < 64 ? a << b : 0;
  if (op == ">>") return static_cast<uint64_t>(x >> (b < 64 ? b : 63));
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (y == -1) return op == "/" ? 0 - a : 0;  // INT64_MIN / -1 is undefined in C++
  return static_cast<uint64_t>(op == "/" ? x / y : x % y);
}

}  // namespace

std::string_view ConstantReader::binary_operator(uint32_t& tokens) const {
  if (at_ >= last_) return {};
  const std::string_view one = module_.text(at_);
  tokens = one == "<" || one == ">" ? 2 : 1;
  if (tokens == 1) return one;
  if (!is(at_ + 1, one)) return {};
  return one == "<" ? "<<" : ">>";
}

ConstantValue ConstantReader::binary(int lowest) {
  ConstantValue value = unary();
  for (;;) {
    uint32_t tokens = 0;
    const std::string_view op = binary_operator(tokens);
    const int level = precedence(op);
    if (level == 0 || level <= lowest) return value;
    at_ += tokens;
    const ConstantValue right = binary(level);
    value = combined(op, value, right);
  }
}

ConstantValue ConstantReader::combined(std::string_view op, const ConstantValue& a,
                                       const ConstantValue& b) const {
  ConstantValue out = a;
  const bool plain = a.mask == ~0ull && b.mask == ~0ull;
  if (a.kind == ConstantKind::Integer && b.kind == ConstantKind::Integer) {
    if ((op == "/" || op == "%") && b.bits == 0) fail(ErrorCode::Parse, "division by zero");
    out.bits = integer(op, a.bits, b.bits);
    return out;
  }
  if (a.kind == ConstantKind::Symbol && b.kind == ConstantKind::Integer && plain &&
      (op == "+" || op == "-")) {
    out.bits = integer(op, a.bits, b.bits);
    return out;
  }
  if (a.kind == ConstantKind::Integer && b.kind == ConstantKind::Symbol && plain && op == "+") {
    out = b;
    out.bits += a.bits;
    return out;
  }
  fail(ErrorCode::Unsupported, "constant expression that is not a number or a symbol with an offset");
}

ConstantValue ConstantReader::unary() {
  constexpr int kDeepest = 200;  // garbage input must not exhaust the stack
  if (++depth_ > kDeepest) fail(ErrorCode::Parse, "constant expression is nested too deeply");
  const ConstantValue value = signed_value();
  --depth_;
  return value;
}

ConstantValue ConstantReader::signed_value() {
  if (accept("+")) return unary();
  if (accept("-")) {
    ConstantValue value = unary();
    if (value.kind == ConstantKind::Symbol) fail(ErrorCode::Unsupported, "negated address");
    if (value.kind == ConstantKind::Integer) value.bits = 0 - value.bits;
    if (value.kind == ConstantKind::Single) value.bits ^= 1ull << 31;
    if (value.kind == ConstantKind::Double) value.bits ^= 1ull << 63;
    return value;
  }
  if (is(at_, "~") || is(at_, "!")) {
    const bool logical = is(at_++, "!");
    ConstantValue value = unary();
    if (value.kind != ConstantKind::Integer) fail(ErrorCode::Unsupported, "complement of what is no integer");
    value.bits = logical ? (value.bits == 0 ? 1 : 0) : ~value.bits;
    return value;
  }
  return primary();
}

ConstantValue ConstantReader::primary() {
  if (at_ >= last_) fail(ErrorCode::Parse, "expected a constant");
  ConstantValue value;
  value.token = at_;
  if (accept("(")) {
    const bool cast = at_ < last_ && module_.tokens[at_].kind == TokenKind::Dotted;
    if (cast)
      ++at_;
    else
      value = binary(0);
    if (!accept(")")) fail(ErrorCode::Parse, "expected ')' in a constant expression");
    return cast ? unary() : value;
  }
  if (module_.tokens[at_].kind == TokenKind::Number) return number();
  if (module_.tokens[at_].kind != TokenKind::Identifier) fail(ErrorCode::Parse, "expected a constant");
  if (module_.is(at_, "WARP_SZ")) {
    ++at_;
    value.bits = kLanes;
    return value;
  }
  const bool generic = module_.is(at_, "generic") && is(at_ + 1, "(");
  if (generic) {
    at_ += 2;
    value = binary(0);
    if (!accept(")")) fail(ErrorCode::Parse, "expected ')' after generic(");
    value.is_generic = true;
    return value;
  }
  value.kind = ConstantKind::Symbol;
  ++at_;
  return value;
}

ConstantValue ConstantReader::number() {
  const std::string_view text = module_.text(at_);
  ConstantValue value;
  value.token = at_;
  const char form = text.size() > 1 && text[0] == '0' ? text[1] : '\0';
  const bool single = form == 'f' || form == 'F', pattern = single || form == 'd' || form == 'D';
  if (pattern) {
    value.kind = single ? ConstantKind::Single : ConstantKind::Double;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + 2, end, value.bits, 16);
    if (error != std::errc() || stop != end || text.size() != (single ? 10 : 18)) {
      fail(ErrorCode::Parse, "malformed floating-point number");
    }
  } else if (const auto read = ptx::integer_value(text)) {
    value.bits = *read;
  } else {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) fail(ErrorCode::Parse, "malformed number");
    value.kind = ConstantKind::Double;
    value.bits = std::bit_cast<uint64_t>(number);
  }
  ++at_;
  if (value.kind == ConstantKind::Integer && accept("(")) {  // a mask on an address
    const uint64_t mask = value.bits;
    value = binary(0);
    if (!accept(")")) fail(ErrorCode::Parse, "expected ')' after a masked address");
    if (value.kind != ConstantKind::Symbol || value.mask != ~0ull || mask == 0) {
      fail(ErrorCode::Unsupported, "mask on what is no address");
    }
    value.mask = mask;
  }
  return value;
}

uint64_t bits_of(const ptx::Module& module, const ConstantValue& value, OperandForm form) {
  const uint64_t kept = form.bits >= 64 ? ~0ull : (1ull << form.bits) - 1;
  switch (value.kind) {
    case ConstantKind::Integer:
      // A 16-bit float can only be written as a pattern.
      if (form.is_float && form.bits > 16) {
        throw error_at(ErrorCode::Parse, module, value.token,
                       "integer where a floating-point number belongs");
      }
      return form.bits == 1 ? (value.bits != 0 ? 1 : 0) : value.bits & kept;
    case ConstantKind::Single:
      if (form.bits == 32) return value.bits;
      if (form.is_float && form.bits == 64) {
        return std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(value.bits))});
      }
      break;
    case ConstantKind::Double:
      if (form.bits == 64) return value.bits;
      if (form.is_float && form.bits == 32)
        return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value.bits)));
      break;
    case ConstantKind::Symbol:
      break;
  }
  throw error_at(ErrorCode::Parse, module, value.token, "constant does not fit the operand");
}

}  // namespace klap::emulator
