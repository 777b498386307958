#include "analysis/effects/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analysis/graph/graph.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/sites.h"
#include "analysis/suspension/suspension.h"
#include "ptx/lines.h"
#include "ptx/opcodes.h"
#include "support/error.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::OpcodeEffect;
using ptx::Statement;
using ptx::StatementKind;

const char* to_string(EffectKind kind) {
  switch (kind) {
#define KLAP_EFFECT(name, text) \
  case EffectKind::name:        \
    return text;
    KLAP_EFFECTS(KLAP_EFFECT)
#undef KLAP_EFFECT
  }
  return "unknown";
}

// ---- instructions ----

namespace {

// The effect of an opcode that has one whatever its modifiers are.
std::optional<EffectKind> opcode_effect(OpcodeEffect effect) {
  switch (effect) {
    case OpcodeEffect::None:
    case OpcodeEffect::Barrier:
    case OpcodeEffect::Unlisted:
      return std::nullopt;
#define KLAP_EFFECT(name)  \
  case OpcodeEffect::name: \
    return EffectKind::name;
      KLAP_OPCODE_EFFECTS(KLAP_EFFECT)
#undef KLAP_EFFECT
  }
  return std::nullopt;
}

// Which threads a `bar` or `barrier` instruction holds.
EffectKind barrier_effect(const Module& m, const Statement& s) {
  if (m.has_modifier(s, ".warp")) return EffectKind::WarpSync;
  if (m.has_modifier(s, ".cluster")) return EffectKind::ClusterBarrier;
  const size_t without_count = m.has_modifier(s, ".red") ? 3 : 1;
  return s.operands.size() > without_count ? EffectKind::PartialBarrier : EffectKind::BlockBarrier;
}

std::optional<EffectKind> modifier_effect(std::string_view modifier) {
  if (modifier.starts_with(".shared")) return EffectKind::SharedAccess;
  if (modifier.starts_with(".mbarrier")) return EffectKind::BarrierObject;
  if (modifier == ".cluster") return EffectKind::ClusterAccess;
  if (modifier.starts_with(".proxy") || modifier.starts_with(".tensormap") || modifier == ".async" ||
      modifier == ".bulk") {
    return EffectKind::AsyncCopy;
  }
  return std::nullopt;
}

bool is_strong_store(const Module& m, const Statement& s) {
  return m.is(s.head, "st") && (m.has_modifier(s, ".volatile") || m.has_modifier(s, ".relaxed") ||
                                m.has_modifier(s, ".release") || m.has_modifier(s, ".mmio"));
}

std::optional<EffectKind> external_effect(std::string_view name) {
  using enum EffectKind;
  static const std::map<std::string_view, EffectKind> kKnown = {
      {"malloc", Allocation},   {"free", Allocation},  {kTakeFrame, Allocation},
      {kGiveFrame, Allocation}, {"vprintf", Printing}, {"__assertfail", Assertion},
  };
  const auto found = kKnown.find(name);
  if (found == kKnown.end()) return std::nullopt;
  return found->second;
}

bool is_runtime_allocation(std::string_view name) {
  return name.find("Malloc") != std::string_view::npos || name.ends_with("Free");
}

}  // namespace

bool is_known_external(std::string_view name) { return external_effect(name).has_value(); }

bool is_virtual_special_register(std::string_view name) {
  return name == "%tid" || name == "%ctaid" || name == "%ntid" || name == "%nctaid";
}

EffectKind register_effect(std::string_view name) {
  if (is_virtual_special_register(name)) return EffectKind::PositionRegister;
  if (name == "%laneid" || name.starts_with("%lanemask_")) return EffectKind::LaneRegister;
  if (name == "%clock" || name == "%clock64" || name == "%clock_hi" || name == "%globaltimer" ||
      name == "%globaltimer_lo" || name == "%globaltimer_hi") {
    return EffectKind::ClockRegister;
  }
  if (name == "%smid" || name == "%nsmid") return EffectKind::ProcessorRegister;
  return EffectKind::OtherRegister;
}

