#include "analysis/effects/loop_termination.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/effects/path_run.h"
#include "analysis/effects/value_order.h"
#include "analysis/effects/waiting.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using Value = ValueOrder::Value;

// Beyond these a loop counts as not shown, so that the analysis stays cheap.
constexpr size_t kMostPaths = 256, kMostSteps = 50000;
// Every loop that loads is looked at for idle paths, so these take less.
constexpr size_t kMostIdleSteps = 10000;

bool observes(const Module& m, const Statement& s) { return is_strong_load(m, s) || m.is(s.head, "atom"); }

class Proof {
 public:
  Proof(const Module& module, const ControlFlow& flow, const DataFlow& data, const LoopParts& loops,
        uint32_t loop, RankReading reading)
      : m_(module),
        flow_(flow),
        data_(data),
        loops_(loops),
        loop_(loops.all()[loop]),
        reading_(reading),
        run_(module, data, reading) {}

  bool run() {
    failed_ = flow_.has_unknown_branch() || loop_.entries.size() != 1 || !only_known_effects();
    if (failed_) return false;
    look_at_writes();
    enter(loop_.entries[0], PathState{}, true);
    return !failed_ && (open_.empty() || rank_exists());
  }

  // The paths back to the head on which nothing changes that the loop goes by, as lists of blocks.
  std::set<std::vector<uint32_t>> idle_paths() {
    failed_ = flow_.has_unknown_branch() || loop_.entries.size() != 1;
    if (failed_) return {};
    only_idle_ = true;
    look_at_writes();
    enter(loop_.entries[0], PathState{}, true);
    if (failed_) return {};
    std::set<std::string_view> steering = decisive_registers();
    std::erase_if(steering, [&](std::string_view reg) { return !is_carried(reg); });
    std::set<std::vector<uint32_t>> out;
    if (steering.empty()) return out;  // no other path changes anything either
    for (const PathState& path : open_) {
      if (keeps(path, steering)) out.insert(path.path);
    }
    return out;
  }

