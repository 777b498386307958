#include "ptx/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

namespace klap::ptx {
namespace {

// Deeper nests of inlined functions are damaged input that leads back to itself.
constexpr int kDeepest = 100;

std::optional<LineDirective::Place> place_at(const Module& m, uint32_t first, uint32_t last) {
  if (first + 3 > last) return std::nullopt;
  for (uint32_t t = first; t < first + 3; ++t) {
    if (m.tokens[t].kind != TokenKind::Number) return std::nullopt;
  }
  return LineDirective::Place{m.text(first), m.text(first + 1), m.text(first + 2)};
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_before(const Position& a, const Position& b) {
  return std::tie(a.line, a.column) < std::tie(b.line, b.column);
}

std::string_view without_quotes(std::string_view text) {
  return text.size() >= 2 && text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

// nvcc writes "/usr/local/cuda/bin/../targets/x86_64-linux/include/...".
std::string normal(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().generic_string();
}

}  // namespace

std::optional<LineDirective> parse_line_directive(const Module& m, TokenRange tokens) {
  const auto at = place_at(m, tokens.first + 1, tokens.last);
  if (!at) return std::nullopt;
  LineDirective loc{*at, {}, 0, std::nullopt};
  for (uint32_t t = tokens.first + 4; t + 1 < tokens.last; ++t) {
    if (m.is(t, "function_name")) {
      loc.function = m.text(t + 1);
      const bool displaced = t + 3 < tokens.last && m.is(t + 2, "+");
      if (displaced) loc.offset = integer_value(m.text(t + 3)).value_or(0);
    } else if (m.is(t, "inlined_at")) {
      loc.inlined_at = place_at(m, t + 1, tokens.last);
    }
  }
  return loc;
}

std::string short_text(const SourcePlace& place) {
  return fmt::format("{}:{}:{}", std::filesystem::path(place.file).filename().string(), place.line,
                     place.column);
}

SourceLines::SourceLines(const Module& module) : module_(module) {
  constexpr std::string_view kLaunchHeader = "cuda_device_runtime_api.h";
  for (const Item& item : module.items) {
    if (!module.is(item.tokens.first, ".file") || item.tokens.size() < 3) continue;
    const auto index = integer_value(module.text(item.tokens.first + 1));
    const std::string file = normal(without_quotes(module.text(item.tokens.first + 2)));
    if (!index) continue;
    files_[*index] = file;
    if (file.ends_with(kLaunchHeader)) toolkit_ = file.substr(0, file.size() - kLaunchHeader.size());
  }
  if (files_.empty()) return;
  for (const Function& function : module.functions) {
    if (function.is_definition) add_function(function);
  }
}

void SourceLines::add_function(const Function& function) {
  entries_.push_back({module_.position(function.tokens.first), std::nullopt});
  for_each_statement(function.body, [&](const Statement& s) {
    if (s.kind != StatementKind::Directive || !module_.is(s.head, ".loc")) return;
    auto directive = parse_line_directive(module_, s.tokens);
    // Code that the compiler has added has line 0; it belongs to what stands before it.
    if (!directive || number(directive->at.line) == 0) return;
    entries_.push_back({module_.position(s.head), std::move(directive)});
  });
}

std::optional<SourcePlace> SourceLines::place(const LineDirective::Place& place) const {
  const auto index = integer_value(place.file);
  const auto file = index ? files_.find(*index) : files_.end();
  if (file == files_.end() || number(place.line) <= 0) return std::nullopt;
  return SourcePlace{file->second, number(place.line), std::max(number(place.column), 1)};
}

bool SourceLines::is_of_toolkit(const std::string& file) const {
  return !toolkit_.empty() && file.starts_with(toolkit_);
}

// A place in which something was inlined may itself be inlined somewhere. A directive before says so.
const LineDirective* SourceLines::inlined_from(size_t entry, const LineDirective::Place& place) const {
  for (; entries_[entry].directive; --entry) {
    const LineDirective& directive = *entries_[entry].directive;
    if (directive.at == place && directive.inlined_at) return &directive;
  }
  return nullptr;
}

std::optional<SourcePlace> SourceLines::of(const Position& position) const {
  const auto behind =
      std::upper_bound(entries_.begin(), entries_.end(), position,
                       [](const Position& p, const Entry& e) { return is_before(p, e.begin); });
  if (behind == entries_.begin()) return std::nullopt;
  const auto entry = static_cast<size_t>(behind - entries_.begin()) - 1;
  if (!entries_[entry].directive) return std::nullopt;
  const LineDirective* directive = &*entries_[entry].directive;
  const std::optional<SourcePlace> innermost = place(directive->at);
  std::optional<SourcePlace> found = innermost;
  for (int depth = 0; found && is_of_toolkit(found->file) && depth < kDeepest; ++depth) {
    if (directive == nullptr || !directive->inlined_at) return innermost;
    found = place(*directive->inlined_at);
    directive = inlined_from(entry, *directive->inlined_at);
  }
  return found && !is_of_toolkit(found->file) ? found : innermost;
}

}  // namespace klap::ptx
