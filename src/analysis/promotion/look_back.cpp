#include "analysis/promotion/look_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/promotion/overlap.h"
#include "analysis/synchronisation/barriers.h"
#include "analysis/synchronisation/single_thread.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// A value that takes more operations is not looked through.
constexpr uint32_t kDeepest = 64;

// The operation, "add.s32", of an instruction that combines two values in any order. It is the same for all
// signs if that makes no difference. Empty for any other instruction.
std::string operation_of(const ptx::Module& m, const Statement& s) {
  if (s.predicated || s.operands.size() != 3) return "";
  const std::string_view opcode = m.text(s.head);
  const std::string_view type = m.text(s.modifiers.empty() ? s.head : s.modifiers.last - 1);
  const bool plain = s.modifiers.size() == 1;
  const bool integer = type == ".s32" || type == ".u32" || type == ".s64" || type == ".u64";
  const bool floating = type == ".f32" || type == ".f64";
  const bool bits = type == ".b32" || type == ".b64";
  if (opcode == "add" && plain && integer) return fmt::format("add.s{}", type.substr(2));
  if ((opcode == "min" || opcode == "max") && plain && (integer || floating))
    return fmt::format("{}{}", opcode, type);
  if ((opcode == "and" || opcode == "or" || opcode == "xor") && plain && bits)
    return fmt::format("{}{}", opcode, type);
  return "";
}

// Registers of bits serve every operation of their width, others those of their kind.
bool fits(std::string_view register_type, std::string_view operation) {
  const std::string_view type = operation.substr(operation.rfind('.'));
  return register_type.starts_with(".b") || (register_type[1] == 'f') == (type[1] == 'f');
}

class Carrier {
 public:
  Carrier(const FunctionFacts& kernel, const ChainFacts& chain)
      : k_(kernel), v_(kernel.values()), chain_(chain), boundary_(kernel.flow.index_of(chain.boundary)) {}

  // Finds how the argument leaves the link; `problem` is empty if it is carried.
  std::optional<CarriedArgument> carry(const ChainArgument& a, std::string& problem) {
    out_ = {};
    own_ = 0;
    problem_.clear();
    argument_ = &a;
    follow(k_.flow.index_of(a.store), a.source, 0);
    if (problem_.empty() && own_ != 1)
      problem_ = own_ == 0 ? "what is passed on is not combined with what came" : "what came is used twice";
    problem = problem_;
    return problem_.empty() ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] std::string text(uint32_t i) const {
    return fmt::format("{} ({})", k_.module.full_opcode(at(i)), k_.module.place(at(i).head));
  }

  void follow(uint32_t reader, std::string_view operand, uint32_t depth) {
    if (!problem_.empty()) return;
    const uint32_t reg = v_.registers.find(reader, operand);
    const bool is_literal = reg == VirtualRegisters::kNone;
    const bool is_operand =
        !out_.operation.empty() &&
        (is_literal || (fits(v_.registers[reg].type, out_.operation) && is_known_at_boundary(reg)));
    if (is_operand) {
      out_.values.emplace_back(operand);
      return;
    }
    const auto definition = is_literal ? std::nullopt : v_.reaching.only_definition(reader, reg);
    if (depth < kDeepest && definition && (is_own(*definition, reg) || look_through(*definition, depth)))
      return;
    if (!out_.operation.empty()) {
      problem_ = fmt::format("{} is not known at the boundary", operand);
    } else if (definition) {
      problem_ = text(*definition) + " is none of the operations that can be carried";
    } else {
      problem_ = "what is passed on is one of several values";
    }
  }

  // True if the value is the argument itself, as it came.
  bool is_own(uint32_t definition, uint32_t reg) {
    const Expr value = v_.symbolic.written(definition, reg);
    if (!(value == Expr::parameter(argument_->offset, 8 * argument_->bytes))) return false;
    ++own_;
    return true;
  }

  // Follows a value through copies, and through the operation that was found first.
  bool look_through(uint32_t definition, uint32_t depth) {
    const Statement& s = at(definition);
    const ptx::Module& m = k_.module;
    if (m.is(s.head, "mov") && !s.predicated && s.operands.size() == 2 && s.operands[0].size() == 1 &&
        s.operands[1].size() == 1 && is_register(definition, s.operands[1]) &&
        ptx::type_bytes(m.text(s.modifiers.last - 1)) == argument_->bytes) {
      follow(definition, m.text(s.operands[1]), depth + 1);
      return true;
    }
    const std::string operation = operation_of(m, s);
    if (operation.empty() || (!out_.operation.empty() && operation != out_.operation)) return false;
    out_.operation = operation;
    for (const size_t i : {size_t{1}, size_t{2}})
      follow(definition, components(m, s.operands[i])[0], depth + 1);
    return true;
  }