  // True if the loop is of a kind, or of a size, that no reading can be shown for.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }
  template <typename Visit>
  void for_each_instruction(const Loop& loop, Visit&& visit) const {
    for (uint32_t b : loop.blocks) {
      for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) visit(i);
    }
  }

  // ---- what the loop may hold ----

  // True if the loop has nothing by which threads wait for each other, no call, and no second look at one
  // place.
  [[nodiscard]] bool only_known_effects() const {
    using enum EffectKind;
    bool known = true;
    for_each_instruction(loop_, [&](uint32_t i) {
      for (EffectKind kind : instruction_effects(m_, at(i))) {
        known = known && (kind == Atomic || kind == Reduction || kind == StrongLoad || kind == StrongStore ||
                          kind == SharedAccess || kind == Trap || kind == Exit);
      }
      known = known && !m_.is(at(i).head, "call") && (!observes(m_, at(i)) || address_changes(i));
    });
    return known;
  }

  [[nodiscard]] bool address_changes(uint32_t i) const {
    const auto address = at(i).operands.size() < 2 ? std::nullopt : parse_address(m_, at(i).operands[1]);
    if (!address) return false;
    const auto& writers = data_.definitions(address->base);
    return std::any_of(writers.begin(), writers.end(),
                       [&](uint32_t w) { return loop_.contains(flow_.instructions()[w].block); });
  }

  // All writes are minima, or all are maxima, of one type: cells then move in one direction only.
  void look_at_writes() {
    std::set<std::string> kinds;
    for_each_instruction(loop_, [&](uint32_t i) {
      if (run_.writes_memory(at(i))) kinds.insert(m_.is(at(i).head, "st") ? "st" : minimum_or_maximum(at(i)));
    });
    one_direction_ =
        kinds.size() == 1 && (kinds.begin()->starts_with("min") || kinds.begin()->starts_with("max"));
  }
  // "min.s32"; other atomics: "".
  [[nodiscard]] std::string minimum_or_maximum(const Statement& s) const {
    const std::string_view type = m_.text(s.modifiers.last - 1);
    for (const char* operation : {".min", ".max"}) {
      if (m_.has_modifier(s, operation) && (type.starts_with(".s") || type.starts_with(".u")))
        return std::string(operation + 1) + std::string(type);
    }
    return "";
  }

  // ---- running ----

  // Control comes to a block. Back at the head, the path is complete; an inner loop's head stands for any
  // number of iterations of that loop.
  void enter(uint32_t block, PathState state, bool first = false) {
    if (failed_ || !loop_.contains(block)) return;
    if (!first && block == loop_.entries[0]) {
      finish(std::move(state));
      return;
    }
    if (std::find(state.path.begin(), state.path.end(), block) != state.path.end()) return;
    state.path.push_back(block);
    for (uint32_t l : loops_.around(block)) {
      const Loop& inner = loops_.all()[l];
      if (inner.entries.size() != 1) failed_ = true;
      if (inner.entries[0] == loop_.entries[0]) break;  // the loop itself
      if (inner.entries[0] != block) continue;
      if (only_idle_ && any_may_change(inner)) return;
      forget(inner, state);
    }
    step(flow_.blocks()[block].first, std::move(state));
  }

  void forget(const Loop& inner, PathState& state) {
    for_each_instruction(inner, [&](uint32_t i) {
      run_.set_unknown(at(i), state);
      if (m_.is(at(i).head, "st") || run_.writes_memory(at(i))) state.memory.clear();
    });
  }

  void finish(PathState state) {
    if (++paths_ > kMostPaths) failed_ = true;
    state.order.close();
    if (!state.order.impossible()) open_.push_back(std::move(state));
  }

  void step(uint32_t i, PathState state) {
    for (;; ++i) {
      if (failed_ || ++steps_ > (only_idle_ ? kMostIdleSteps : kMostSteps)) {
        failed_ = true;
        return;
      }
      const uint32_t block = flow_.instructions()[i].block;
      const bool last = i + 1 == flow_.blocks()[block].last;
      const Statement& s = at(i);
      if (only_idle_ && may_change(i)) return;
      if (!s.predicated && m_.is(s.head, "atom")) {
        atomic(i, last, std::move(state));
        return;
      }
      run_.execute(s, state);
      if (!last) continue;
      leave(i, block, state);
      return;
    }
  }

  void leave(uint32_t i, uint32_t block, const PathState& state) {
    const Statement& s = at(i);
    const auto& successors = flow_.blocks()[block].successors;
    const bool jumps = m_.is(s.head, "bra"), decides = jumps || m_.is(s.head, "ret") || m_.is(s.head, "exit");
    for (uint32_t n = 0; n < successors.size(); ++n) {
      PathState next = state;
      // A jump's target comes first among the successors; what follows another instruction is the way on.
      const bool taken = jumps && n == 0;
      if (s.predicated && decides && (!jumps || successors.size() == 2))
        run_.assume(run_.value_of(m_.text(s.predicate), next), taken != s.predicate_negated, next);
      enter(successors[n], std::move(next));
    }
  }

  void go_on(uint32_t i, bool last, PathState state) {
    if (last) {
      leave(i, flow_.instructions()[i].block, state);
    } else {
      step(i + 1, std::move(state));
    }
  }

  // ---- atomics: changed or not ----

  void atomic(uint32_t i, bool last, PathState state) {
    const Statement& s = at(i);
    const bool simple = s.operands.size() >= 3 && s.operands[0].size() == 1;
    const std::string kind = minimum_or_maximum(s);
    if (!simple || (kind.empty() && !m_.has_modifier(s, ".cas"))) {
      run_.execute(s, state);
      go_on(i, last, std::move(state));
      return;
    }
    const std::string where = run_.cell(s, state);
    const Value old = run_.content(where, state);
    const Value operand = run_.value_of(s.operands[2], state);
    if (kind.empty()) {
      compare_and_swap(i, last, std::move(state), where, old, operand);
    } else {
      extreme(i, last, std::move(state), kind, old, operand);
    }
  }

  void compare_and_swap(uint32_t i, bool last, PathState state, const std::string& where, Value old,
                        Value expected) {
    const Statement& s = at(i);
    PathState swapped = state;
    run_.set(s, old, state);
    state.order.differ(old, expected);
    go_on(i, last, std::move(state));
    const Value put = run_.value_of(s.operands[3], swapped);
    run_.set(s, old, swapped);
    swapped.order.equal(old, expected);
    swapped.memory.clear();
    swapped.memory[where] = put;
    go_on(i, last, std::move(swapped));
  }

  // If the cell changed and that counts as progress, the path is settled.
  void extreme(uint32_t i, bool last, PathState state, const std::string& kind, Value old, Value operand) {
    const Statement& s = at(i);
    if (!one_direction_) {
      PathState changed = state;
      run_.set(s, old, changed);
      changed.memory.clear();
      go_on(i, last, std::move(changed));
    }
    run_.set(s, old, state);
    if (run_.orders(kind.substr(3)))
      kind.starts_with("min") ? state.order.at_most(old, operand) : state.order.at_most(operand, old);
    go_on(i, last, std::move(state));
  }

  // ---- the rank ----

  // Starts with all registers that are carried around the loop. Registers that may not fall are taken out
  // until all that are left fall on every open path.
  bool rank_exists() {
    std::set<std::string_view> carried;
    for (const PathState& path : open_) {
      for (const auto& [reg, value] : path.start) carried.insert(reg);
    }
    std::erase_if(carried, [&](std::string_view reg) { return !written_in_loop(reg); });
    for (bool stable = false; !stable && !carried.empty();) {
      stable = true;
      for (const PathState& path : open_) {
        const auto still = falling(path, carried);
        stable = stable && still.size() == carried.size();
        carried = still;
      }
    }
    return !carried.empty();
  }

  [[nodiscard]] bool is_carried(std::string_view reg) const {
    return written_in_loop(reg) &&
           std::ranges::any_of(open_, [&](const PathState& path) { return path.start.contains(reg); });
  }

  [[nodiscard]] bool written_in_loop(std::string_view reg) const {
    const auto& writers = data_.definitions(reg);
    return std::any_of(writers.begin(), writers.end(),
                       [&](uint32_t w) { return loop_.contains(flow_.instructions()[w].block); });
  }

  // The registers whose new value is below the greatest old value of all of them (or above the least).
  std::set<std::string_view> falling(const PathState& path, const std::set<std::string_view>& registers) {
    ValueOrder order = path.order;
    const Value rank = run_.named("the rank");
    for (std::string_view r : registers) {
      const Value old = run_.named(fmt::format("{} at the head", r));
      reading_.falls ? order.at_most(old, rank) : order.at_most(rank, old);
    }
    order.close();
    std::set<std::string_view> out;
    for (std::string_view r : registers) {
      const auto now = path.registers.find(r);
      if (now == path.registers.end()) continue;
      if (reading_.falls ? order.is_less(now->second, rank) : order.is_less(rank, now->second)) out.insert(r);
    }
    return out;
  }

  // ---- paths on which nothing changes ----

  // The registers that branches of the loop, and what its atomics and loads ask for, are computed from. How
  // often an inner loop runs makes no difference, as what it may change counts as changed.
  [[nodiscard]] std::set<std::string_view> decisive_registers() const {
    std::set<std::string_view> out;
    std::vector<std::string_view> work;
    const auto reads = [&](uint32_t i) {
      for (std::string_view reg : registers_of(m_, at(i), data_.names()).read) {
        if (out.insert(reg).second) work.push_back(reg);
      }
    };
    for_each_instruction(loop_, [&](uint32_t i) {
      const uint32_t block = flow_.instructions()[i].block;
      if (loops_.all()[loops_.around(block)[0]].entries[0] != loop_.entries[0]) return;
      const bool decides = flow_.blocks()[block].last == i + 1 && at(i).predicated;
      if (decides || m_.is(at(i).head, "brx") || m_.is(at(i).head, "ld") || m_.is(at(i).head, "atom"))
        reads(i);
    });
    while (!work.empty()) {
      const std::string_view reg = work.back();
      work.pop_back();
      for (uint32_t writer : data_.definitions(reg)) {
        if (loop_.contains(flow_.instructions()[writer].block)) reads(writer);
      }
    }
    return out;
  }

  // True if the registers have their old values at the path's end.
  bool keeps(const PathState& path, const std::set<std::string_view>& registers) {
    return std::ranges::all_of(registers, [&](std::string_view reg) {
      const auto now = path.registers.find(reg);
      if (now == path.registers.end()) return true;
      const Value old = run_.named(fmt::format("{} at the head", reg));
      return path.order.is_at_most(now->second, old) && path.order.is_at_most(old, now->second);
    });
  }

  // True if an instruction writes memory, meets other threads, calls, or looks at a clock.
  [[nodiscard]] bool may_change(uint32_t i) const {
    using enum EffectKind;
    const Statement& s = at(i);
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const bool is_special = m_.text(t).starts_with('%') && !data_.names().is_register(m_.text(t));
      if (is_special && register_effect(m_.text(t)) == ClockRegister) return true;
    }
    if (m_.is(s.head, "st") || m_.is(s.head, "red") || m_.is(s.head, "call")) return true;
    if (m_.is(s.head, "atom") && (m_.has_modifier(s, ".inc") || m_.has_modifier(s, ".dec"))) return true;
    if (m_.is(s.head, "atom") && (m_.has_modifier(s, ".add") || m_.has_modifier(s, ".xor")))
      return s.operands.size() < 3 || m_.compact(s.operands[2]) != "0";
    return std::ranges::any_of(instruction_effects(m_, s), [](EffectKind kind) {
      return kind != Atomic && kind != StrongLoad && kind != SharedAccess && kind != Trap && kind != Exit;
    });
  }

  [[nodiscard]] bool any_may_change(const Loop& inner) const {
    bool any = false;
    for_each_instruction(inner, [&](uint32_t i) { any = any || may_change(i); });
    return any;
  }

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const LoopParts& loops_;
  const Loop& loop_;
  const RankReading reading_;
  PathRun run_;
  bool one_direction_ = false, failed_ = false;
  bool only_idle_ = false;  // paths on which an instruction may change something are not looked at
  size_t paths_ = 0, steps_ = 0;
  std::vector<PathState> open_;  // paths around the loop that need a rank
};

