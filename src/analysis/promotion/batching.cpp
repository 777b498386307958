#include "analysis/promotion/batching.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/effects/effects.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/pure_code.h"
#include "analysis/graph/registers.h"
#include "analysis/legality/cooperation.h"
#include "analysis/values/values.h"
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
      if (const std::string rejection = check(i); !rejection.empty())
        return {std::nullopt, rejection + at(i)};
    }
    if (flow.has_unknown_branch()) return {std::nullopt, "it jumps to places that are not in the text"};
    if (const uint32_t jump = jump_over(boundary_); jump != ControlFlow::npos)
      return {std::nullopt, "the text of its beginning is not in one piece" + at(jump)};
    if (std::string rejection = find_shared(); !rejection.empty()) return {std::nullopt, rejection};
    find_passed();
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

  // The rejection to an instruction anywhere in the kernel. By it a thread could have state of the link
  // beside its registers and shared variables.
  [[nodiscard]] std::string check(uint32_t instruction) const {
    const Statement& s = *kernel_.flow.instructions()[instruction].statement;
    if (kernel_.module.is(s.head, "call")) return "it calls functions";
    if (kernel_.module.has_modifier(s, ".local")) return "it has local memory";
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

  [[nodiscard]] std::string at(uint32_t instruction) const {
    const uint32_t head = kernel_.flow.instructions()[instruction].statement->head;
    return fmt::format(": {} ({})", kernel_.module.text(head), kernel_.module.place(head));
  }

  // An instruction from which control leaps over the begin of instruction `cut`, in either direction, or
  // leaves the kernel before it; npos if there is none. Coming to `cut` itself from before is no leap.
  [[nodiscard]] uint32_t jump_over(uint32_t cut) const {
    const std::vector<BasicBlock>& blocks = kernel_.flow.blocks();
    for (const BasicBlock& block : blocks) {
      const uint32_t from = block.last - 1;
      if (block.exits_function && from < cut) return from;
      for (const uint32_t successor : block.successors) {
        const uint32_t to = blocks[successor].first;
        if (from < cut ? to > cut : to <= cut) return from;
      }
    }
    return ControlFlow::npos;
  }

  void find_passed() {
    const ControlFlow& flow = kernel_.flow;
    for (uint32_t i = 0; i < boundary_; ++i) {
      if (flow.instructions()[i].scope != &kernel_.function.body || is_replaced(i)) continue;
      if (jump_over(i) != ControlFlow::npos) continue;
      const Statement& s = *flow.instructions()[i].statement;
      out_.passed.push_back(&s);
      if (is_plain_barrier(s)) out_.barriers.push_back(&s);
    }
  }

  // True for a barrier of all threads, with nothing but a number.
  [[nodiscard]] bool is_plain_barrier(const Statement& s) const {
    const std::vector<EffectKind> effects = instruction_effects(kernel_.module, s);
    return std::ranges::find(effects, EffectKind::BlockBarrier) != effects.end() && !s.predicated &&
           s.operands.size() == 1 && !kernel_.module.text(s.operands[0]).starts_with('%') &&
           !kernel_.module.has_modifier(s, ".arrive");
  }

  // Finds the unit's variables that each link needs a copy of.
  std::string find_shared() {
    const ptx::Module& m = kernel_.module;
    const ptx::TokenRange body = kernel_.function.body.tokens;
    for (uint32_t t = body.first; t < body.last; ++t) {
      if (m.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      const ptx::Variable* variable = m.find_variable(m.text(t));
      if (variable == nullptr || variable->space != ".shared") continue;
      if (variable->linkage == ptx::Linkage::Extern) return "it has dynamic shared memory: " + variable->name;
      if (variable->declaration.empty() || variable->range != 0)
        return fmt::format("variable {} is declared together with others", variable->name);
      if (std::ranges::find(out_.shared, variable) == out_.shared.end()) out_.shared.push_back(variable);
    }
    out_.shared_bytes = most_static_shared_bytes(m, kernel_.function);
    return {};
  }

  // The registers that are read behind the boundary. These are the live ones there. Registers that the moved
  // instructions read count as well, but not those that they set, because these instructions come to stand
  // behind it.
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

  // An origin tells how a register's value is computed again: by instructions, from registers that it takes
  // as they are.
  struct Origin {
    std::set<uint32_t> instructions, roots;
  };
  // The origin of a register; nothing for a register that must be kept.
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
      // The register must still have the value that it had then.
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
                                               const std::set<uint32_t>& again) {
    for (const uint32_t reg : kept) out_.words += std::max(1u, registers_[reg].words());
    if (out_.words > kMostWords)
      return {std::nullopt, fmt::format("{} registers would have to stay for each link", out_.words)};
    for (const uint32_t i : again) out_.again.push_back(kernel_.flow.instructions()[i].statement);
    out_.instructions = static_cast<uint32_t>(kernel_.flow.instructions().size());
    return {std::move(out_), {}};
  }

  const FunctionFacts& kernel_;
  const ChainFacts& chain_;
  const VirtualRegisters& registers_;
  const uint32_t boundary_;
  std::set<const Statement*> replaced_;
  std::vector<std::vector<uint32_t>> definitions_;  // of each register
  std::map<uint32_t, std::optional<Origin>> origins_;
  Batching out_;
};

}  // namespace

BatchingVerdict judge_batching(const FunctionFacts& kernel, const ChainFacts& chain) {
  return Judge(kernel, chain).judge();
}

}  // namespace klap::analysis
