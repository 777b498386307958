#include "analysis/synchronisation/exits.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

bool ends_thread(const Module& m, const Statement& s) {
  return s.kind == StatementKind::Instruction && (m.is(s.head, "ret") || m.is(s.head, "exit"));
}

// Labels directly in front of a `ret` or `exit` that is always taken. A name that also stands elsewhere, in
// another scope, does not count.
class ExitLabels {
 public:
  explicit ExitLabels(const FunctionFacts& kernel) : m_(kernel.module) { collect(kernel.function.body); }

  [[nodiscard]] bool contains(std::string_view name) const {
    const auto found = labels_.find(name);
    return found != labels_.end() && found->second;
  }

 private:
  void collect(const Statement& block) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      const Statement& s = block.body[i];
      if (s.kind == StatementKind::Block) collect(s);
      if (s.kind != StatementKind::Label) continue;
      const auto [entry, first] = labels_.emplace(m_.text(s.head), true);
      entry->second = first && exit_follows(block, i + 1);
    }
  }

  [[nodiscard]] bool exit_follows(const Statement& block, size_t at) const {
    while (at < block.body.size() && is_nothing(block.body[at])) ++at;
    return at < block.body.size() && ends_thread(m_, block.body[at]) && !block.body[at].predicated;
  }
  [[nodiscard]] bool is_nothing(const Statement& s) const {
    return s.kind == StatementKind::Label ||
           (s.kind == StatementKind::Directive && (m_.is(s.head, ".loc") || m_.is(s.head, ";")));
  }

  const Module& m_;
  std::map<std::string_view, bool> labels_;
};

bool branches_to_exit(const Module& m, const Statement& s, const ExitLabels& labels) {
  return s.kind == StatementKind::Instruction && m.is(s.head, "bra") && s.operands.size() == 1 &&
         labels.contains(m.text(s.operands[0].first));
}

bool is_null_branch(const FunctionFacts& kernel, const Statement& s) {
  for (const Site& site : kernel.sites) {
    if (site.null_branch == &s) return true;
  }
  return false;
}

Rejection reject(const Module& m, uint32_t token, const std::string& what) {
  return {Reason::ParentExits, fmt::format("{} ({})", what, m.place(token))};
}

}  // namespace

// Block-wide barriers, and warp operations that wait for the lanes they name.
bool threads_wait(const FunctionFacts& kernel) {
  const Effects& effects = kernel.calls().closure(kernel.function);
  using enum EffectKind;
  return effects.has(BlockBarrier) || effects.has(PartialBarrier) || effects.has(ClusterBarrier) ||
         effects.has(WarpSync);
}

Exits find_exits(const FunctionFacts& kernel, bool may_lack_buffer) {
  const Module& m = kernel.module;
  const ExitLabels labels(kernel);
  const bool split = threads_wait(kernel);
  Exits exits;
  ptx::for_each_statement(kernel.function.body, [&](const Statement& s) {
    const bool branch =
        split && branches_to_exit(m, s, labels) && (may_lack_buffer || !is_null_branch(kernel, s));
    if (branch || ends_thread(m, s)) exits.ways.push_back(&s);
  });
  const auto& body = kernel.function.body.body;
  exits.falls_off_end = body.empty() || !ends_thread(m, body.back()) || body.back().predicated;
  return exits;
}

std::optional<Rejection> check_exits(const FunctionFacts& kernel) {
  const Module& m = kernel.module;
  std::optional<Rejection> found;
  for (const Function* callee : call_closure(m, kernel.function).functions) {
    if (found) break;
    if (const Effect* exit = kernel.calls().own(*callee).find(EffectKind::Exit))
      found = reject(m, exit->token, fmt::format("{}, called by it, may exit", callee->name));
  }
  if (found || !threads_wait(kernel)) return found;
  const ExitLabels labels(kernel);
  ptx::for_each_statement(kernel.function.body, [&](const Statement& s) {
    if (found || s.kind != StatementKind::Directive || !m.is(s.head, ".branchtargets")) return;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      if (!found && labels.contains(m.text(t))) {
        found = reject(m, s.head, "an indexed branch ends threads that others may wait for");
      }
    }
  });
  return found;
}

}  // namespace klap::analysis