// All ways to read the order of a loop's values. Visit returns whether it wants the next one.
template <typename Visit>
void for_each_reading(Visit&& visit) {
  for (const char letter : {'s', 'u'}) {
    for (const uint32_t bytes : {4U, 8U}) {
      for (const bool falls : {true, false}) {
        if (!visit(RankReading{letter, bytes, falls})) return;
      }
    }
  }
}

bool loop_observes(const Module& m, const ControlFlow& flow, const Loop& loop) {
  return std::any_of(loop.blocks.begin(), loop.blocks.end(), [&](uint32_t b) {
    for (uint32_t i = flow.blocks()[b].first; i < flow.blocks()[b].last; ++i) {
      if (observes(m, *flow.instructions()[i].statement)) return true;
    }
    return false;
  });
}

}  // namespace

bool LoopTermination::ends_by_itself(uint32_t loop) {
  if (shown_[loop]) return *shown_[loop];
  bool shown = false, failed = false;
  for_each_reading([&](const RankReading& reading) {
    Proof proof(module_, flow_, data_, loops_, loop, reading);
    shown = proof.run();
    failed = proof.failed();
    return !shown && !failed;
  });
  for (uint32_t inner = 0; shown && inner < loops_.all().size(); ++inner) {
    const bool inside = loops_.all()[inner].parent == loop;
    if (inside && loop_observes(module_, flow_, loops_.all()[inner])) shown = ends_by_itself(inner);
  }
  shown_[loop] = shown;
  return shown;
}

