// One line an item or statement, scopes indented, what belongs together in one line between bars.
#include "outline.h"

namespace klap::test {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

const char* to_string(ptx::Linkage linkage) {
  switch (linkage) {
    case ptx::Linkage::Visible:
      return "visible ";
    case ptx::Linkage::Weak:
      return "weak ";
    case ptx::Linkage::Extern:
      return "extern ";
    case ptx::Linkage::Common:
      return "common ";
    case ptx::Linkage::Internal:
      break;
  }
  return "";
}

std::string on_one_line(const Module& m, ptx::TokenRange range) {
  std::string text = m.compact(range);
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

class Outline {
 public:
  explicit Outline(const Module& module) : m_(module) {}

  std::string run() {
    for (const ptx::Item& item : m_.items) this->item(item);
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) {
    out_ += std::string(2 * static_cast<size_t>(depth), ' ') + text + "\n";
  }

  void item(const ptx::Item& item) {
    switch (item.kind) {
      case ptx::ItemKind::Version:
        return line(0, "version " + m_.version);
      case ptx::ItemKind::Target:
        return line(0, "target " + m_.target + (m_.debug ? " debug" : ""));
      case ptx::ItemKind::AddressSize:
        return line(0, "address size " + std::to_string(m_.address_size));
      case ptx::ItemKind::Function:
        return function(m_.functions[item.index]);
      case ptx::ItemKind::Variable:
        for (size_t i = item.index; i < m_.variables.size(); ++i) {
          if (m_.variables[i].tokens.first == item.tokens.first) variable(m_.variables[i]);
        }
        return;
      case ptx::ItemKind::Other:
        return line(0, "other | " + on_one_line(m_, item.tokens));
    }
  }

  void variable(const ptx::Variable& v) {
    line(0, std::string("variable ") + to_string(v.linkage) + v.space.substr(1) + " " + v.name +
                (v.range == 0 ? "" : " 0.." + std::to_string(v.range - 1)) +
                (v.initialised ? " initialised" : "") + " | " + on_one_line(m_, v.declaration));
  }

  void parameters(const char* what, const std::vector<ptx::Parameter>& list) {
    for (const ptx::Parameter& p : list) {
      line(1, std::string(what) + " " + p.name + " " + p.type + (p.is_array ? "[]" : "") + " at " +
                  std::to_string(p.offset) + ", " + std::to_string(p.bytes) + " bytes, aligned to " +
                  std::to_string(p.align));
    }
  }

  void function(const ptx::Function& f) {
    line(0, std::string(to_string(f.linkage)) + (f.kind == ptx::FunctionKind::Entry ? "entry " : "func ") +
                f.name + (f.attributes.empty() ? "" : " | " + on_one_line(m_, f.attributes)));
    parameters("result", f.results);
    parameters("parameter", f.parameters);
    if (f.is_definition) block(f.body, 1);
  }

  void block(const Statement& b, int depth) {
    line(depth, "{");
    for (const Statement& s : b.body) statement(s, depth + 1);
    line(depth, "}");
  }

  void statement(const Statement& s, int depth) {
    switch (s.kind) {
      case StatementKind::Block:
        return block(s, depth);
      case StatementKind::Label:
        return line(depth - 1, "label " + std::string(m_.text(s.head)));
      case StatementKind::Directive:
        return line(depth, "directive | " + on_one_line(m_, s.tokens));
      case StatementKind::Instruction:
        return instruction(s, depth);
    }
  }

  void instruction(const Statement& s, int depth) {
    std::string text;
    if (s.predicated)
      text = std::string(s.predicate_negated ? "unless " : "if ") + std::string(m_.text(s.predicate)) + " ";
    text += m_.full_opcode(s);
    for (const ptx::TokenRange& operand : s.operands) text += " | " + on_one_line(m_, operand);
    line(depth, text);
  }

  const Module& m_;
  std::string out_;
};

}  // namespace

std::string outline(const Module& module) { return Outline(module).run(); }

}  // namespace klap::test
