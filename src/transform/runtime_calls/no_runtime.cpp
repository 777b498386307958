#include "transform/runtime_calls/no_runtime.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "analysis/launches/idioms.h"
#include "transform/runtime_calls/replaced_functions.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::Module;

// A query of the last error is told that there is none, as no launch can have failed. No other function has
// an answer.
std::string body_of(const Function& f) {
  const analysis::IdiomTable& idioms = analysis::idioms();
  const bool asks = idioms.is_last_error(f.name) || idioms.is_peek_last_error(f.name);
  if (!asks || f.results.size() != 1) return "\n{\n\ttrap;\n\tret;\n}\n";
  return fmt::format("\n{{\n\tst.param.b32 [{}], 0;\n\tret;\n}}\n", f.results[0].name);
}

}  // namespace

// The functions that the unit only declares get new names: a tool can take none of these for the device
// runtime's. (Wrappers of them that a debug build defines are code of the unit like any other.)
std::string without_device_runtime(const Module& unit) {
  std::map<std::string_view, ReplacedFunction> replaced;
  for (const Function& f : unit.functions) {
    const bool is_runtime =
        f.linkage == ptx::Linkage::Extern && !f.is_definition && analysis::idioms().is_device_runtime(f.name);
    if (is_runtime)
      replaced.try_emplace(
          f.name, ReplacedFunction{fmt::format("__klap_no_runtime_{}", replaced.size()), body_of(f)});
  }
  return with_replaced_functions(unit, replaced);
}

}  // namespace klap::transform
