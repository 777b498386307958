#include "analysis/graph/module_constants.h"

#include <algorithm>
#include <map>

#include "analysis/graph/dataflow.h"
#include "support/demangle.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::Variable;

// "_Z1fv$6", where `_Z1fv` is a function; `_ZL3f$6` would be the program's own f$6.
bool is_compilers(std::string_view name) {
  const size_t dollar = name.rfind('$');
  if (!name.starts_with("_Z") || dollar == std::string_view::npos || dollar + 1 == name.size()) return false;
  const bool numbered =
      std::ranges::all_of(name.substr(dollar + 1), [](char c) { return c >= '0' && c <= '9'; });
  if (!numbered) return false;
  const std::string mangled(name.substr(0, dollar)), function = demangle(mangled);
  return function != mangled && (function.ends_with(')') || function.ends_with(") const"));
}

bool is_disputed(const Module& module, std::string_view name) {
  for (const Module* m = &module; m != nullptr; m = m->made_from.module) {
    if (m->disputed.contains(name)) return true;
  }
  return false;
}

size_t mentions_in(const Module& m, ptx::TokenRange tokens, std::string_view name) {
  size_t count = 0;
  for (uint32_t t = tokens.first; t < tokens.last; ++t) count += m.is(t, name) ? 1 : 0;
  return count;
}

bool loads_from(const Module& m, const Statement& s, std::string_view name) {
  if (s.kind != ptx::StatementKind::Instruction || !m.is(s.head, "ld") || s.operands.size() != 2)
    return false;
  const auto address = parse_address(m, s.operands[1]);
  return address && address->base == name;
}

bool is_only_loaded(const Module& m, const Variable& variable) {
  const ptx::TokenRange all = {0, static_cast<uint32_t>(m.tokens.size())};
  const size_t mentions = mentions_in(m, all, variable.name) - mentions_in(m, variable.tokens, variable.name);
  size_t loads = 0;
  for (const ptx::Function& f : m.functions) {
    if (!f.is_definition || mentions_in(m, f.tokens, variable.name) == 0) continue;
    ptx::for_each_statement(f.body, [&](const Statement& s) { loads += loads_from(m, s, variable.name); });
  }
  return loads == mentions;
}

// `.b8 name[12] = {64, 0, 0, 0, 1}`: what is in memory. Nothing for another form, for addresses and floats.
std::optional<std::vector<uint8_t>> bytes_of(const Module& m, const Variable& v) {
  uint32_t t = v.tokens.first;
  uint32_t element = 0;
  for (; t < v.tokens.last && !m.is(t, v.name); ++t) {
    const std::string_view text = m.text(t);
    if (text == ".align") {
      ++t;
    } else if (const uint32_t bytes = ptx::type_bytes(text); bytes != 0 && text[1] != 'f') {
      element = bytes;
    } else if (text != v.space && text != ".weak") {
      return std::nullopt;
    }
  }
  if (element == 0 || element > 8 || t + 6 >= v.tokens.last || !m.is(t + 1, "[")) return std::nullopt;
  const auto elements = ptx::integer_value(m.text(t + 2));
  if (!elements || *elements > 4096 || !m.is(t + 3, "]") || !m.is(t + 4, "=") || !m.is(t + 5, "{"))
    return std::nullopt;
  std::vector<uint8_t> bytes;
  for (t += 6; t + 1 < v.tokens.last; t += 2) {
    const auto value = ptx::integer_value(m.text(t));
    if (!value || (element < 8 && *value >> (8 * element) != 0)) return std::nullopt;
    for (uint32_t i = 0; i < element; ++i) bytes.push_back(static_cast<uint8_t>(*value >> (8 * i)));
    if (m.is(t + 1, "}")) break;
    if (!m.is(t + 1, ",")) return std::nullopt;
  }
  const bool ends = t + 3 == v.tokens.last && m.is(t + 1, "}") && m.is(t + 2, ";");
  if (!ends || bytes.size() > *elements * element) return std::nullopt;
  bytes.resize(*elements * element);
  return bytes;
}

// The variable of that name if the compiler made it for a constant, else null.
const Variable* variable_of(const Module& m, std::string_view name) {
  const Variable* v = is_compilers(name) ? m.find_variable(name) : nullptr;
  if (v == nullptr || v->range != 0 || !v->initialised) return nullptr;
  const bool in_memory = v->space == ".global" || v->space == ".const";
  const bool own = v->linkage == ptx::Linkage::Weak || v->linkage == ptx::Linkage::Internal;
  return in_memory && own && !is_disputed(m, name) && is_only_loaded(m, *v) ? v : nullptr;
}

}  // namespace

std::optional<uint64_t> loaded_constant(const Module& m, const Statement& s, size_t component) {
  const auto address = m.is(s.head, "ld") && s.operands.size() == 2 && !s.modifiers.empty()
                           ? parse_address(m, s.operands[1])
                           : std::nullopt;
  const Variable* v = address ? variable_of(m, address->base) : nullptr;
  if (v == nullptr || !m.has_modifier(s, v->space)) return std::nullopt;
  const auto content = bytes_of(m, *v);
  const uint32_t bytes = ptx::type_bytes(m.text(s.modifiers.last - 1));
  const int64_t first = address->offset + static_cast<int64_t>(component * bytes);
  if (!content || bytes == 0 || bytes > 8 || first < 0 ||
      static_cast<uint64_t>(first) + bytes > content->size())
    return std::nullopt;
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i)
    value |= uint64_t{(*content)[static_cast<size_t>(first) + i]} << (8 * i);
  return value;
}

std::set<std::string, std::less<>> disputed_constants(const std::vector<std::string_view>& units,
                                                      bool all_known) {
  std::map<std::string_view, std::string_view> known;  // name -> the text behind it, up to the end
  std::set<std::string, std::less<>> disputed;
  for (const std::string_view text : units) {
    for (size_t at = text.find(".weak"); at != std::string_view::npos; at = text.find(".weak", at + 1)) {
      const std::string_view item = text.substr(at, text.find_first_of(";({", at) - at);
      const size_t name_end = item.find('[');
      const size_t name =
          name_end == std::string_view::npos ? name_end : item.find_last_of(" \t\n", name_end);
      if (name == std::string_view::npos) continue;
      const std::string_view variable = item.substr(name + 1, name_end - name - 1);
      if (!is_compilers(variable)) continue;
      const std::string_view rest = text.substr(at, text.find(';', at) - at);
      const auto [entry, is_new] = known.emplace(variable, rest);
      if (!all_known || (!is_new && entry->second != rest)) disputed.insert(std::string(variable));
    }
  }
  return disputed;
}

}  // namespace klap::analysis