// The effect of the opcode comes first: it names the instruction better than its modifiers.
std::vector<EffectKind> instruction_effects(const Module& m, const Statement& s) {
  if (s.kind != StatementKind::Instruction) return {};
  std::vector<EffectKind> out;
  const auto add = [&](EffectKind kind) {
    if (std::find(out.begin(), out.end(), kind) == out.end()) out.push_back(kind);
  };
  const OpcodeEffect by_opcode = ptx::opcode_of(m, s).effect;
  const bool barrier = by_opcode == OpcodeEffect::Barrier;
  if (barrier) add(barrier_effect(m, s));
  if (const auto effect = opcode_effect(by_opcode)) add(*effect);
  // Not only operations of a warp on its registers say `.sync`. Others read or write memory (`ldmatrix`,
  // `wmma.load`), or concern more than a warp (`wgmma`, `setmaxnreg`).
  const bool says_sync = !barrier && m.has_modifier(s, ".sync");
  if (says_sync) add(EffectKind::WarpSync);
  if (by_opcode == OpcodeEffect::Unlisted || (says_sync && by_opcode != OpcodeEffect::WarpSync))
    add(EffectKind::UnlistedInstruction);
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last && !barrier; ++t) {
    if (const auto effect = modifier_effect(m.text(t))) add(*effect);
    if (m.is(t, ".shared::cluster")) add(EffectKind::ClusterAccess);
  }
  if (!barrier && m.has_modifier(s, ".cta")) add(EffectKind::BlockScope);
  if (is_strong_load(m, s)) add(EffectKind::StrongLoad);
  if (is_strong_store(m, s)) add(EffectKind::StrongStore);
  return out;
}

// ---- sets of effects ----

const Effect* Effects::find(EffectKind kind) const {
  const auto found = index_.lower_bound({kind, std::string(), nullptr});
  if (found == index_.end() || std::get<0>(found->first) != kind) return nullptr;
  // The index is sorted by text; the first one found is the one to name.
  size_t first = found->second;
  for (auto at = found; at != index_.end() && std::get<0>(at->first) == kind; ++at)
    first = std::min(first, at->second);
  return &all_[first];
}

void Effects::add(Effect effect) {
  if (index_.emplace(std::tuple(effect.kind, effect.what, effect.function), all_.size()).second)
    all_.push_back(std::move(effect));
}

void Effects::add(const Effects& other) {
  for (const Effect& effect : other.all_) add(effect);
}

// ---- the effects of one body ----

namespace {

// "add.u32 global gpu": operation, type, space and scope, the latter two also where they are the default.
std::string atomic_text(const Module& m, const Statement& s) {
  std::string operation, space = "generic", scope = "gpu";
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    if (modifier == ".global" || modifier.starts_with(".shared")) {
      space = modifier.substr(1);
    } else if (modifier == ".cta" || modifier == ".cluster" || modifier == ".gpu" || modifier == ".sys") {
      scope = modifier.substr(1);
    } else {
      operation += modifier;
    }
  }
  return fmt::format("{} {} {}", operation.empty() ? operation : operation.substr(1), space, scope);
}

std::string instruction_text(const Module& m, const Statement& s, EffectKind kind) {
  using enum EffectKind;
  std::string text = m.full_opcode(s);
  if (kind == Atomic || kind == Reduction) return atomic_text(m, s);
  if (kind == BlockBarrier || kind == PartialBarrier) {
    for (size_t i = 0; i < s.operands.size(); ++i) text += (i == 0 ? " " : ", ") + m.compact(s.operands[i]);
  }
  return text;
}

// The module's functions and variables by name, made once for many look-ups.
struct ModuleIndex {
  explicit ModuleIndex(const Module& m) : module(m) {
    for (const Function& f : m.functions) {
      if (f.is_definition) definitions.emplace(f.name, &f);
    }
    for (const ptx::Variable& v : m.variables) variables.emplace(v.name, &v);
  }
  [[nodiscard]] const Function* definition(std::string_view name) const {
    const auto found = definitions.find(name);
    return found == definitions.end() ? nullptr : found->second;
  }
  const Module& module;
  std::unordered_map<std::string_view, const Function*> definitions;
  std::unordered_map<std::string_view, const ptx::Variable*> variables;
};

