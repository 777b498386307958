#include "transform/unit.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "ptx/edit.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::FunctionKind;
using ptx::Linkage;
using ptx::Module;
using ptx::TokenRange;
using ptx::Variable;

// Each declaration once, however many of the kernels need it.
std::string foreign_declarations(const std::vector<Generated>& kernels) {
  std::set<std::string> seen;
  std::string text;
  for (const Generated& kernel : kernels) {
    for (const std::string& declaration : kernel.declarations) {
      if (seen.insert(declaration).second) text += declaration;
    }
  }
  return text;
}

class DetachedUnit {
 public:
  DetachedUnit(const Module& module, const std::string& suffix) : m_(module), suffix_(suffix) {}

  // Declares or copies whatever `text` refers to. False if something internal stands in the way.
  bool require(const std::string& text) {
    for (const ptx::Token& token : ptx::tokenize(text, m_.name)) {
      if (token.kind != ptx::TokenKind::Identifier) continue;
      const std::string name = text.substr(token.begin, token.end - token.begin);
      if (!seen_.insert(name).second) continue;
      if (const Variable* v = m_.find_variable(name)) {
        if (!variable(*v)) return false;
      } else if (const Function* f = m_.find_function(name)) {
        if (!function(*f)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string assemble(const std::vector<Generated>& kernels) const {
    std::string text =
        fmt::format(".version {}\n.target {}\n.address_size {}\n\n{}{}\n", m_.version, m_.target,
                    m_.address_size == 0 ? 64 : m_.address_size, declarations_, prototypes_);
    text += foreign_declarations(kernels) + definitions_;
    for (const Generated& kernel : kernels) text += renamed(kernel.text) + "\n\n";
    return text;
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  bool variable(const Variable& v) {
    if (v.linkage == Linkage::Internal) {
      obstacle_ = fmt::format("variable {} is internal to the unit", v.name);
      return false;
    }
    declarations_ += fmt::format(".extern {};\n", m_.text(v.declaration));
    return true;
  }

  bool function(const Function& f) {
    if (f.kind == FunctionKind::Entry && f.linkage == Linkage::Internal) {
      obstacle_ = fmt::format("kernel {} is internal to the unit", f.name);
      return false;
    }
    if (f.kind == FunctionKind::Entry || !f.is_definition) {
      const TokenRange signature = {f.tokens.first, f.header.last};
      const std::string text(m_.text(signature));
      declarations_ += (f.linkage == Linkage::Extern ? text : ".extern " + unlinked(f)) + "\n;\n";
      return true;
    }
    symbols_[f.name] = f.name + suffix_;
    const std::string text = definition(f);
    if (!require(text)) return false;
    prototypes_ += renamed(unlinked(f)) + "\n;\n";
    definitions_ += renamed(text) + "\n\n";
    return true;
  }

  // The header from `.entry` or `.func` on.
  [[nodiscard]] std::string unlinked(const Function& f) const {
    uint32_t first = f.header.first;
    while (!m_.is(first, ".entry") && !m_.is(first, ".func")) ++first;
    return std::string(m_.text(TokenRange{first, f.header.last}));
  }

  [[nodiscard]] std::string definition(const Function& f) const {
    ptx::Edits edits(m_);
    ptx::for_each_statement(f.body, [&](const ptx::Statement& s) {
      if (s.kind == ptx::StatementKind::Directive && m_.is(s.head, ".loc")) edits.replace(s.tokens, "");
    });
    return unlinked(f) + "\n" + edits.apply(f.body.tokens);
  }

  [[nodiscard]] std::string renamed(const std::string& text) const {
    std::string out;
    uint32_t at = 0;
    for (const ptx::Token& token : ptx::tokenize(text, m_.name)) {
      out.append(text, at, token.begin - at);
      const std::string name = text.substr(token.begin, token.end - token.begin);
      const auto symbol = symbols_.find(name);
      out += symbol == symbols_.end() ? name : symbol->second;
      at = token.end;
    }
    return out;
  }

  const Module& m_;
  const std::string& suffix_;
  std::set<std::string> seen_;
  std::map<std::string, std::string> symbols_;  // functions that are copied, and the copies' names
  std::string declarations_, prototypes_, definitions_, obstacle_;
};

bool has_launch_bounds(const Module& m, const Function& f) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (m.is(t, ".maxntid") || m.is(t, ".reqntid") || m.is(t, ".maxnreg") || m.is(t, ".minnctapersm"))
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> detached_unit(const Module& module, const std::vector<Generated>& kernels,
                                         const std::string& suffix, std::string* why_not) {
  DetachedUnit unit(module, suffix);
  for (const Generated& kernel : kernels) {
    if (unit.require(kernel.text)) continue;
    if (why_not != nullptr) *why_not = unit.obstacle();
    return std::nullopt;
  }
  return unit.assemble(kernels);
}

std::string in_place_unit(const Module& module, const std::vector<Generated>& kernels,
                          uint32_t register_cap) {
  ptx::Edits edits(module);
  if (register_cap != 0) {
    for (const Function& f : module.functions) {
      if (f.kind != FunctionKind::Entry || !f.is_definition || has_launch_bounds(module, f)) continue;
      edits.insert_before(f.body.tokens.first, fmt::format(".maxnreg {}\n", register_cap));
    }
  }
  const TokenRange all = {0, static_cast<uint32_t>(module.tokens.size()) - 1};
  std::string text = module.source.substr(0, module.tokens[0].begin) + edits.apply(all) + "\n";
  text += foreign_declarations(kernels);
  for (const Generated& kernel : kernels) text += "\n" + kernel.text + "\n";
  return text;
}

}  // namespace klap::transform
