#include "transform/runtime_calls/no_runtime.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "analysis/launches/idioms.h"
#include "ptx/edit.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::Module;

// The functions that the unit only declares, with their new names: a tool can take none of these for the
// device runtime's. (Wrappers of them that a debug build defines are code of the unit like any other.)
std::map<std::string_view, std::string> names_of_runtime(const Module& m) {
  std::map<std::string_view, std::string> names;
  for (const Function& f : m.functions) {
    const bool is_runtime =
        f.linkage == ptx::Linkage::Extern && !f.is_definition && analysis::idioms().is_device_runtime(f.name);
    if (is_runtime) names.emplace(f.name, fmt::format("__klap_no_runtime_{}", names.size()));
  }
  return names;
}

// A query of the last error is told that there is none, as no launch can have failed. No other function has
// an answer.
std::string body_of(const Function& f) {
  const analysis::IdiomTable& idioms = analysis::idioms();
  const bool asks = idioms.is_last_error(f.name) || idioms.is_peek_last_error(f.name);
  if (!asks || f.results.size() != 1) return "\ttrap;\n\tret;\n";
  return fmt::format("\tst.param.b32 [{}], 0;\n\tret;\n", f.results[0].name);
}

// `.extern .func (results) name (parameters);` as a function of the unit.
void define(const Module& m, const Function& f, ptx::Edits& edits) {
  uint32_t head = f.tokens.first;
  while (!m.is(head, ".func")) ++head;
  if (head != f.tokens.first) edits.replace({f.tokens.first, head}, "");
  edits.replace({f.header.last, f.tokens.last}, "\n{\n" + body_of(f) + "}\n");
}

}  // namespace

std::string without_device_runtime(const Module& unit) {
  const auto names = names_of_runtime(unit);
  ptx::Edits edits(unit);
  std::map<std::string_view, bool> defined;
  for (const Function& f : unit.functions) {
    if (!names.contains(f.name)) continue;
    if (defined.emplace(f.name, true).second) {
      define(unit, f, edits);
    } else {
      edits.replace(f.tokens, "");
    }
  }
  const auto last = static_cast<uint32_t>(unit.tokens.size()) - 1;
  for (uint32_t t = 0; t < last; ++t) {
    const auto name = names.find(unit.text(t));
    if (name != names.end()) edits.replace({t, t + 1}, name->second);
  }
  return unit.source.substr(0, unit.tokens[0].begin) + edits.apply({0, last}) + "\n";
}

}  // namespace klap::transform
