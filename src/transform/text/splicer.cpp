#include "transform/text/splicer.h"

#include <fmt/format.h>

namespace klap::transform {

using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenKind;
using ptx::TokenRange;

std::string Splicer::body() {
  out_.clear();
  for (const Statement& s : function_.body.body) statement(s);
  if (!keeps_exits()) out_ += landing(end_label());
  return out_;
}

std::string Splicer::landing(const std::string& label) const {
  return fmt::format("\n\t{0}:\n\t.reg .pred %{1};\n\tmov.pred %{1}, 0;\n", label, label.substr(1));
}

std::string Splicer::prefixed(std::string_view name) const {
  // The registers of a range have numbers, so it is not told apart from the generated code's: "%r<9>".
  if (name[0] == '%' && names_.is_range(name) && name.find('_') == std::string_view::npos)
    return fmt::format("%{}{}", prefix_, name.substr(1));
  if (name[0] == '%' || name[0] == '$') return with_prefix(name, prefix_);
  return prefix_ + std::string(name);
}

std::string Splicer::rename(uint32_t token) {
  const std::string_view text = m_.text(token);
  if (m_.tokens[token].kind != TokenKind::Identifier) return std::string(text);
  if (names_.contains(text) || names_.is_range(text)) return prefixed(text);
  return outside(token);
}

std::string Splicer::renamed(TokenRange range) {
  std::string text;
  for (uint32_t t = range.first; t < range.last; ++t) {
    if (t > range.first && m_.tokens[t].begin > m_.tokens[t - 1].end) text += ' ';
    text += rename(t);
    if (swallow_next_) ++t;
    swallow_next_ = false;
  }
  return text;
}

std::string Splicer::guard(const Statement& s) {
  return s.predicated ? fmt::format("@{}{} ", s.predicate_negated ? "!" : "", rename(s.predicate)) : "";
}

std::string Splicer::modifiers_without(const Statement& s, std::string_view dropped) const {
  std::string text;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (!m_.text(t).starts_with(dropped)) text += m_.text(t);
  }
  return text;
}

void Splicer::statement(const Statement& s) {
  begin(s);
  const Around* const more = around(s);
  if (more != nullptr) out_ += "\t" + more->before;
  if (more == nullptr || !more->instead) write(s);
  if (more != nullptr) out_ += more->after;
}

void Splicer::write(const Statement& s) {
  switch (s.kind) {
    case StatementKind::Block:
      if (special_scope(s)) return;
      out_ += "\t{\n";
      for (const Statement& inner : s.body) statement(inner);
      out_ += "\t}\n";
      return;
    case StatementKind::Label:
      if (special_label(s)) return;
      out_ += prefixed(m_.text(s.head)) + ":\n";
      return;
    case StatementKind::Directive:
      if (m_.is(s.head, ";")) return;
      out_ += "\t" + (m_.is(s.head, ".loc") ? location(s) : renamed(s.tokens)) + "\n";
      return;
    case StatementKind::Instruction:
      current_ = &s;
      if (special(s)) return;
      if (!keeps_exits() && (m_.is(s.head, "ret") || m_.is(s.head, "exit"))) {
        line(guard(s) + "bra " + end_label());
      } else {
        out_ += "\t" + renamed(s.tokens) + "\n";
      }
      return;
  }
}

}  // namespace klap::transform
