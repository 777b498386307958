// The parser: tokens to tree, by recursive descent over the few structures the tree knows.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "ptx/tree.h"

namespace klap::ptx {
namespace {

constexpr int kDeepestScope = 200;  // garbage input must not exhaust the stack

class Parser {
 public:
  explicit Parser(Module& module) : m_(module) {}

  void run() {
    while (!at_end()) item();
    if (m_.version.empty()) throw m_.error_at(0, "no .version directive: this is not PTX");
    check_definitions();
  }

 private:
  void check_definitions() const {
    std::set<std::string_view> defined;
    for (const Function& f : m_.functions)
      if (f.is_definition && !defined.insert(f.name).second)
        throw m_.error_at(f.name_token, "function '" + f.name + "' is defined twice");
  }

  // ---- token helpers ----
  [[nodiscard]] bool at_end() const { return m_.tokens[at_].kind == TokenKind::End; }
  // Takes literals only, so that comparing costs a few instructions.
  template <size_t size>
  [[nodiscard]] bool is(const char (&what)[size]) const {
    const Token& token = m_.tokens[at_];
    return token.end - token.begin == size - 1 &&
           std::memcmp(m_.source.data() + token.begin, what, size - 1) == 0;
  }
  [[nodiscard]] TokenKind kind() const { return m_.tokens[at_].kind; }
  template <size_t size>
  bool accept(const char (&what)[size]) {
    if (!is(what)) return false;
    ++at_;
    return true;
  }
  template <size_t size>
  void expect(const char (&what)[size], const char* context) {
    if (accept(what)) return;
    fail("expected '" + std::string(what) + "' " + context + ", found " + found());
  }
  [[nodiscard]] std::string found() const {
    return at_end() ? "the end of the text" : "'" + std::string(m_.text(at_)) + "'";
  }
  [[noreturn]] void fail(const std::string& reason) const { throw m_.error_at(at_, reason); }

  uint32_t number(const char* context) {
    if (kind() != TokenKind::Number) fail(std::string("expected a number ") + context);
    const auto value = integer_value(m_.text(at_));
    if (!value || *value > UINT32_MAX) fail(std::string("number out of range ") + context);
    ++at_;
    return static_cast<uint32_t>(*value);
  }

  // Skips a bracketed group that starts at the current token.
  void skip_group() {
    const uint32_t open = at_;
    int depth = 0;
    do {
      if (at_end()) throw m_.error_at(open, "bracket is not closed");
      if (is("(") || is("[") || is("{")) ++depth;
      if (is(")") || is("]") || is("}")) --depth;
      ++at_;
    } while (depth > 0);
  }

  // Moves past the ';' that ends a declaration, over bracketed groups.
  void skip_to_semicolon(uint32_t from) {
    while (!is(";")) {
      if (at_end() || is("}")) throw m_.error_at(from, "statement does not end with ';'");
      if (is("{") || is("(") || is("[")) {
        skip_group();
      } else {
        ++at_;
      }
    }
    ++at_;
  }

  // ---- module items ----
  void item() {
    const uint32_t first = at_;
    Item made;
    if (accept(".version")) {
      made.kind = ItemKind::Version;
      m_.version = std::string(m_.text(at_));
      if (kind() != TokenKind::Number) fail("expected a version number after .version");
      ++at_;
    } else if (accept(".target")) {
      made.kind = ItemKind::Target;
      target();
    } else if (accept(".address_size")) {
      made.kind = ItemKind::AddressSize;
      m_.address_size = static_cast<int>(number("after .address_size"));
    } else if (is(".file") || is(".loc")) {
      line_directive();
    } else if (accept(".section")) {
      if (!at_end()) ++at_;  // its name
      if (!is("{")) fail("expected '{' after .section");
      skip_group();
    } else if (is("@")) {
      dwarf_line();
    } else if (is(".pragma") || is(".alias")) {
      skip_to_semicolon(first);
    } else if (!accept(";")) {
      declaration(made);
    }
    made.tokens = {first, at_};
    m_.items.push_back(made);
  }

  void target() {
    if (kind() != TokenKind::Identifier) fail("expected a target such as sm_90");
    m_.target = std::string(m_.text(at_++));
    while (accept(",")) {
      if (kind() != TokenKind::Identifier) fail("expected an option of .target after ','");
      if (is("debug")) m_.debug = true;
      ++at_;
    }
  }

  // `.file 1 "a.cu", 12, 34` and `.loc 1 2 3, function_name $L + 4, inlined_at 1 2 3`: no ';' at the end.
  void line_directive() {
    const bool loc = is(".loc");
    ++at_;
    while (kind() == TokenKind::Number || kind() == TokenKind::String) ++at_;
    while (is(",") && !at_end()) {
      ++at_;
      if (loc && (is("function_name") || is("inlined_at"))) ++at_;
      while (kind() == TokenKind::Number || is("+") || (loc && continues_function_name())) ++at_;
    }
  }
  // The label or section after `function_name`, as opposed to the next statement's first word.
  [[nodiscard]] bool continues_function_name() const {
    return (kind() == TokenKind::Identifier || kind() == TokenKind::Dotted) &&
           m_.text(at_ - 1) == "function_name";
  }

