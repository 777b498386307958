#include "analysis/optimise/fusing.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/cooperation.h"
#include "analysis/legality/slicing.h"
#include "analysis/optimise/early_start.h"
#include "analysis/synchronisation/early_exit.h"
#include "analysis/synchronisation/exits.h"
#include "support/demangle.h"

namespace klap::analysis {
namespace {

std::optional<std::string> why_threads_cannot_stay(const FunctionFacts& parent) {
  if (const auto uncounted = check_exits(parent)) return uncounted->detail;
  const Finding early = early_exit(parent);
  if (early.answer == Answer::No) return std::nullopt;
  return fmt::format("threads may exit while others have still to meet: {}", early.detail);
}

std::optional<std::string> why_not_coherent(const FunctionFacts& parent,
                                            const std::vector<FusedChild>& children) {
  if (!may_be_overtaken(parent.module, parent.function))
    return "it has instructions or calls that are not known";
  const Effects& effects = parent.calls().closure(parent.function);
  for (const EffectKind kind : {EffectKind::Texture, EffectKind::AsyncCopy}) {
    if (const Effect* const effect = effects.find(kind))
      return fmt::format("it has {} ({})", effect->what, parent.module.place(effect->token));
  }
  for (const FusedChild& child : children) {
    if (!reads_coherently(parent.module, child.kernel))
      return fmt::format("{} may read memory in a way that is not coherent", demangle(child.kernel.name));
  }
  return std::nullopt;
}

// True if the kernel, or what it calls, reads how much shared memory its block has. Its own dynamic shared
// memory is as it was where no child has any.
bool asks_for_shared(const CallGraph& graph, const ptx::Function& kernel, bool dynamic_is_own) {
  return std::ranges::any_of(graph.closure(kernel).all(), [&](const Effect& effect) {
    return effect.kind == EffectKind::OtherRegister && effect.what.find("smem_size") != std::string::npos &&
           !(dynamic_is_own && effect.what == "%dynamic_smem_size");
  });
}

std::optional<std::string> why_not_enough_shared(const FunctionFacts& parent,
                                                 const std::vector<FusedChild>& children) {
  const ptx::Module& m = parent.module;
  uint64_t bytes = most_static_shared_bytes(m, parent.function) + kFusedSharedBytes;
  uint32_t dynamic = 0;
  for (const FusedChild& child : children) {
    bytes += most_static_shared_bytes(m, child.kernel);
    dynamic = std::max(dynamic, child.shared_bytes);
  }
  const bool asks = asks_for_shared(parent.calls(), parent.function, dynamic == 0) ||
                    std::ranges::any_of(children, [&](const FusedChild& child) {
                      return asks_for_shared(CallGraph(m, child.kernel), child.kernel, false);
                    });
  if (asks) return "a part asks how much shared memory there is";
  if (bytes + dynamic > kSharedLimit)
    return fmt::format("all parts have {} bytes of shared memory", bytes + dynamic);
  return std::nullopt;
}

// A plain register can stand in the place of `%ntid.y` and `%ntid.z` where 32 bits are moved or converted.
bool is_replaceable(const ptx::Module& m, const ptx::Statement& s, uint32_t token) {
  if (m.is(token + 1, ".x")) return true;  // stays
  if (!m.is(token + 1, ".y") && !m.is(token + 1, ".z")) return false;
  return (m.is(s.head, "mov") || m.is(s.head, "cvt")) && !s.modifiers.empty() &&
         ptx::type_bytes(m.text(s.modifiers.last - 1)) == 4;
}

// True if the kernel can be told another value of the register, "%ntid" or "%nctaid", wherever it reads it.
bool can_be_told(const FunctionFacts& parent, const char* name) {
  const ptx::Module& m = parent.module;
  bool can = true;
  ptx::for_each_statement(parent.function.body, [&](const ptx::Statement& s) {
    if (s.kind != ptx::StatementKind::Instruction) return;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t)
      if (m.is(t, name)) can = can && is_replaceable(m, s, t);
  });
  const auto reads_it = [&](const Effect& effect) {
    return effect.kind == EffectKind::PositionRegister && effect.what == name;
  };
  return can && std::ranges::none_of(parent.calls().functions(), [&](const ptx::Function* f) {
           return f != &parent.function && std::ranges::any_of(parent.calls().own(*f).all(), reads_it);
         });
}

}  // namespace

MoreThanAsked may_have_more(const FunctionFacts& parent) {
  const uint64_t bytes = (uint64_t{parent.function.parameter_bytes} + 7) / 8 * 8 + 8 * parent.sites.size();
  // Other registers may tell how many warps or threads there are.
  if (parent.calls().closure(parent.function).has(EffectKind::OtherRegister) ||
      bytes + kSliceBytes + kProgramExtentsBytes > parameter_limit(parent.module))
    return {};
  const bool is_required =
      parent.module.text(parent.function.attributes).find(".reqntid") != std::string_view::npos;
  return {!is_required && !threads_wait(parent) && can_be_told(parent, "%ntid"),
          can_be_told(parent, "%nctaid")};
}

std::optional<std::string> why_not_fused(const FunctionFacts& parent,
                                         const std::vector<FusedChild>& children) {
  if (auto why = why_threads_cannot_stay(parent)) return why;
  if (auto why = why_not_coherent(parent, children)) return why;
  return why_not_enough_shared(parent, children);
}

}  // namespace klap::analysis
