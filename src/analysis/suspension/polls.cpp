#include "analysis/suspension/polls.h"

#include <cstdint>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/effects/polling.h"
#include "analysis/effects/waiting.h"

namespace klap::analysis {

namespace {

using ptx::Statement;

class PollFinder {
 public:
  explicit PollFinder(const FlowFacts& function)
      : m_(function.module), flow_(function.flow), waiting_(m_, flow_, function.data, WaitsFor::Children) {}

  std::vector<const Statement*> find() {
    // A loop that has a fence or a sleep as well as a look is to stop at the look.
    for (const bool is_look : {true, false}) {
      for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
        if (flow_.in_loop(i) && reads(i) == is_look && may_wait(i) && comes_round(i)) polls_.insert(i);
      }
    }
    std::vector<const Statement*> statements;
    for (const uint32_t i : polls_) statements.push_back(&at(i));
    return statements;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }

  [[nodiscard]] bool reads(uint32_t i) const { return m_.is(at(i).head, "ld") || m_.is(at(i).head, "atom"); }

  // Calls are left to the functions that they call. A strong load may also wait where its value does not
  // decide by itself whether its loop goes on.
  [[nodiscard]] bool may_wait(uint32_t i) {
    if (m_.is(at(i).head, "call") || memory_space(m_, at(i)) == ".shared") return false;
    return waiting_.watches(i) || (is_strong_load(m_, at(i)) && !waiting_.ends_by_itself(i));
  }

  // True if a thread can come from the instruction to itself without one of those found so far.
  [[nodiscard]] bool comes_round(uint32_t from) const {
    std::set<uint32_t> seen;
    std::vector<uint32_t> work = {from};
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      const BasicBlock& block = flow_.blocks()[flow_.instructions()[i].block];
      const auto reach = [&](uint32_t next) {
        if (!polls_.contains(next) && seen.insert(next).second) work.push_back(next);
      };
      if (i + 1 < block.last) {
        reach(i + 1);
      } else {
        for (const uint32_t next : block.successors) reach(flow_.blocks()[next].first);
      }
    }
    return seen.contains(from);
  }

  const ptx::Module& m_;
  const ControlFlow& flow_;
  Waiting waiting_;
  std::set<uint32_t> polls_;
};

}  // namespace

std::vector<const Statement*> find_polls(const FlowFacts& function) {
  if (function.flow.has_unknown_branch()) return {};
  return PollFinder(function).find();
}

}  // namespace klap::analysis