  [[nodiscard]] bool is_register(uint32_t i, ptx::TokenRange operand) const {
    return v_.registers.find(i, k_.module.text(operand)) != VirtualRegisters::kNone;
  }

  // True if nothing writes the register at the boundary or later, and the instruction that wrote it stays
  // where it is. Then it needs no postponed argument, since nothing before the boundary does.
  [[nodiscard]] bool is_known_at_boundary(uint32_t reg) const {
    const VirtualRegister& r = v_.registers[reg];
    if (r.scope != &k_.function.body || r.is_parameter || k_.data.is_ambiguous(r.name)) return false;
    return std::ranges::all_of(k_.data.definitions(r.name), [&](uint32_t writer) {
      return writer != boundary_ && !k_.flow.can_follow(boundary_, writer) &&
             std::ranges::find(chain_.moved, &at(writer)) == chain_.moved.end();
    });
  }

  const FunctionFacts& k_;
  const Values& v_;
  const ChainFacts& chain_;
  const uint32_t boundary_;
  const ChainArgument* argument_ = nullptr;
  CarriedArgument out_;
  uint32_t own_ = 0;  // how often the argument itself was found
  std::string problem_;
};

// The access to memory that others can see between the boundary and the launch; empty if there is none.
std::string between(const FunctionFacts& k, const ChainFacts& chain) {
  const ControlFlow& flow = k.flow;
  const uint32_t boundary = flow.index_of(chain.boundary);
  const uint32_t launch = flow.index_of(chain.site->launch_call);
  const auto behind = [&](uint32_t i) { return i == boundary || flow.can_follow(boundary, i); };
  std::vector<uint32_t> meetings;  // of threads of a block, or of lanes
  for (const BarrierUse& use : find_barriers(k, k.calls())) meetings.push_back(use.instruction);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    if (k.module.is(s.head, "bar") && k.module.has_modifier(s, ".warp")) meetings.push_back(i);
  }
  const bool meet_before = std::ranges::any_of(
      meetings, [&](uint32_t meeting) { return behind(meeting) && flow.can_follow(meeting, launch); });
  const auto is_ordered = [&](uint32_t i) {
    if (flow.can_follow(i, launch)) return true;
    return meet_before &&
           std::ranges::any_of(meetings, [&](uint32_t meeting) { return flow.can_follow(i, meeting); });
  };
  const MemoryEffects memory(k);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    if (!behind(i) || &s == chain.site->get_call || &s == chain.site->launch_call || !is_ordered(i)) continue;
    const bool own =
        std::ranges::all_of(memory.uses_of(s), [](const auto& use) { return is_of_block(use.first); });
    const auto effects = instruction_effects(k.module, s);
    const bool orders = std::ranges::any_of(effects, [](EffectKind kind) {
      using enum EffectKind;
      return kind == Fence || kind == Sleep || kind == Trap || kind == Allocation;
    });
    if (!own || orders || k.module.is(s.head, "call"))
      return fmt::format("{} ({}) stands between the boundary and the launch", k.module.full_opcode(s),
                         k.module.place(s.head));
  }
  return "";
}

}  // namespace

void find_look_back(const FunctionFacts& kernel, ChainFacts& chain) {
  const auto decide = [&]() -> std::string {
    if (chain.boundary == nullptr) return "there is no overlap";
    if (chain.condition != LinkCondition::Counted) return "the condition is not counted";
    Carrier carrier(kernel, chain);
    std::string problem;
    for (ChainArgument& a : chain.arguments) {
      if (a.kind != LinkArgument::Postponed) continue;
      a.carried = carrier.carry(a, problem);
      if (!problem.empty()) return fmt::format("the argument at offset {}: {}", a.offset, problem);
    }
    const auto [x, y, z] = chain.block;
    if (!is_launched_by_first_thread(kernel, *chain.site, {x, y, z}))
      return "another thread than the block's first one launches";
    return between(kernel, chain);
  };
  chain.look_back_text = decide();
  chain.looks_back = chain.look_back_text.empty();
}

}  // namespace klap::analysis
