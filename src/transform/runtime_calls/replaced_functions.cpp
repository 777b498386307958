#include "transform/runtime_calls/replaced_functions.h"

#include <set>

#include "ptx/edit.h"

namespace klap::transform {
namespace {

using ptx::Function;
using ptx::Module;

// `.extern .func (results) name (parameters);` as a function of the unit.
void define(const Module& unit, const Function& function, const std::string& body, ptx::Edits& edits) {
  uint32_t head = function.tokens.first;
  while (!unit.is(head, ".func")) ++head;
  if (head != function.tokens.first) edits.replace({function.tokens.first, head}, "");
  edits.replace({function.header.last, function.tokens.last}, body);
}

}  // namespace

std::string with_replaced_functions(const Module& unit,
                                    const std::map<std::string_view, ReplacedFunction>& replaced) {
  ptx::Edits edits(unit);
  std::set<std::string_view> defined;
  for (const Function& function : unit.functions) {
    const auto found = replaced.find(function.name);
    if (found == replaced.end() || found->second.body.empty()) continue;
    if (defined.insert(function.name).second)
      define(unit, function, found->second.body, edits);
    else
      edits.replace(function.tokens, "");
  }
  const auto last = static_cast<uint32_t>(unit.tokens.size()) - 1;
  for (uint32_t t = 0; t < last; ++t) {
    const auto found = replaced.find(unit.text(t));
    if (found != replaced.end()) edits.replace({t, t + 1}, found->second.name);
  }
  return edits.apply();
}

}  // namespace klap::transform
