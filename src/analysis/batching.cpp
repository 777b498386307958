#include "analysis/batching.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/effects.h"
#include "analysis/pure_code.h"
#include "analysis/values.h"
#include "ptx/tree.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// More would cost more than the waiting that it saves.
constexpr uint32_t kMostWords = 8;

class Judge {
 public:
  Judge(const FunctionFacts& kernel, const ChainFacts& chain)
      : kernel_(kernel),
        chain_(chain),
        registers_(kernel.values().registers),
        boundary_(kernel.flow.index_of(chain.boundary)) {
    const Site& site = *chain.site;
    replaced_.insert({site.get_scope, site.launch_scope});
    for (const Argument& argument : site.arguments) replaced_.insert(argument.store);
    for (const ErrorQuery& query : kernel.error_queries) replaced_.insert(query.scope);
  }

  BatchingVerdict judge() {
    const ControlFlow& flow = kernel_.flow;
    if (flow.instructions()[boundary_].scope != &kernel_.function.body)
      return {std::nullopt, "the boundary stands in a scope of its own"};
    for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
      if (is_replaced(i)) continue;
      std::string objection = object_to(i);
      if (objection.empty() && (i == boundary_ || flow.can_follow(boundary_, i)))
        objection = object_behind(i);
      if (!objection.empty())
        return {std::nullopt, fmt::format("{}: {} ({})", objection,
                                          kernel_.module.text(flow.instructions()[i].statement->head),
                                          kernel_.module.place(flow.instructions()[i].statement->head))};
    }
    return keep();
  }

 private:
  [[nodiscard]] bool is_replaced(uint32_t instruction) const {
    const ControlFlow& flow = kernel_.flow;
    if (replaced_.contains(flow.instructions()[instruction].statement)) return true;
    const Statement* scope = flow.instructions()[instruction].scope;
    for (; scope != nullptr; scope = flow.enclosing(scope)) {
      if (replaced_.contains(scope)) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_space(const Statement& s, std::initializer_list<std::string_view> spaces) const {
    return std::ranges::any_of(spaces, [&](std::string_view space) {
      for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
        if (kernel_.module.text(t).starts_with(space)) return true;
      }
      return false;
    });
  }

  // To an instruction anywhere in the kernel: a thread could have something of the link's own beside its
  // registers.
  [[nodiscard]] std::string object_to(uint32_t instruction) const {
    const Statement& s = *kernel_.flow.instructions()[instruction].statement;
    if (kernel_.module.is(s.head, "call")) return "it calls functions";
    if (has_space(s, {".local"})) return "it has local memory";
    for (const EffectKind effect : instruction_effects(kernel_.module, s)) {
      switch (effect) {
        case EffectKind::LocalMemory:
        case EffectKind::StackAllocation:
          return "it has local memory";
        case EffectKind::BarrierObject:
        case EffectKind::PartialBarrier:
        case EffectKind::ClusterBarrier:
        case EffectKind::ClusterAccess:
        case EffectKind::AsyncCopy:
        case EffectKind::GridDependency:
        case EffectKind::UnlistedInstruction:
          return fmt::format("it has more than registers ({})", to_string(effect));
        default:
          break;
      }
    }
    return {};
  }

  // To one behind the boundary: it could read what the link has left in shared memory, which an address may
  // be of that does not say so.
  [[nodiscard]] std::string object_behind(uint32_t instruction) const {
    const Statement& s = *kernel_.flow.instructions()[instruction].statement;
    const std::string_view opcode = kernel_.module.text(s.head);
    if (opcode == "st") return {};
    const bool has_address = std::ranges::any_of(
        s.operands, [&](ptx::TokenRange operand) { return kernel_.module.text(operand).starts_with('['); });
    const bool is_known = opcode == "ld" || opcode == "ldu" || opcode == "atom" || opcode == "red";
    if (!has_address || (is_known && has_space(s, {".global", ".param", ".const"}))) return {};
    return "the rest of a link may read shared memory";
  }

  // What is read behind the boundary. That is what is live there; and what the moved instructions, which come
  // to stand behind it, read, but not what they set.
  [[nodiscard]] std::set<uint32_t> needed() const {
    std::set<uint32_t> out, set_later;
    for (const uint32_t reg : kernel_.values().liveness.live_before(boundary_)) out.insert(reg);
    for (const Statement* moved : chain_.moved) {
      for (const Access& access : registers_.accesses(kernel_.flow.index_of(moved))) {
        if (access.read) out.insert(access.reg);
        if (access.written) set_later.insert(access.reg);
      }
    }
    for (const uint32_t reg : set_later) out.erase(reg);
    return out;
  }

  // How a register's value comes about again: by instructions, from registers that it takes as they are.
  struct Origin {
    std::set<uint32_t> instructions, roots;
  };
  // Nothing for one that must be kept.
  const std::optional<Origin>& origin(uint32_t reg) {
    if (const auto known = origins_.find(reg); known != origins_.end()) return known->second;
    origins_[reg] = std::nullopt;  // in case it leads back here
    return origins_[reg] = find_origin(reg);
  }

  std::optional<Origin> find_origin(uint32_t reg) {
    const ControlFlow& flow = kernel_.flow;
    if (definitions_[reg].size() != 1) return std::nullopt;
    const uint32_t at = definitions_[reg].front();
    if (is_replaced(at) || !PureCode(kernel_).is_movable(at) || flow.can_follow(boundary_, at))
      return std::nullopt;
    Origin out;
    for (const Access& access : registers_.accesses(at)) {
      if (!access.read) continue;
      // It must still be what it was then.
      for (const uint32_t definition : definitions_[access.reg]) {
        if (flow.can_follow(at, definition)) return std::nullopt;
      }
      if (const auto& from = origin(access.reg)) {
        out.instructions.insert(from->instructions.begin(), from->instructions.end());
        out.roots.insert(from->roots.begin(), from->roots.end());
      } else {
        out.roots.insert(access.reg);
      }
    }
    out.instructions.insert(at);
    return out;
  }

  BatchingVerdict keep() {
    const ControlFlow& flow = kernel_.flow;
    definitions_.resize(registers_.all().size());
    for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
      for (const Access& access : registers_.accesses(i)) {
        if (access.written) definitions_[access.reg].push_back(i);
      }
    }
    std::set<uint32_t> kept, again;
    const std::set<uint32_t> all = needed();
    for (const uint32_t reg : all) {
      if (!origin(reg)) kept.insert(reg);
    }
    for (const uint32_t reg : all) {
      const auto& from = origin(reg);
      if (!from) continue;
      if (std::ranges::includes(kept, from->roots)) {
        again.insert(from->instructions.begin(), from->instructions.end());
      } else {
        kept.insert(reg);
      }
    }
    return kept_registers(kept, again);
  }

  [[nodiscard]] BatchingVerdict kept_registers(const std::set<uint32_t>& kept,
                                               const std::set<uint32_t>& again) const {
    Batching out;
    uint32_t words = 0;
    for (const uint32_t reg : kept) {
      const VirtualRegister& r = registers_[reg];
      const uint32_t bytes = ptx::type_bytes(r.type);
      const bool has_size = r.is_predicate() || bytes == 2 || bytes == 4 || bytes == 8;
      if (r.scope != &kernel_.function.body || r.lanes != 1 || !has_size)
        return {std::nullopt, fmt::format("register {} cannot be kept for each link", r.name)};
      words += std::max(1u, r.words());
      out.kept.push_back(r);
    }
    if (words > kMostWords)
      return {std::nullopt, fmt::format("{} registers would have to be kept for each link", words)};
    for (const uint32_t i : again) out.again.push_back(kernel_.flow.instructions()[i].statement);
    return {std::move(out), {}};
  }

  const FunctionFacts& kernel_;
  const ChainFacts& chain_;
  const VirtualRegisters& registers_;
  const uint32_t boundary_;
  std::set<const Statement*> replaced_;
  std::vector<std::vector<uint32_t>> definitions_;  // of each register
  std::map<uint32_t, std::optional<Origin>> origins_;
};

}  // namespace

BatchingVerdict judge_batching(const FunctionFacts& kernel, const ChainFacts& chain) {
  return Judge(kernel, chain).judge();
}

}  // namespace klap::analysis
