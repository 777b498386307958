#include "transform/runtime_calls/newer_runtime.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/launches/idioms.h"
#include "ptx/edit.h"
#include "transform/runtime_calls/replaced_functions.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::Module;

constexpr std::string_view kOlder = "cuda";
constexpr char kNewer[] = "__cudaCDP2", kWait[] = "__klap_nothing_to_wait_for";

bool is_wait(const Function& function) { return analysis::idioms().is_kind(function.name, "wait"); }

// Graphs and groups have one set of functions for both versions.
bool has_namesake(const Function& function) {
  const analysis::IdiomTable& table = analysis::idioms();
  return function.name.starts_with(kOlder) && table.kind(function.name) != nullptr &&
         !table.is_kind(function.name, "graph") && !table.is_kind(function.name, "group");
}

// It says that all went well. It stands in one line, since messages name lines.
std::string body_of_wait(const Function& function) {
  return function.results.empty() ? " { ret; }"
                                  : " { st.param.b32 [" + function.results[0].name + "], 0; ret; }";
}

// As many line ends as the text has, so that what follows stays where it is.
std::string lines_of(const Module& unit, ptx::TokenRange tokens) {
  return std::string(static_cast<size_t>(std::ranges::count(unit.text(tokens), '\n')), '\n');
}

}  // namespace

std::optional<std::string> in_newer_runtime(const Module& unit) {
  std::map<std::string_view, ReplacedFunction> replaced;
  unsigned waits = 0;  // a unit may declare several
  for (const Function& function : unit.functions) {
    if (function.linkage != ptx::Linkage::Extern || function.is_definition) continue;
    if (is_wait(function))
      replaced.try_emplace(
          function.name,
          ReplacedFunction{kWait + (waits++ == 0 ? "" : std::to_string(waits)), body_of_wait(function)});
    else if (has_namesake(function))
      replaced.try_emplace(function.name, ReplacedFunction{kNewer + function.name.substr(kOlder.size()), ""});
  }
  if (replaced.empty()) return std::nullopt;
  return with_replaced_functions(unit, replaced);
}

std::optional<std::string> with_idle_waits(const Module& unit) {
  ptx::Edits edits(unit);
  for (const Function& function : unit.functions)
    if (function.is_definition && is_wait(function))
      edits.replace(function.body.tokens, body_of_wait(function) + lines_of(unit, function.body.tokens));
  if (edits.empty()) return std::nullopt;
  return edits.apply();
}

}  // namespace klap::transform
