// Renaming walks each function with a stack of scopes. A declaration adds a name to the innermost scope,
// labels before everything else in it because branches may go forward; every other word is looked up from the
// inside out, and what no scope knows (functions, module variables, special registers, opcodes in operands)
// stays.
#include "rename.h"

#include <map>
#include <optional>
#include <vector>

#include "ptx/edit.h"

namespace klap::test {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenKind;
using ptx::TokenRange;

// A declaration `%r<13>`: the names %r0 to %r12.
struct Range {
  uint64_t count = 0;
  std::string renamed;
};

struct Scope {
  std::map<std::string, std::string, std::less<>> names;
  std::map<std::string, Range, std::less<>> ranges;

  [[nodiscard]] std::optional<std::string> find(std::string_view name) const {
    if (const auto exact = names.find(name); exact != names.end()) return exact->second;
    // Where the number begins is not unique when the prefix itself ends in digits: try all.
    for (size_t at = name.size(); at-- > 1 && name[at] >= '0' && name[at] <= '9';) {
      const auto range = ranges.find(name.substr(0, at));
      if (range == ranges.end()) continue;
      if (ptx::in_range(name, range->first, range->second.count)) {
        return range->second.renamed + std::string(name.substr(at));
      }
    }
    return std::nullopt;
  }
};

class Renamer {
 public:
  explicit Renamer(const Module& module) : m_(module), edits_(module) {
    while (m_.source.find(stem_) != std::string::npos) stem_ += "lap"[stem_.size() % 3];
  }

  std::string run() {
    collect_debug_labels();
    for (const ptx::Item& item : m_.items) {
      if (item.kind == ptx::ItemKind::Function) {
        function(m_.functions[item.index]);
      } else if (item.kind == ptx::ItemKind::Other) {
        later_.push_back(item.tokens);
      }
    }
    // Debug sections name labels of functions, which may come after them.
    for (const TokenRange& tokens : later_) debug_uses(tokens);
    const std::string body = edits_.apply({0, static_cast<uint32_t>(m_.tokens.size())});
    const uint32_t first = m_.tokens.front().begin;
    return m_.source.substr(0, first) + body;
  }

 private:
  // A new name that keeps the sigil, because a name may stand where PTX wants one, and is of another length.
  std::string fresh(std::string_view old) {
    const char sigil = old.front();
    const std::string start = sigil == '%' || sigil == '$' ? std::string(1, sigil) : "";
    return start + stem_ + std::to_string(++made_);
  }
  void declare(uint32_t token) {
    const std::string old(m_.text(token));
    if (old == "_") return;
    std::string& name = scopes_.back().names[old];
    if (name.empty()) name = fresh(old);
    replace(token, name);
  }
  void replace(uint32_t token, const std::string& name) { edits_.replace({token, token + 1}, name); }

  void uses(TokenRange tokens) {
    for (uint32_t i = tokens.first; i < tokens.last; ++i) {
      if (m_.tokens[i].kind == TokenKind::Identifier) use(i);
    }
  }
  void use(uint32_t token) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto name = scope->find(m_.text(token))) return replace(token, *name);
    }
  }

  // Debug sections and .loc see their own labels and those of functions, but no variables.
  void debug_uses(TokenRange tokens) {
    for (uint32_t i = tokens.first; i < tokens.last; ++i) {
      if (m_.tokens[i].kind != TokenKind::Identifier) continue;
      if (const auto name = debug_.find(m_.text(i))) replace(i, *name);
    }
  }

  // Labels of a section end in ':'; function_name of .loc and other sections refer to them.
  void collect_debug_labels() {
    for (const ptx::Item& item : m_.items) {
      if (item.kind != ptx::ItemKind::Other || !m_.is(item.tokens.first, ".section")) continue;
      for (uint32_t i = item.tokens.first; i + 1 < item.tokens.last; ++i) {
        if (m_.tokens[i].kind == TokenKind::Identifier && m_.is(i + 1, ":")) {
          debug_.names.try_emplace(std::string(m_.text(i)), fresh(m_.text(i)));
        }
      }
    }
  }

  void function(const ptx::Function& f) {
    scopes_.emplace_back();
    for (const auto* list : {&f.results, &f.parameters}) {
      for (const ptx::Parameter& p : *list) parameter(p);
    }
    if (f.is_definition) block(f.body);
    scopes_.pop_back();
  }

  void parameter(const ptx::Parameter& p) {
    for (uint32_t i = p.tokens.first; i < p.tokens.last; ++i) {
      if (m_.tokens[i].kind == TokenKind::Identifier) return declare(i);
    }
  }

  void block(const Statement& b) {
    scopes_.emplace_back();
    for (const Statement& s : b.body) {
      if (s.kind != StatementKind::Label) continue;
      const std::string name = fresh(m_.text(s.head));
      scopes_.back().names[std::string(m_.text(s.head))] = name;
      debug_.names.try_emplace(std::string(m_.text(s.head)), name);
    }
    for (const Statement& s : b.body) statement(s);
    scopes_.pop_back();
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case StatementKind::Block:
        return block(s);
      case StatementKind::Label:
        return use(s.head);
      case StatementKind::Directive:
        return directive(s);
      case StatementKind::Instruction:
        if (s.predicated) use(s.predicate);
        for (const TokenRange& operand : s.operands) uses(operand);
    }
  }

  void directive(const Statement& s) {
    const std::string_view what = m_.text(s.head);
    if (what == ".reg" || what == ".local" || what == ".shared" || what == ".param" || what == ".const" ||
        what == ".global") {
      declarations({s.tokens.first + 1, s.tokens.last});
    } else if (what == ".loc") {
      debug_uses(s.tokens);
    } else if (what != ".callprototype") {  // its names are its own
      uses(s.tokens);
    }
  }

  // `.b32 a, b<5>, c[N] = {..};`: names stand outside of brackets and before a '='.
  void declarations(TokenRange tokens) {
    int depth = 0;
    bool value = false;
    for (uint32_t i = tokens.first; i < tokens.last; ++i) {
      const std::string_view t = m_.text(i);
      if (t == "(" || t == "[" || t == "{") ++depth;
      if (t == ")" || t == "]" || t == "}") --depth;
      if (depth == 0 && t == "=") value = true;
      if (depth == 0 && t == ",") value = false;
      if (m_.tokens[i].kind != TokenKind::Identifier) continue;
      if (depth > 0 || value) {
        use(i);
      } else if (m_.is(i + 1, "<")) {
        declare_range(i);
      } else {
        declare(i);
      }
    }
  }

  void declare_range(uint32_t token) {
    // A digit at the end would join the number, so the new prefix ends in a letter.
    Range range{ptx::integer_value(m_.text(token + 2)).value_or(0), fresh(m_.text(token)) + "_"};
    replace(token, range.renamed);
    scopes_.back().ranges[std::string(m_.text(token))] = std::move(range);
  }

  const Module& m_;
  ptx::Edits edits_;
  std::vector<Scope> scopes_;  // the innermost last
  Scope debug_;                // labels only
  std::vector<TokenRange> later_;
  std::string stem_ = "k";  // occurs nowhere in the source
  int made_ = 0;
};

}  // namespace

std::string rename_everything(const Module& module) { return Renamer(module).run(); }

}  // namespace klap::test