const std::set<std::vector<uint32_t>>& LoopTermination::idle_paths(uint32_t loop) {
  if (idle_[loop]) return *idle_[loop];
  std::optional<std::set<std::vector<uint32_t>>> idle;
  for_each_reading([&](const RankReading& reading) {
    if (!reading.falls) return true;  // a rank only
    const auto found = Proof(module_, flow_, data_, loops_, loop, reading).idle_paths();
    if (idle) {
      std::erase_if(*idle, [&](const auto& path) { return !found.contains(path); });
    } else {
      idle = found;
    }
    return !idle->empty();
  });
  idle_[loop] = std::move(idle);
  return *idle_[loop];
}

std::string print_loop_termination(const Module& module, const ControlFlow& flow, const DataFlow& data) {
  const LoopParts loops(flow);
  if (!loops.loops().known()) return print_loops(flow, loops.loops());
  LoopTermination termination(module, flow, data, loops);
  std::string out;
  for (uint32_t l = 0; l < loops.all().size(); ++l) {
    const Loop& loop = loops.all()[l];
    if (!loop_observes(module, flow, loop)) continue;
    const Statement& first = *flow.instructions()[flow.blocks()[loop.entries[0]].first].statement;
    out += fmt::format("the loop at line {}: {}\n", module.line(first.head),
                       termination.ends_by_itself(l) ? "ends by itself" : "unknown");
  }
  return out;
}

}  // namespace klap::analysis
