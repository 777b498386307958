#include "transform/runtime_calls/newer_runtime.h"

#include <map>
#include <string_view>
#include <utility>

#include "analysis/launches/idioms.h"
#include "ptx/edit.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::Module;

constexpr std::string_view kOlder = "cuda", kNewer = "__cudaCDP2", kWait = "__klap_nothing_to_wait_for";

bool is_wait(const Function& function) { return analysis::idioms().is_kind(function.name, "wait"); }

// Graphs and groups have one set of functions for both versions.
bool has_namesake(const Function& function) {
  const analysis::IdiomTable& table = analysis::idioms();
  return function.name.starts_with(kOlder) && table.kind(function.name) != nullptr &&
         !table.is_kind(function.name, "graph") && !table.is_kind(function.name, "group");
}

// The functions of the older runtime that the unit declares, with the names that take their place.
std::map<std::string_view, std::string> newer_names(const Module& unit) {
  std::map<std::string_view, std::string> names;
  for (const Function& function : unit.functions) {
    if (function.linkage != ptx::Linkage::Extern || function.is_definition) continue;
    if (is_wait(function))
      names.emplace(function.name, kWait);
    else if (has_namesake(function))
      names.emplace(function.name, std::string(kNewer) + function.name.substr(kOlder.size()));
  }
  return names;
}

// `.extern .func (result) name ();` as a function of the unit that says that all went well.
void define_wait(const Module& unit, const Function& function, ptx::Edits& edits) {
  uint32_t head = function.tokens.first;
  while (!unit.is(head, ".func")) ++head;
  if (head != function.tokens.first) edits.replace({function.tokens.first, head}, "");
  const std::string result =
      function.results.empty() ? "" : "st.param.b32 [" + function.results[0].name + "], 0; ";
  edits.replace({function.header.last, function.tokens.last}, " { " + result + "ret; }");
}

}  // namespace

std::optional<std::string> in_newer_runtime(const Module& unit) {
  const auto names = newer_names(unit);
  if (names.empty()) return std::nullopt;
  ptx::Edits edits(unit);
  bool is_defined = false;
  for (const Function& function : unit.functions) {
    if (!names.contains(function.name) || !is_wait(function)) continue;
    if (std::exchange(is_defined, true))
      edits.replace(function.tokens, "");
    else
      define_wait(unit, function, edits);
  }
  const auto last = static_cast<uint32_t>(unit.tokens.size()) - 1;
  for (uint32_t t = 0; t < last; ++t) {
    const auto name = names.find(unit.text(t));
    if (name != names.end()) edits.replace({t, t + 1}, name->second);
  }
  return unit.source.substr(0, unit.tokens[0].begin) + edits.apply({0, last}) + "\n";
}

}  // namespace klap::transform
