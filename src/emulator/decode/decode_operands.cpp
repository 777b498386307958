// Registers, immediates, symbols and addresses.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/decode/decode_constant.h"
#include "emulator/decode/decode_function.h"
#include "emulator/decode/decode_special.h"

namespace klap::emulator {

using ptx::TokenKind;
using ptx::TokenRange;

// ---- taking text apart ----

std::vector<TokenRange> FunctionDecoder::split(TokenRange range, std::string_view separator) const {
  std::vector<TokenRange> out;
  int depth = 0;
  uint32_t from = range.first;
  for (uint32_t t = range.first; t < range.last; ++t) {
    const char c = m_.text(t)[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth != 0 || !m_.is(t, separator)) continue;
    out.push_back({from, t});
    from = t + 1;
  }
  if (from < range.last || !out.empty()) out.push_back({from, range.last});
  return out;
}

std::vector<TokenRange> FunctionDecoder::elements(TokenRange range) const {
  if (range.size() < 2) unsupported_at(range.first, "operand without brackets");
  return split({range.first + 1, range.last - 1}, ",");
}

std::vector<TokenRange> FunctionDecoder::destinations_of(TokenRange range) const { return split(range, "|"); }

// ---- registers ----

std::optional<FunctionDecoder::RegisterUse> FunctionDecoder::register_use(TokenRange range) const {
  if (range.empty() || m_.tokens[range.first].kind != TokenKind::Identifier) return std::nullopt;
  const uint32_t reg = registers_.find(at_, m_.text(range.first));
  if (reg == analysis::VirtualRegisters::kNone) return std::nullopt;
  const analysis::VirtualRegister& r = registers_[reg];
  RegisterUse out{reg, columns_.first[reg], r.lanes, r.is_predicate() ? 1 : 8 * ptx::type_bytes(r.type)};
  if (range.size() == 1) return out;
  const std::string_view component = m_.text(range.first + 1);
  static constexpr std::string_view kComponents[] = {".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a"};
  const auto* const found = std::find(std::begin(kComponents), std::end(kComponents), component);
  const auto lane = static_cast<uint32_t>(found - std::begin(kComponents)) % 4;
  if (range.size() != 2 || found == std::end(kComponents) || lane >= r.lanes || r.lanes == 1) {
    unsupported_at(range.first, fmt::format("operand '{}'", m_.text(range)));
  }
  out.column += lane * lane_columns(r);
  out.lanes = 1;
  return out;
}

uint8_t FunctionDecoder::register_bits(TokenRange range) const {
  if (!range.empty() && m_.is(range.first, "!")) ++range.first;
  const auto use = register_use(range);
  return use ? static_cast<uint8_t>(use->bits) : 0;
}

Operand FunctionDecoder::destination(TokenRange range) {
  if (range.size() == 1 && m_.is(range.first, "_")) return {};
  const auto use = register_use(range);
  if (!use || use->lanes != 1) {
    unsupported_at(range.first, fmt::format("'{}' as a destination", m_.text(range)));
  }
  return {Operand::From::Register, use->column};
}

Operand FunctionDecoder::predicate(TokenRange range, bool& negated) {
  negated = !range.empty() && m_.is(range.first, "!");
  if (negated) ++range.first;
  return source(range, {.bits = 1});
}

// ---- sources ----

Operand FunctionDecoder::source(TokenRange range, OperandForm form) {
  if (range.empty()) unsupported("missing operand");
  if (const auto use = register_use(range)) {
    if (use->lanes != 1) unsupported_at(range.first, "vector register as a scalar operand");
    return {Operand::From::Register, use->column};
  }
  const std::string_view text = m_.text(range.first);
  if (text.starts_with('%') && text.size() > 1) {
    const std::string_view component = range.size() == 2 ? m_.text(range.first + 1) : std::string_view();
    const auto special = find_special(text, component);
    if (!special || range.size() > 2) unsupported_at(range.first, fmt::format("'{}'", m_.text(range)));
    return {Operand::From::Special, static_cast<uint32_t>(*special)};
  }
  ConstantReader reader(m_, range);
  const ConstantValue value = reader.read();
  if (!reader.at_end() || value.is_generic || value.mask != ~0ull) {
    unsupported_at(range.first, fmt::format("operand '{}'", m_.text(range)));
  }
  if (value.kind != ConstantValue::Kind::Symbol) {
    if (form.bits == 128) return constant128(bits_of(m_, value, {64, false}));
    return constant(bits_of(m_, value, form));
  }
  const SymbolPlace place = place_of(value.token);
  return with_offset({place.base, static_cast<int64_t>(value.bits), place.space});
}

std::vector<Operand> FunctionDecoder::vector_source(TokenRange range, OperandForm form) {
  std::vector<Operand> out;
  if (m_.is(range.first, "{")) {
    for (const TokenRange element : elements(range)) out.push_back(source(element, form));
    return out;
  }
  const auto use = register_use(range);
  if (!use || use->lanes == 1) return {source(range, form)};
  for (uint32_t lane = 0; lane < use->lanes; ++lane) {
    out.push_back({Operand::From::Register, use->column + lane * lane_columns(registers_[use->reg])});
  }
  return out;
}

std::vector<Operand> FunctionDecoder::vector_destination(TokenRange range, uint8_t& bits) {
  std::vector<Operand> out;
  bits = 0;
  if (m_.is(range.first, "{")) {
    for (const TokenRange element : elements(range)) {
      out.push_back(destination(element));
      bits = std::max(bits, register_bits(element));
    }
    return out;
  }
  bits = register_bits(range);
  const auto use = register_use(range);
  if (!use || use->lanes == 1) return {destination(range)};
  for (uint32_t lane = 0; lane < use->lanes; ++lane) {
    out.push_back({Operand::From::Register, use->column + lane * lane_columns(registers_[use->reg])});
  }
  return out;
}

Operand FunctionDecoder::constant(uint64_t value) {
  const auto [entry, is_new] =
      constants_.emplace(value, static_cast<uint32_t>(out_.constants.size() / kLanes));
  if (is_new) out_.constants.insert(out_.constants.end(), kLanes, value);
  return {Operand::From::Constant, entry->second};
}

Operand FunctionDecoder::constant128(uint64_t low) {
  const auto index = static_cast<uint32_t>(out_.constants.size() / kLanes);
  out_.constants.insert(out_.constants.end(), kLanes, low);
  out_.constants.insert(out_.constants.end(), kLanes, 0);
  return {Operand::From::Constant, index};
}

uint32_t FunctionDecoder::temporary(uint32_t columns) {
  out_.columns += columns;
  return out_.columns - columns;
}

// ---- symbols and addresses ----

FunctionDecoder::SymbolPlace FunctionDecoder::place_of(uint32_t token) {
  const std::string_view name = m_.text(token);
  const LocalName* local = scopes_.find(scope(), name);
  if (local != nullptr && local->kind == LocalName::Kind::Frame) {
    return {{Operand::From::LocalVariable, local->offset}, Space::Local};
  }
  if (local != nullptr && local->kind == LocalName::Kind::KernelParameter) {
    return {constant(local->offset), Space::Param};
  }
  const Symbol symbol = local != nullptr ? local->symbol : linker_.find(m_, name, token);
  switch (symbol.kind) {
    case Symbol::Kind::Function:
      return {constant(linker_.address_of_function(symbol.index)), Space::Generic, true};
    case Symbol::Kind::Variable: {
      const Variable& v = linker_.image().variables[symbol.index];
      return {constant(v.address), v.is_const ? Space::Const : Space::Global};
    }
    case Symbol::Kind::Shared:
      if (std::find(out_.shared.begin(), out_.shared.end(), symbol.index) == out_.shared.end()) {
        out_.shared.push_back(symbol.index);
      }
      return {{Operand::From::SharedVariable, symbol.index}, Space::Shared};
    case Symbol::Kind::Texture:
    case Symbol::Kind::None:
      break;
  }
  unsupported_at(token, fmt::format("'{}' as an operand", name));
}

// The operand for a place in one piece.
Operand FunctionDecoder::with_offset(const AddressPlace& place) {
  Operand out = place.base;
  if (place.offset == 0) return out;
  switch (out.from) {
    case Operand::From::SharedVariable:
      out.add += place.offset;
      return out;
    case Operand::From::LocalVariable:
      if (place.offset < 0) unsupported("address before the variable that it names");
      out.index += static_cast<uint32_t>(place.offset);
      return out;
    case Operand::From::Constant:
      return constant(out_.constants[uint64_t{out.index} * kLanes] + static_cast<uint64_t>(place.offset));
    default:
      unsupported("address that is not a register or a symbol");
  }
}

// `[reg]`, `[reg+12]`, `[symbol+-4]`, `[4096]`; `.unified` may follow and says nothing here.
FunctionDecoder::AddressPlace FunctionDecoder::address(TokenRange range) {
  if (range.empty() || !m_.is(range.first, "[")) unsupported("operand that is no address");
  if (m_.is(range.last - 1, ".unified")) --range.last;
  if (!m_.is(range.last - 1, "]")) unsupported_at(range.last - 1, "text after an address");
  return address_inside({range.first + 1, range.last - 1});
}

FunctionDecoder::AddressPlace FunctionDecoder::address_inside(TokenRange range) {
  if (range.empty()) unsupported("empty address");
  const TokenRange name{range.first, range.first + 1};
  AddressPlace out;
  if (register_use(name)) {
    out.base = source(name, {.bits = 64});
    if (range.size() == 1) return out;
    const bool plus = m_.is(range.first + 1, "+");
    if (!plus && !m_.is(range.first + 1, "-")) {
      unsupported_at(range.first, fmt::format("address '{}'", m_.text(range)));
    }
    ConstantReader reader(m_, {range.first + (plus ? 2 : 1), range.last});
    const ConstantValue value = reader.read();
    if (!reader.at_end() || value.kind != ConstantValue::Kind::Integer) {
      unsupported_at(range.first, fmt::format("address '{}'", m_.text(range)));
    }
    out.offset = static_cast<int64_t>(value.bits);
    return out;
  }
  ConstantReader reader(m_, range);
  const ConstantValue value = reader.read();
  if (!reader.at_end() || value.is_generic || value.mask != ~0ull) {
    unsupported_at(range.first, fmt::format("address '{}'", m_.text(range)));
  }
  if (value.kind != ConstantValue::Kind::Symbol) {
    out.base = constant(bits_of(m_, value, {64, false}));
    return out;
  }
  const SymbolPlace place = place_of(value.token);
  if (place.is_function) unsupported_at(value.token, "access to a function");
  return {place.base, static_cast<int64_t>(value.bits), place.space};
}

}  // namespace klap::emulator
