#include "transform/text/parts.h"

#include <fmt/format.h>

#include <map>

namespace klap::transform {

using ptx::Edits;
using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

const Function& template_function(const Module& module, const char* name) {
  const Function* f = module.find_function(name);
  if (f == nullptr || !f->is_definition) {
    throw Error(ErrorCode::Internal, fmt::format("the compiled template does not define {}", name));
  }
  return *f;
}

std::string linkage_text(const Function& f) {
  return f.linkage == ptx::Linkage::Weak ? ".weak " : ".visible ";
}

void drop_debug_labels(const Module& m, const Statement& body, Edits& edits) {
  std::map<std::string_view, int> mentions;
  for (uint32_t t = body.tokens.first; t < body.tokens.last; ++t) ++mentions[m.text(t)];
  ptx::for_each_statement(body, [&](const Statement& s) {
    if (s.kind == StatementKind::Label && mentions[m.text(s.head)] == 1) edits.replace(s.tokens, "");
  });
}

uint32_t behind_header(const ptx::Module& unit) {
  uint32_t first = 0;
  for (const ptx::Item& item : unit.items)
    if (item.kind == ptx::ItemKind::AddressSize) first = item.tokens.last;
  return first;
}

const analysis::Idiom& rewriting_idiom(const analysis::Site& site) {
  const analysis::Idiom* idiom = analysis::idioms().by_name(site.idiom->rewrite_with);
  if (idiom == nullptr)
    throw Error(ErrorCode::Internal, "a launch that cannot be rewritten: " + site.idiom->name);
  return *idiom;
}

std::vector<std::string> marker_declarations(const Module& m, const Module& compiled,
                                             const MarkedFunctions& functions) {
  std::vector<std::string> out;
  for (const auto& [marker, name] : functions) {
    if (m.find_function(name) != nullptr) continue;
    const Function* declared = compiled.find_function(marker);
    if (declared == nullptr)
      throw Error(ErrorCode::Internal, fmt::format("the compiled template does not declare {}", marker));
    Edits edits(compiled);
    edits.replace({declared->name_token, declared->name_token + 1}, name);
    out.push_back(edits.apply(declared->tokens) + "\n");
  }
  return out;
}

}  // namespace klap::transform