class Body {
 public:
  Body(const ModuleIndex& index, const Function& function)
      : m_(index.module), index_(index), function_(function), names_(m_, function.body) {}

  Effects run() {
    ptx::for_each_statement(function_.body, [&](const Statement& s) { statement(s); });
    for (uint32_t t = function_.body.tokens.first; t < function_.body.tokens.last; ++t) {
      if (m_.tokens[t].kind == ptx::TokenKind::Identifier) identifier(t);
    }
    return std::move(out_);
  }

 private:
  void add(EffectKind kind, std::string what, uint32_t token) {
    out_.add({kind, std::move(what), &function_, token});
  }

  void statement(const Statement& s) {
    if (s.kind == StatementKind::Directive) declaration(s);
    if (s.kind != StatementKind::Instruction) return;
    for (EffectKind kind : instruction_effects(m_, s)) add(kind, instruction_text(m_, s, kind), s.head);
    if (const auto call = parse_call(m_, s, names_)) external(*call);
  }

  void declaration(const Statement& s) {
    bool external = false;
    std::string_view space;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const std::string_view text = m_.text(t);
      if (text == ".extern") external = true;
      if (text == ".shared" || text == ".local") space = text;
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      if (space == ".local") add(EffectKind::LocalMemory, std::string(text), t);
      if (space == ".shared") shared(text, external, t);
      return;
    }
  }
  void shared(std::string_view name, bool external, uint32_t token) {
    add(external ? EffectKind::DynamicShared : EffectKind::StaticShared, std::string(name), token);
  }

  void external(const Call& call) {
    const uint32_t at = call.statement->head;
    if (!call.direct) {
      add(EffectKind::IndirectCall, std::string(call.callee), at);
      return;
    }
    if (index_.definition(call.callee) != nullptr) return;
    const std::string name(call.callee);
    if (const auto known = external_effect(name)) {
      add(*known, name, at);
    } else if (idioms().is_device_runtime(name)) {
      add(EffectKind::DeviceRuntime, name, at);
      if (is_runtime_allocation(name)) add(EffectKind::Allocation, name, at);
    } else {
      add(EffectKind::UnknownCall, name, at);
    }
  }

  // Special registers are identifiers that begin with '%' and are declared nowhere in the function.
  void identifier(uint32_t token) {
    const std::string_view text = m_.text(token);
    if (text[0] == '%') {
      if (!names_.contains(text) && !names_.is_range(text))
        add(register_effect(text), std::string(text), token);
      return;
    }
    const auto variable = index_.variables.find(text);
    if (variable == index_.variables.end() || names_.contains(text)) return;
    if (variable->second->space == ".shared") {
      shared(text, variable->second->linkage == ptx::Linkage::Extern, token);
    } else if (variable->second->space != ".global" && variable->second->space != ".const") {
      add(EffectKind::Texture, std::string(text), token);
    }
  }

  const Module& m_;
  const ModuleIndex& index_;
  const Function& function_;
  const LocalNames names_;
  Effects out_;
};

}  // namespace

Effects own_effects(const Module& module, const Function& function) {
  return Body(ModuleIndex(module), function).run();
}

bool reads_lane(const Module& module, const Function& function) {
  return own_effects(module, function).has(EffectKind::LaneRegister);
}

// ---- calls ----

namespace {

// Calls `visit(call)` for every call of a body.
template <typename Visit>
void for_each_call(const Module& m, const Function& f, Visit&& visit) {
  const LocalNames names(m, f.body);
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (const auto call = parse_call(m, s, names)) visit(*call);
  });
}

}  // namespace

CallClosure call_closure(const Module& module, const Function& function) {
  CallClosure out;
  const ModuleIndex index(module);
  std::vector<const Function*> work = {&function};
  std::set<const Function*> seen;
  std::set<std::string_view> external;
  for (size_t next = 0; next < work.size(); ++next) {
    for_each_call(module, *work[next], [&](const Call& call) {
      if (!call.direct) {
        out.indirect = true;
        return;
      }
      const Function* callee = index.definition(call.callee);
      if (callee == nullptr) {
        if (external.insert(call.callee).second) out.external.emplace_back(call.callee);
      } else if (seen.insert(callee).second) {
        out.functions.push_back(callee);
        work.push_back(callee);
      }
    });
  }
  return out;
}

