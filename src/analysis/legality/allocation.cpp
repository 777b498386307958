#include "analysis/legality/allocation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/launches/wrappers.h"
#include "analysis/suspension/suspension.h"

namespace klap::analysis {
namespace {

// The function by which an instruction frees memory: free, cudaFree, or a function that calls one of them. It
// is empty if the instruction frees nothing.
std::string freed_by(const FunctionFacts& kernel, const FlatInstruction& instruction) {
  const ptx::Module& m = kernel.module;
  const auto call = parse_call(m, *instruction.statement, kernel.data.names());
  if (!call || !call->direct) return {};
  const std::string_view function = runtime_function(m, call->callee);
  const bool is_runtime = idioms().is_kind(function, "allocation") && function.ends_with("Free");
  if (is_runtime || call->callee == "free") return std::string(is_runtime ? function : call->callee);
  const ptx::Function* callee = m.find_function(call->callee);
  if (callee == nullptr || !kernel.calls().contains(*callee)) return {};
  const auto& effects = kernel.calls().closure(*callee).all();
  const bool frees = std::ranges::any_of(effects, [](const Effect& effect) {
    return effect.kind == EffectKind::Allocation && effect.what == "free";
  });
  return frees ? std::string(call->callee) : "";
}

// True if the thread has waited for all that it has launched before (suspension.h). The kernel says so in
// front of the call and of what passes its arguments.
bool is_all_complete(const FunctionFacts& kernel, uint32_t call) {
  const auto& instructions = kernel.flow.instructions();
  for (uint32_t i = call; i-- > kernel.flow.blocks()[instructions[call].block].first;) {
    const ptx::Statement& s = *instructions[i].statement;
    if (kernel.module.is(s.head, "mov") && kernel.module.is(s.operands[0].first, kAllComplete)) return true;
    if (kernel.module.is(s.head, "call")) return false;
  }
  return false;
}

}  // namespace

std::optional<Rejection> check_frees(const FunctionFacts& parent) {
  const auto& instructions = parent.flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const std::string by = freed_by(parent, instructions[i]);
    if (by.empty() || is_all_complete(parent, i)) continue;
    for (const Site& site : parent.sites) {
      if (site.get_call == nullptr || !parent.flow.can_follow(parent.flow.index_of(site.get_call), i))
        continue;
      return Rejection{Reason::ParentFrees, fmt::format("{} ({}) may free memory after the launch at {}", by,
                                                        parent.module.place(instructions[i].statement->head),
                                                        ptx::place(site.position))};
    }
  }
  return std::nullopt;
}

}  // namespace klap::analysis
