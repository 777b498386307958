// Views over the token tree.
#include "ptx/tree.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>

namespace klap::ptx {

std::string_view Module::text(TokenRange range) const {
  if (range.empty()) return {};
  const uint32_t begin = tokens[range.first].begin;
  return std::string_view(source).substr(begin, tokens[range.last - 1].end - begin);
}

std::string Module::compact(TokenRange range) const {
  std::string out;
  for (uint32_t i = range.first; i < range.last; ++i) {
    const bool gap = i > range.first && tokens[i].begin > tokens[i - 1].end;
    if (gap && text(i) != "," && text(i) != ";") out += ' ';
    out += text(i);
  }
  return out;
}

int Module::line(uint32_t token) const { return position(token).line; }

namespace {

const MadeFrom::Part* part_of(const MadeFrom& made_from, uint32_t offset) {
  const auto behind = std::ranges::upper_bound(made_from.parts, offset, std::less(), &MadeFrom::Part::begin);
  return behind == made_from.parts.begin() ? nullptr : &*std::prev(behind);
}

}  // namespace

Position Module::position(uint32_t token) const { return position_at(tokens[token].begin); }

Position Module::position_at(uint32_t offset) const {
  const MadeFrom::Part* const part = part_of(made_from, offset);
  if (part == nullptr) return position_of(lines, offset);
  return made_from.module->position_at(part->source + (part->copied ? offset - part->begin : 0));
}

std::string_view Module::through(uint32_t token) const {
  const MadeFrom::Part* const part = part_of(made_from, tokens[token].begin);
  return part == nullptr ? std::string_view() : part->through;
}

const Function* Module::find_function(std::string_view function) const {
  const Function* declaration = nullptr;
  for (const Function& candidate : functions) {
    if (candidate.name != function) continue;
    if (candidate.is_definition) return &candidate;
    declaration = &candidate;
  }
  return declaration;
}

const Variable* Module::find_variable(std::string_view variable) const {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const Variable& candidate) {
    return candidate.range == 0 ? candidate.name == variable
                                : in_range(variable, candidate.name, candidate.range);
  });
  return found == variables.end() ? nullptr : &*found;
}

std::string Module::full_opcode(const Statement& instruction) const {
  std::string out(text(instruction.head));
  for (uint32_t i = instruction.modifiers.first; i < instruction.modifiers.last; ++i) out += text(i);
  return out;
}

bool Module::has_modifier(const Statement& instruction, std::string_view modifier) const {
  for (uint32_t i = instruction.modifiers.first; i < instruction.modifiers.last; ++i) {
    if (text(i) == modifier) return true;
  }
  return false;
}

Error Module::error_at(uint32_t token, const std::string& reason) const {
  const Position where = position(token);
  return Error(ErrorCode::Parse, reason)
      .at(name, where.line, where.column)
      .source_line(line_at(source, tokens[token].begin));
}

bool in_range(std::string_view name, std::string_view prefix, uint64_t count) {
  if (!name.starts_with(prefix)) return false;
  const std::string_view digits = name.substr(prefix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool canonical = digits.size() == 1 || !digits.starts_with('0');
  return canonical && error == std::errc() && end == digits.data() + digits.size() && number < count;
}

uint32_t type_bytes(std::string_view type) {
  if (type.size() < 3 || type[0] != '.') return 0;
  if (type == ".pred") return 0;
  static constexpr struct {
    std::string_view suffix;
    uint32_t bytes;
  } kSizes[] = {{"128", 16}, {"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}};
  if (type == ".f16x2" || type == ".bf16x2") return 4;
  for (const auto& size : kSizes) {
    const std::string_view head = type.substr(1, type.size() - 1 - size.suffix.size());
    if (type.ends_with(size.suffix) &&
        (head == "b" || head == "u" || head == "s" || head == "f" || head == "bf")) {
      return size.bytes;
    }
  }
  return 0;
}

std::optional<uint64_t> integer_value(std::string_view literal) {
  if (literal.ends_with('U') || literal.ends_with('u')) literal.remove_suffix(1);
  int base = 10;
  if (literal.starts_with("0x") || literal.starts_with("0X")) {
    base = 16;
    literal.remove_prefix(2);
  } else if (literal.starts_with("0b") || literal.starts_with("0B")) {
    base = 2;
    literal.remove_prefix(2);
  } else if (literal.size() > 1 && literal[0] == '0') {
    base = 8;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(literal.data(), literal.data() + literal.size(), value, base);
  if (error != std::errc() || end != literal.data() + literal.size()) return std::nullopt;
  return value;
}

}  // namespace klap::ptx