CallGraph::CallGraph(const Module& module) : module_(module) {
  for (const Function& f : module.functions) {
    if (f.is_definition) functions_.push_back(&f);
  }
  close();
}

CallGraph::CallGraph(const Module& module, const Function& root) : module_(module) {
  functions_ = call_closure(module, root).functions;
  if (root.is_definition && std::find(functions_.begin(), functions_.end(), &root) == functions_.end())
    functions_.insert(functions_.begin(), &root);
  close();
}

void CallGraph::close() {
  const ModuleIndex index(module_);
  std::unordered_map<std::string_view, uint32_t> by_name;
  for (uint32_t n = 0; n < functions_.size(); ++n) {
    index_.emplace(functions_[n], n);
    own_.push_back(Body(index, *functions_[n]).run());
  }
  for (uint32_t n = 0; n < functions_.size(); ++n) by_name.emplace(functions_[n]->name, n);
  callees_.resize(functions_.size());
  for (uint32_t n = 0; n < functions_.size(); ++n) {
    for_each_call(module_, *functions_[n], [&](const Call& call) {
      const auto callee = by_name.find(call.callee);
      if (call.direct && callee != by_name.end()) callees_[n].push_back(callee->second);
    });
    std::sort(callees_[n].begin(), callees_[n].end());
    callees_[n].erase(std::unique(callees_[n].begin(), callees_[n].end()), callees_[n].end());
  }
  const auto nodes = static_cast<uint32_t>(functions_.size());
  Components components =
      strongly_connected(nodes, [&](uint32_t n) -> const std::vector<uint32_t>& { return callees_[n]; });
  component_ = std::move(components.of);
  recursive_.assign(components.count, false);
  closed_.resize(components.count);
  std::vector<std::vector<uint32_t>> members(components.count);
  for (uint32_t n = 0; n < nodes; ++n) members[component_[n]].push_back(n);
  // Calls lead to components of smaller numbers, which are complete by then.
  for (uint32_t c = 0; c < components.count; ++c) {
    for (uint32_t n : members[c]) closed_[c].add(own_[n]);
    for (uint32_t n : members[c]) {
      for (uint32_t callee : callees_[n]) {
        if (component_[callee] == c) recursive_[c] = true;
        closed_[c].add(closed_[component_[callee]]);
      }
    }
  }
}

uint32_t CallGraph::node(const Function& function) const {
  const auto found = index_.find(&function);
  if (found == index_.end())
    throw Error(ErrorCode::Internal, function.name + " is not part of this call graph");
  return found->second;
}

const Effects& CallGraph::closure(const Function& function) const {
  return closed_[component_[node(function)]];
}

std::vector<const Function*> CallGraph::callees(const Function& function) const {
  std::vector<const Function*> out;
  for (uint32_t callee : callees_[node(function)]) out.push_back(functions_[callee]);
  return out;
}

bool CallGraph::is_recursive(const Function& function) const {
  return recursive_[component_[node(function)]];
}

std::string print_effects(const CallGraph& graph) {
  const ptx::LineNumbers lines(graph.module());
  std::string out;
  for (const Function* f : graph.functions()) {
    out += fmt::format("{} {}{}\n", f->kind == ptx::FunctionKind::Entry ? "kernel" : "function", f->name,
                       graph.is_recursive(*f) ? " (recursive)" : "");
    for (const Function* callee : graph.callees(*f)) out += fmt::format("  calls {}\n", callee->name);
    for (const Effect& effect : graph.closure(*f).all()) {
      const std::string in = effect.function == f ? "" : " of " + effect.function->name;
      out += fmt::format("  {}: {} (line {}{})\n", to_string(effect.kind), effect.what,
                         lines.of(effect.token), in);
    }
  }
  return out;
}

bool is_strong_load(const Module& m, const Statement& s) {
  return m.is(s.head, "ld") &&
         (m.has_modifier(s, ".volatile") || m.has_modifier(s, ".relaxed") || m.has_modifier(s, ".acquire") ||
          m.has_modifier(s, ".mmio") || m.has_modifier(s, ".cv"));
}

}  // namespace klap::analysis