  // PTX 1.x debug lines: "@@DWARF ..." up to the end of the line.
  void dwarf_line() {
    const size_t end = m_.source.find('\n', m_.tokens[at_].begin);
    while (!at_end() && m_.tokens[at_].begin < end) ++at_;
  }

  static bool is_linkage(std::string_view t, Linkage& linkage) {
    if (t == ".visible")
      linkage = Linkage::Visible;
    else if (t == ".weak")
      linkage = Linkage::Weak;
    else if (t == ".extern")
      linkage = Linkage::Extern;
    else if (t == ".common")
      linkage = Linkage::Common;
    else
      return false;
    return true;
  }

  void declaration(Item& made) {
    const uint32_t first = at_;
    Linkage linkage = Linkage::Internal;
    while (kind() == TokenKind::Dotted && is_linkage(m_.text(at_), linkage)) ++at_;
    if (is(".entry") || is(".func")) {
      made.kind = ItemKind::Function;
      made.index = static_cast<uint32_t>(m_.functions.size());
      function(first, linkage);
    } else if (kind() == TokenKind::Dotted) {
      made.kind = ItemKind::Variable;
      made.index = static_cast<uint32_t>(m_.variables.size());
      variable(first, linkage);
    } else {
      fail("expected a directive, found " + found());
    }
  }

  // `.global .align 4 .u32 a[2] = {1, 2}, b, c<3>;`: one item, a variable for each name.
  void variable(uint32_t first, Linkage linkage) {
    const size_t before = m_.variables.size();
    const std::string space(m_.text(at_));
    do {
      Variable v;
      v.linkage = linkage;
      v.space = space;
      declarator(first, v);
      if (m_.variables.size() > before) v.declaration = {};
      m_.variables.push_back(std::move(v));
    } while (accept(","));
    ++at_;
    for (size_t i = before; i < m_.variables.size(); ++i) m_.variables[i].tokens = {first, at_};
  }

  // Up to the ',' or ';' after it.
  void declarator(uint32_t first, Variable& v) {
    v.declaration = {at_, at_};
    while (!is(";") && !is(",")) {
      if (at_end() || is("}") || (is("{") && !v.initialised)) {
        throw m_.error_at(first, "declaration does not end with ';'");
      }
      if (!v.initialised && kind() == TokenKind::Identifier) v.name = std::string(m_.text(at_));
      if (is("=")) v.initialised = true;
      if (is("(") || is("[") || is("{")) {
        skip_group();
      } else if (!v.initialised && accept("<")) {
        v.range = number("of names");
        expect(">", "after the number of names");
      } else {
        ++at_;
      }
      if (!v.initialised) v.declaration.last = at_;
    }
    if (v.name.empty()) throw m_.error_at(first, "declaration without a name");
  }

  // ---- functions ----
  void function(uint32_t first, Linkage linkage) {
    Function f;
    f.linkage = linkage;
    f.kind = is(".entry") ? FunctionKind::Entry : FunctionKind::Func;
    ++at_;
    while (accept(".attribute")) {
      if (!is("(")) fail("expected '(' after .attribute");
      skip_group();
    }
    if (is("(")) f.results = parameter_list();
    if (kind() != TokenKind::Identifier) fail("expected the name of a function");
    f.name_token = at_;
    f.name = std::string(m_.text(at_++));
    if (is("(")) f.parameters = parameter_list();
    for (const Parameter& p : f.parameters)
      f.parameter_bytes = std::max(f.parameter_bytes, p.offset + p.bytes);
    f.attributes.first = at_;
    while (!is("{") && !is(";")) {
      if (starts_item()) {
        if (f.kind == FunctionKind::Func) break;
        throw m_.error_at(first, "function '" + f.name + "' has neither a body nor a ';'");
      }
      if (accept(".pragma")) {
        skip_to_semicolon(first);
      } else if (is("(")) {
        skip_group();
      } else {
        ++at_;
      }
    }
    f.attributes.last = at_;
    f.header = {first, at_};
    if (is("{")) {
      f.is_definition = true;
      f.body = block(0);
    } else {
      accept(";");
    }
    f.tokens = {first, at_};
    m_.functions.push_back(std::move(f));
  }

  // True where a prototype is over without a ';', as ptxas reads them: the next item, or the end of the file.
  [[nodiscard]] bool starts_item() const {
    static constexpr std::array<std::string_view, 13> kItems = {
        ".visible", ".extern", ".weak", ".common", ".entry", ".func",   ".global",
        ".const",   ".shared", ".file", ".loc",    ".alias", ".section"};
    return at_end() || std::ranges::find(kItems, m_.text(at_)) != kItems.end();
  }

  std::vector<Parameter> parameter_list() {
    std::vector<Parameter> list;
    const uint32_t open = at_++;
    uint64_t offset = 0;
    while (!accept(")")) {
      if (at_end()) throw m_.error_at(open, "parameter list is not closed");
      if (accept(",")) continue;
      Parameter p = parameter();
      offset = (offset + p.align - 1) / p.align * p.align;
      if (offset + p.bytes > UINT32_MAX) throw m_.error_at(p.tokens.first, "parameters of 4 GiB or more");
      p.offset = static_cast<uint32_t>(offset);
      offset += p.bytes;
      list.push_back(std::move(p));
    }
    return list;
  }

