#include "analysis/legality/warp_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/effects/effects.h"
#include "analysis/legality/cooperation.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

// Effects that depend on the block as a whole in other ways than by its barrier and its own variables.
constexpr std::array kOfTheBlock = {
    EffectKind::PartialBarrier, EffectKind::ClusterBarrier, EffectKind::BarrierObject,
    EffectKind::ClusterAccess,  EffectKind::DynamicShared,  EffectKind::AsyncCopy,
    EffectKind::OtherRegister,  EffectKind::UnknownCall,    EffectKind::IndirectCall};
// Effects that must belong to the child itself.
constexpr std::array kOwn = {EffectKind::BlockBarrier, EffectKind::StaticShared, EffectKind::SharedAccess};

std::optional<std::string> check_effects(const Module& m, const Function& child) {
  const CallGraph graph(m, child);
  for (const EffectKind kind : kOfTheBlock) {
    const Effect* const effect = graph.closure(child).find(kind);
    if (effect != nullptr) return fmt::format("{} ({})", effect->what, m.place(effect->token));
  }
  for (const Function* function : graph.functions()) {
    if (function == &child) continue;
    for (const EffectKind kind : kOwn) {
      const Effect* const effect = graph.own(*function).find(kind);
      if (effect != nullptr) return fmt::format("{} in a called function", effect->what);
    }
  }
  return std::nullopt;
}

bool is_shared_declaration(const Module& m, const Statement& s) {
  return s.kind == StatementKind::Directive && m.is(s.head, ".shared");
}

bool is_block_barrier(const Module& m, const Statement& s) {
  return s.kind == StatementKind::Instruction && (m.is(s.head, "bar") || m.is(s.head, "barrier")) &&
         !m.has_modifier(s, ".warp");
}

// True for the plain form that waits for all threads.
bool is_plain(const Module& m, const Statement& barrier) {
  return m.has_modifier(barrier, ".sync") && !barrier.predicated && barrier.operands.size() == 1 &&
         m.compact(barrier.operands[0]) == "0";
}

// An address by the variable's name, or a `mov` of it: what a register can stand for.
bool is_plain_use(const Module& m, const Statement& s, uint32_t token) {
  if (m.is(token - 1, "[")) return true;
  return m.is(s.head, "mov") && s.operands.size() == 2 && s.operands[1].first == token &&
         s.operands[1].size() == 1;
}

class Reader {
 public:
  Reader(const Module& m, const Function& child) : m_(m), child_(child) {}

  WarpBlockVerdict read() {
    ptx::for_each_statement(child_.body, [&](const Statement& s) { collect(s); });
    const Effects effects = own_effects(m_, child_);
    for (const Effect& effect : effects.all()) {
      if (effect.kind == EffectKind::StaticShared && find(effect.what) == nullptr) collect_outer(effect.what);
    }
    ptx::for_each_statement(child_.body, [&](const Statement& s) { check_uses(s); });
    if (!why_not_.empty()) return {std::nullopt, why_not_};
    return {std::move(out_), ""};
  }

 private:
  void reject(const std::string& why) {
    if (why_not_.empty()) why_not_ = why;
  }
  [[nodiscard]] const SharedVariable* find(std::string_view name) const {
    const auto found = std::ranges::find(out_.variables, name, &SharedVariable::name);
    return found == out_.variables.end() ? nullptr : &*found;
  }

  void collect(const Statement& s) {
    if (is_shared_declaration(m_, s)) {
      auto variable = read_shared_variable(m_, s.tokens);
      if (!variable || find(variable->name) != nullptr) {
        reject("a shared variable is declared in another form, " + m_.place(s.head));
      } else {
        variable->declaration = &s;
        out_.variables.push_back(*std::move(variable));
      }
    }
    if (!is_block_barrier(m_, s)) return;
    if (!is_plain(m_, s)) reject("a barrier of another form, " + m_.place(s.head));
    out_.barriers.push_back(&s);
  }

  // nvcc declares the shared variables of inlined functions in front of the kernels. Each kernel has its own
  // memory for them.
  void collect_outer(const std::string& name) {
    const ptx::Variable* const found = m_.find_variable(name);
    auto variable = found != nullptr && found->range == 0 && !found->declaration.empty()
                        ? read_shared_variable(m_, found->declaration)
                        : std::nullopt;
    if (!variable || variable->name != name)
      return reject(fmt::format("{} is declared outside the child in another form", name));
    out_.variables.push_back(*std::move(variable));
  }

  void check_uses(const Statement& s) {
    if (s.kind != StatementKind::Instruction) return;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier || find(m_.text(t)) == nullptr) continue;
      if (!is_plain_use(m_, s, t))
        reject(fmt::format("{} is used in another form, {}", m_.text(t), m_.place(t)));
    }
  }

  const Module& m_;
  const Function& child_;
  WarpBlock out_;
  std::string why_not_;
};

}  // namespace

std::optional<SharedVariable> read_shared_variable(const Module& m, ptx::TokenRange declaration) {
  SharedVariable out;
  uint32_t size = 0, t = declaration.first;
  for (; t < declaration.last && out.name.empty(); ++t) {
    const std::string_view text = m.text(t);
    if (text == ".v2" || text == ".v4") return std::nullopt;
    if (text == ".align") {
      out.align = static_cast<uint32_t>(ptx::integer_value(m.text(++t)).value_or(0));
    } else if (m.tokens[t].kind == ptx::TokenKind::Identifier) {
      out.name = text;
    } else if (text != ".shared") {
      size = ptx::type_bytes(text);
    }
  }
  uint64_t bytes = size;
  for (; t + 2 < declaration.last && m.is(t, "["); t += 3)
    bytes *= ptx::integer_value(m.text(t + 1)).value_or(0);
  out.align = std::max(out.align, size);
  const bool is_known = out.align != 0 && (out.align & (out.align - 1)) == 0 && bytes != 0 &&
                        bytes <= kSharedLimit && m.is(t, ";");
  if (!is_known) return std::nullopt;
  out.own_bytes = static_cast<uint32_t>(bytes);
  out.bytes = static_cast<uint32_t>((bytes + out.align - 1) / out.align * out.align);
  return out;
}

uint32_t WarpBlock::shared_bytes() const {
  uint32_t bytes = 0;
  for (const SharedVariable& variable : variables) bytes += variable.bytes + variable.align - 1;
  return bytes;
}

WarpBlockVerdict judge_warp_block(const Module& m, const Function& child,
                                  const std::array<uint32_t, 3>& block) {
  if (early_exits(m, child, block) != MayExit::Nobody)
    return {std::nullopt, "threads may exit before others reach a barrier"};
  if (auto why = check_effects(m, child)) return {std::nullopt, *std::move(why)};
  return Reader(m, child).read();
}

}  // namespace klap::analysis
