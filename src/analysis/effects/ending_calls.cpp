#include "analysis/effects/ending_calls.h"

#include <algorithm>
#include <string_view>

#include "analysis/effects/effects.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

bool may_end_threads(const Module& m, const Statement& s, const LocalNames& names) {
  const auto call = parse_call(m, s, names);
  if (!call) return false;
  if (!call->direct) return true;
  const auto harmless = [](std::string_view name) {
    return is_known_external(name) || idioms().is_device_runtime(name);
  };
  const ptx::Function* callee = m.find_function(call->callee);
  if (callee == nullptr || !callee->is_definition) return !harmless(call->callee);
  CallClosure closure = call_closure(m, *callee);
  closure.functions.push_back(callee);
  bool found = closure.indirect || !std::all_of(closure.external.begin(), closure.external.end(), harmless);
  for (const ptx::Function* function : closure.functions) {
    ptx::for_each_statement(function->body, [&](const Statement& inner) {
      found = found || (inner.kind == ptx::StatementKind::Instruction && m.is(inner.head, "exit"));
    });
  }
  return found;
}

EndingCalls::EndingCalls(const ControlFlow& flow) : flow_(flow), behind_(flow.blocks().size()) {
  const LocalNames names(flow.module(), flow.function().body);
  std::vector<uint32_t> work;
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (!may_end_threads(flow.module(), *flow.instructions()[i].statement, names)) continue;
    calls_.push_back(i);
    const auto& next = flow.blocks()[flow.instructions()[i].block].successors;
    work.insert(work.end(), next.begin(), next.end());
  }
  while (!work.empty()) {
    const uint32_t block = work.back();
    work.pop_back();
    if (behind_[block]) continue;
    behind_[block] = true;
    const auto& next = flow.blocks()[block].successors;
    work.insert(work.end(), next.begin(), next.end());
  }
}

bool EndingCalls::is_behind(uint32_t instruction) const {
  const uint32_t block = flow_.instructions()[instruction].block;
  return behind_[block] || std::any_of(calls_.begin(), calls_.end(), [&](uint32_t call) {
           return flow_.instructions()[call].block == block && call < instruction;
         });
}

}  // namespace klap::analysis