  // `.param .align 4 .b8 name[12]`, `.param .u64 .ptr .global .align 4 name`, `.reg .b32 name`, `_`.
  Parameter parameter() {
    Parameter p;
    p.tokens.first = at_;
    bool pointer = false;
    while (!is(",") && !is(")")) {
      if (at_end()) fail("parameter list is not closed");
      if (accept(".align")) {
        const uint32_t align = number("after .align");
        if (align == 0 || (align & (align - 1)) != 0) fail("alignment is not a power of two");
        if (!pointer) p.align = align;  // after .ptr it is the pointee's
      } else if (accept(".ptr")) {
        pointer = true;
      } else if (is("[")) {
        p.is_array = true;
        ++at_;
        if (!is("]")) p.bytes = number("as array length");
        expect("]", "after the array length");
      } else {
        if (kind() == TokenKind::Dotted && type_bytes(m_.text(at_)) != 0) p.type = std::string(m_.text(at_));
        if (kind() == TokenKind::Identifier) p.name = std::string(m_.text(at_));
        ++at_;
      }
    }
    const uint32_t element = std::max(1u, type_bytes(p.type));
    const uint64_t bytes = p.is_array ? uint64_t{p.bytes} * element : element;
    if (bytes > UINT32_MAX) throw m_.error_at(p.tokens.first, "parameters of 4 GiB or more");
    p.bytes = static_cast<uint32_t>(bytes);
    if (p.align == 0) p.align = element;
    p.tokens.last = at_;
    return p;
  }

  // ---- bodies ----
  Statement block(int depth) {
    if (depth > kDeepestScope) fail("scopes are nested too deeply");
    Statement s;
    s.kind = StatementKind::Block;
    const uint32_t open = at_++;
    const size_t outer = statements_.size();
    while (!is("}")) {
      if (at_end()) throw m_.error_at(open, "scope is not closed");
      statements_.push_back(statement(depth));
    }
    ++at_;
    s.body = m_.statements.take(statements_, outer);
    s.tokens = {open, at_};
    return s;
  }

  Statement statement(int depth) {
    if (is("{")) return block(depth + 1);
    Statement s;
    const uint32_t first = at_;
    s.head = first;
    if (kind() == TokenKind::Identifier && m_.text(at_ + 1) == ":") {
      s.kind = StatementKind::Label;
      at_ += 2;
    } else if (kind() == TokenKind::Dotted) {
      s.kind = StatementKind::Directive;
      if (is(".loc") || is(".file")) {
        line_directive();
      } else {
        skip_to_semicolon(first);
      }
    } else if (is(";")) {
      s.kind = StatementKind::Directive;
      ++at_;
    } else {
      instruction(s);
    }
    s.tokens = {first, at_};
    return s;
  }

  void instruction(Statement& s) {
    if (accept("@")) {
      s.predicated = true;
      s.predicate_negated = accept("!");
      if (kind() != TokenKind::Identifier) fail("expected a predicate register after '@'");
      s.predicate = at_++;
    }
    if (kind() != TokenKind::Identifier) fail("expected an instruction, found " + found());
    s.head = at_++;
    s.modifiers.first = at_;
    while (kind() == TokenKind::Dotted) ++at_;
    s.modifiers.last = at_;
    operands(s);
  }

  // True if one operand ends in front of the next token and another begins there.
  [[nodiscard]] bool lacks_comma(uint32_t start) const {
    const auto is_word = [&](TokenKind k) { return k == TokenKind::Identifier || k == TokenKind::Number; };
    if (at_ == start) return false;
    const bool ended =
        is_word(m_.tokens[at_ - 1].kind) || m_.is(at_ - 1, ")") || m_.is(at_ - 1, "]") || m_.is(at_ - 1, "}");
    return ended && (is_word(kind()) || is("(") || is("{"));
  }

  void operands(Statement& s) {
    uint32_t start = at_;
    while (!is(";")) {
      if (at_end() || is("}")) throw m_.error_at(s.head, "instruction does not end with ';'");
      if (lacks_comma(start)) fail("expected ',' between operands");
      if (is(",")) {
        operands_.push_back({start, at_});
        start = ++at_;
      } else if (is("(") || is("[") || is("{")) {
        skip_group();
      } else {
        ++at_;
      }
    }
    if (at_ > start) operands_.push_back({start, at_});
    s.operands = m_.operands.take(operands_);
    ++at_;
  }

  Module& m_;
  uint32_t at_ = 0;
  std::vector<Statement> statements_;  // of the scopes that are open, the inner ones last
  std::vector<TokenRange> operands_;   // of the instruction at hand
};

}  // namespace

Module parse(std::string source, std::string name) {
  Module module;
  module.name = std::move(name);
  module.source = std::move(source);
  module.tokens = tokenize(module.source, module.name);
  module.lines = begins_of_lines(module.source);
  Parser(module).run();
  return module;
}

}  // namespace klap::ptx
