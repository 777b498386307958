#include "transform/aggregate/unit.h"

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
  DetachedUnit(UnitCode& code, const std::string& suffix) : code_(code), m_(code.module), suffix_(suffix) {}

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

  [[nodiscard]] std::string assemble() const {
    std::string text = fmt::format(".version {}\n.target {}\n.address_size {}\n\n{}{}\n",
                                   to_string(code_.dialect.version), to_string(code_.dialect.target),
                                   m_.address_size == 0 ? 64 : m_.address_size, declarations_, prototypes_);
    text += foreign_declarations(code_.kernels) + definitions_;
    for (const Generated& kernel : code_.kernels) text += renamed(kernel.text) + "\n\n";
    return text + code_.lines.used();
  }

  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  bool variable(const Variable& v) {
    if (v.space == ".shared") return shared_variable(v);
    if (v.linkage == Linkage::Internal) {
      obstacle_ = fmt::format("variable {} is internal to the unit", v.name);
      return false;
    }
    if (v.declaration.empty()) {
      obstacle_ = fmt::format("variable {} is declared together with others", v.name);
      return false;
    }
    declarations_ += fmt::format(".extern {};\n", m_.text(v.declaration));
    return true;
  }

  // A block's own memory: every kernel has it anew, so a copy is as good as the original. A variable without
  // a size begins where the dynamic part does.
  bool shared_variable(const Variable& v) {
    if (v.declaration.empty()) {
      obstacle_ = fmt::format("variable {} is declared together with others", v.name);
      return false;
    }
    symbols_[v.name] = v.name + suffix_;
    declarations_ += fmt::format("{}{};\n", v.linkage == Linkage::Extern ? ".extern " : "",
                                 renamed(std::string(m_.text(v.declaration))));
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
      declarations_ += (f.linkage == Linkage::Extern ? text : ".extern " + declaration(f)) + "\n;\n";
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

  // The declaration of a function that is defined elsewhere: the definition has the launch bounds.
  [[nodiscard]] std::string declaration(const Function& f) const {
    const std::string header = unlinked(f);
    return f.attributes.empty() ? header : header.substr(0, header.size() - m_.text(f.attributes).size());
  }

  [[nodiscard]] std::string definition(const Function& f) {
    ptx::Edits edits(m_);
    code_.lines.keep(m_, f.body, edits);
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

  UnitCode& code_;
  const Module& m_;
  const std::string& suffix_;
  std::set<std::string> seen_;
  std::map<std::string, std::string> symbols_;  // functions that are copied, and the copies' names
  std::string declarations_, prototypes_, definitions_, obstacle_;
};

// Raises the unit's directives if generated code needs more than they say.
void raise_dialect(const UnitCode& code, ptx::Edits& edits) {
  const ptx::Dialect own = ptx::dialect_of(code.module);
  for (const ptx::Item& item : code.module.items) {
    const TokenRange value = {item.tokens.first + 1, item.tokens.first + 2};
    if (item.kind == ptx::ItemKind::Version && code.dialect.version != own.version) {
      edits.replace(value, to_string(code.dialect.version));
    } else if (item.kind == ptx::ItemKind::Target && code.dialect.target != own.target) {
      edits.replace(value, to_string(code.dialect.target));
    }
  }
}

bool has_launch_bounds(const Module& m, const Function& f) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (m.is(t, ".maxntid") || m.is(t, ".reqntid") || m.is(t, ".maxnreg") || m.is(t, ".minnctapersm"))
      return true;
  }
  return false;
}

}  // namespace

void UnitCode::includes(const ptx::Module& source) {
  const auto both = ptx::merged(dialect, ptx::dialect_of(source));
  if (!both) {
    throw Error(ErrorCode::Internal, fmt::format("code for {} cannot stand in a unit for {}", source.target,
                                                 to_string(dialect.target)))
        .at(module.name);
  }
  dialect = *both;
}

std::optional<std::string> detached_unit(UnitCode& code, const std::string& suffix, std::string* why_not) {
  DetachedUnit unit(code, suffix);
  for (const Generated& kernel : code.kernels) {
    if (unit.require(kernel.text)) continue;
    if (why_not != nullptr) *why_not = unit.obstacle();
    return std::nullopt;
  }
  return unit.assemble();
}

std::string in_place_unit(const UnitCode& code, uint32_t register_cap) {
  const Module& module = code.module;
  ptx::Edits edits(module);
  if (register_cap != 0) {
    for (const Function& f : module.functions) {
      if (f.kind != FunctionKind::Entry || !f.is_definition || has_launch_bounds(module, f)) continue;
      edits.insert_before(f.body.tokens.first, fmt::format(".maxnreg {}\n", register_cap));
    }
  }
  raise_dialect(code, edits);
  code.lines.add_new(edits);
  std::string text = edits.apply();
  text += foreign_declarations(code.kernels);
  for (const Generated& kernel : code.kernels) text += "\n" + kernel.text + "\n";
  return text;
}

}  // namespace klap::transform
