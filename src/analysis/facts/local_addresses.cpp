#include "analysis/facts/local_addresses.h"

#include <algorithm>
#include <bit>

namespace klap::analysis {

using ptx::Statement;

bool overlap(const LocalPlace& a, const LocalPlace& b) {
  if (a.variable != b.variable) return false;
  if (!a.offset || !b.offset) return true;
  return *a.offset < *b.offset + b.bytes && *b.offset < *a.offset + a.bytes;
}

LocalAddresses::LocalAddresses(const FlowFacts& kernel) : m_(kernel.module), k_(kernel) {
  ptx::for_each_statement(kernel.function.body, [&](const Statement& s) {
    if (s.kind != ptx::StatementKind::Directive || !m_.is(s.head, ".local")) return;
    uint64_t alignment = 1;
    for (uint32_t t = s.head; t < s.tokens.last; ++t) {
      if (m_.is(t, ".align")) alignment = ptx::integer_value(m_.text(t + 1)).value_or(1);
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      const auto known = alignments_.emplace(m_.text(t), alignment).first;
      known->second = std::min(known->second, alignment);
      return;
    }
  });
}

std::optional<LocalPlace> LocalAddresses::of(std::string_view name) {
  if (alignments_.contains(name)) return LocalPlace{name, 0};
  if (!k_.data.names().is_register(name)) return std::nullopt;
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  known_[name] = std::nullopt;  // a value that depends on itself is not followed
  return known_[name] = joined(name);
}

std::optional<LocalPlace> LocalAddresses::of_memory(const Statement& s, size_t operand) {
  const auto address = parse_address(m_, s.operands[operand]);
  auto place = address ? of(address->base) : std::nullopt;
  if (!place) return std::nullopt;
  const uint32_t bytes = s.modifiers.empty() ? 0 : ptx::type_bytes(m_.text(s.modifiers.last - 1));
  const int64_t lanes = m_.has_modifier(s, ".v8")   ? 8
                        : m_.has_modifier(s, ".v4") ? 4
                        : m_.has_modifier(s, ".v2") ? 2
                                                    : 1;
  place->bytes = lanes * bytes;
  if (bytes == 0) place->offset.reset();
  if (place->offset) *place->offset += address->offset;
  return place;
}

std::optional<LocalPlace> LocalAddresses::joined(std::string_view name) {
  std::optional<LocalPlace> out;
  for (uint32_t d : k_.data.definitions(name)) {
    const auto place = value(*k_.flow.instructions()[d].statement);
    if (!place || (out && out->variable != place->variable)) return std::nullopt;
    if (out && out->offset != place->offset) {
      out->offset.reset();
    } else {
      out = place;
    }
  }
  return out;
}

std::optional<LocalPlace> LocalAddresses::value(const Statement& s) {
  if (s.operands.size() < 2 || s.operands[1].size() != 1) return std::nullopt;
  const std::string_view opcode = m_.text(s.head);
  auto place = of(m_.text(s.operands[1]));
  if (s.operands.size() == 2 && (opcode == "mov" || opcode == "cvta")) return place;
  if (s.operands.size() != 3 || (opcode != "add" && opcode != "or")) return std::nullopt;
  if (!place) place = of(m_.text(s.operands[2]));
  if (!place) return std::nullopt;
  const auto constant = k_.data.constant(m_.compact(s.operands[2]));
  const bool adds = constant && place->offset && (opcode == "add" || is_apart(*place, *constant));
  if (adds) {
    *place->offset += static_cast<int64_t>(*constant);
  } else {
    place->offset.reset();
  }
  return place;
}

// `or` adds where no bit is set in both: bits that the variable's alignment leaves to the offset.
bool LocalAddresses::is_apart(const LocalPlace& place, uint64_t constant) const {
  const uint64_t alignment = alignments_.at(place.variable);
  const auto offset = static_cast<uint64_t>(*place.offset);
  return std::has_single_bit(alignment) && constant < alignment && (offset & constant) == 0;
}

}  // namespace klap::analysis
