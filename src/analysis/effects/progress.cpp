#include "analysis/effects/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/effects/value_order.h"
#include "analysis/effects/waiting.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using Value = ValueOrder::Value;

// Beyond these a loop counts as not shown, so that the analysis stays cheap.
constexpr size_t kMostPaths = 256, kMostSteps = 50000;

bool observes(const Module& m, const Statement& s) { return is_strong_load(m, s) || m.is(s.head, "atom"); }

// The order in which comparisons are read; comparisons of other types are not used.
struct Reading {
  char letter = 's';  // the type's letter: .s32 or .u64, ...
  uint32_t bytes = 4;
  bool falls = true;  // the rank; else it rises
};

// ---- one symbolic run ----

// A condition that a predicate stands for.
struct Condition {
  enum Kind { Unknown, Compare, And, Or } kind = Unknown;
  bool negated = false;
  std::string relation, type;  // Compare
  Value a = 0, b = 0;          // values, or predicates for And and Or
};

// Numbers for values. Equal operations on equal values get equal numbers, in all runs of one loop.
class Values {
 public:
  Value fresh() { return ++last_; }
  Value named(const std::string& text) {
    const auto [entry, is_new] = by_text_.emplace(text, last_ + 1);
    if (is_new) ++last_;
    return entry->second;
  }
  Value condition(Condition condition) {
    const Value value = fresh();
    conditions_.emplace(value, std::move(condition));
    return value;
  }
  [[nodiscard]] const Condition* condition_of(Value value) const {
    const auto found = conditions_.find(value);
    return found == conditions_.end() ? nullptr : &found->second;
  }

 private:
  Value last_ = 0;
  std::map<std::string, Value> by_text_;
  std::map<Value, Condition> conditions_;
};

struct State {
  std::map<std::string_view, Value> registers;
  std::map<std::string_view, Value> start;  // values that registers had at the loop's head
  std::map<std::string, Value> memory;      // by address and type
  ValueOrder order;
  std::vector<uint32_t> path;  // blocks
};

class Proof {
 public:
  Proof(const Module& module, const ControlFlow& flow, const DataFlow& data, const LoopParts& loops,
        uint32_t loop, Reading reading)
      : m_(module), flow_(flow), data_(data), loops_(loops), loop_(loops.all()[loop]), reading_(reading) {}

  bool run() {
    failed_ = flow_.has_unknown_branch() || loop_.entries.size() != 1 || !only_known_effects();
    if (failed_) return false;
    look_at_writes();
    enter(loop_.entries[0], State{}, true);
    return !failed_ && (open_.empty() || rank_exists());
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

  [[nodiscard]] bool writes_memory(const Statement& s) const {
    if (m_.is(s.head, "st")) return !m_.has_modifier(s, ".local") && !m_.has_modifier(s, ".param");
    return m_.is(s.head, "atom") || m_.is(s.head, "red");
  }

  // All writes are minima, or all are maxima, of one type: cells then move in one direction only.
  void look_at_writes() {
    std::set<std::string> kinds;
    for_each_instruction(loop_, [&](uint32_t i) {
      if (writes_memory(at(i))) kinds.insert(m_.is(at(i).head, "st") ? "st" : minimum_or_maximum(at(i)));
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
  // number of rounds of that loop.
  void enter(uint32_t block, State state, bool first = false) {
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
      if (inner.entries[0] == block) forget(inner, state);
    }
    step(flow_.blocks()[block].first, std::move(state));
  }

  void forget(const Loop& inner, State& state) {
    for_each_instruction(inner, [&](uint32_t i) {
      for (std::string_view r : registers_of(m_, at(i), data_.names()).written)
        state.registers[r] = values_.fresh();
      if (m_.is(at(i).head, "st") || writes_memory(at(i))) state.memory.clear();
    });
  }

  void finish(State state) {
    if (++paths_ > kMostPaths) failed_ = true;
    state.order.close();
    if (!state.order.impossible()) open_.push_back(std::move(state));
  }

  void step(uint32_t i, State state) {
    for (;; ++i) {
      if (failed_ || ++steps_ > kMostSteps) {
        failed_ = true;
        return;
      }
      const uint32_t block = flow_.instructions()[i].block;
      const bool last = i + 1 == flow_.blocks()[block].last;
      const Statement& s = at(i);
      if (!s.predicated && m_.is(s.head, "atom")) {
        atomic(i, last, std::move(state));
        return;
      }
      execute(s, state);
      if (!last) continue;
      leave(i, block, state);
      return;
    }
  }

  void leave(uint32_t i, uint32_t block, const State& state) {
    const Statement& s = at(i);
    const auto& successors = flow_.blocks()[block].successors;
    const bool jumps = m_.is(s.head, "bra"), decides = jumps || m_.is(s.head, "ret") || m_.is(s.head, "exit");
    for (uint32_t n = 0; n < successors.size(); ++n) {
      State next = state;
      // A jump's target comes first among the successors; what follows another instruction is the way on.
      const bool taken = jumps && n == 0;
      if (s.predicated && decides && (!jumps || successors.size() == 2))
        assume(value_of(m_.text(s.predicate), next), taken != s.predicate_negated, next);
      enter(successors[n], std::move(next));
    }
  }

  void go_on(uint32_t i, bool last, State state) {
    if (last) {
      leave(i, flow_.instructions()[i].block, state);
    } else {
      step(i + 1, std::move(state));
    }
  }

  // The value of an operand; `register + text` for an operand that is no register.
  Value value_of(std::string_view operand, State& state) {
    if (!data_.names().is_register(operand)) {
      if (operand.starts_with('%') && register_effect(operand) != EffectKind::PositionRegister)
        return values_.fresh();
      return values_.named(std::string(operand));
    }
    const auto known = state.registers.find(operand);
    if (known != state.registers.end()) return known->second;
    // A register that the loop does not write has one value for the whole loop, else the value at the head.
    const Value value = values_.named(fmt::format("{} at the head", operand));
    state.start.emplace(operand, value);
    return state.registers[operand] = value;
  }
  Value value_of(ptx::TokenRange operand, State& state) {
    if (operand.size() == 1) return value_of(m_.text(operand), state);
    const std::string text = m_.compact(operand);
    if (ptx::integer_value(text.starts_with('-') ? text.substr(1) : text)) return values_.named(text);
    return values_.fresh();
  }

  [[nodiscard]] std::string cell(const Statement& s, State& state) {
    const auto address = parse_address(m_, s.operands[1]);
    if (!address) return fmt::format("? {}", values_.fresh());
    // A signed load may extend the value to a wider register, so it counts as another cell.
    const std::string_view type = m_.text(s.modifiers.last - 1);
    const bool extends = m_.is(s.head, "ld") && type.starts_with(".s");
    std::string_view space;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      if (m_.is(t, ".global") || m_.text(t).starts_with(".shared") || m_.is(t, ".const")) space = m_.text(t);
    }
    return fmt::format("{} + {}: {}{}{}", value_of(address->base, state), address->offset,
                       ptx::type_bytes(type), extends ? "s" : "", space);
  }
  Value content(const std::string& cell, State& state) {
    const auto [entry, is_new] = state.memory.emplace(cell, 0);
    if (is_new) entry->second = values_.fresh();
    return entry->second;
  }

  void set(const Statement& s, Value value, State& state) { state.registers[m_.text(s.operands[0])] = value; }
  void set_unknown(const Statement& s, State& state) {
    for (std::string_view r : registers_of(m_, s, data_.names()).written)
      state.registers[r] = values_.fresh();
  }

  void execute(const Statement& s, State& state) {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "st" || writes_memory(s)) state.memory.clear();
    const bool one_result = !s.operands.empty() && s.operands[0].size() == 1 &&
                            registers_of(m_, s, data_.names()).written.size() == 1;
    if (s.predicated || !one_result) {
      set_unknown(s, state);
    } else if (opcode == "mov" && s.operands.size() == 2) {
      set(s, value_of(s.operands[1], state), state);
    } else if (opcode == "ld" && s.operands.size() == 2 && !m_.has_modifier(s, ".param")) {
      set(s, content(cell(s, state), state), state);
    } else if (opcode == "setp" && s.operands.size() == 3 && s.modifiers.size() == 2) {
      Condition c{Condition::Compare,
                  false,
                  std::string(m_.text(s.modifiers.first)).substr(1),
                  std::string(m_.text(s.modifiers.first + 1)),
                  0,
                  0};
      c.a = value_of(s.operands[1], state);
      c.b = value_of(s.operands[2], state);
      set(s, values_.condition(std::move(c)), state);
    } else if (m_.has_modifier(s, ".pred") && (opcode == "and" || opcode == "or" || opcode == "not")) {
      combine(s, opcode, state);
    } else {
      compute(s, opcode, state);
    }
  }

  void combine(const Statement& s, std::string_view opcode, State& state) {
    Condition c;
    c.kind = opcode == "or" ? Condition::Or : Condition::And;
    c.negated = opcode == "not";
    c.a = value_of(s.operands[1], state);
    c.b = opcode == "not" ? c.a : value_of(s.operands[2], state);
    set(s, values_.condition(std::move(c)), state);
  }

  // Operations on operands alone get a number by their text. Minima and maxima also get an order.
  void compute(const Statement& s, std::string_view opcode, State& state) {
    const bool pure = instruction_effects(m_, s).empty() && opcode != "ld" && opcode != "st" &&
                      opcode != "addc" && opcode != "subc" && opcode != "madc" && !m_.has_modifier(s, ".cc");
    if (!pure) {
      set_unknown(s, state);
      return;
    }
    std::string text = m_.full_opcode(s);
    std::vector<Value> operands;
    for (size_t n = 1; n < s.operands.size(); ++n) {
      operands.push_back(value_of(s.operands[n], state));
      text += fmt::format(" {}", operands.back());
    }
    const Value result = values_.named(text);
    set(s, result, state);
    if (operands.size() != 2 || !orders(s.modifiers.empty() ? "" : m_.text(s.modifiers.last - 1))) return;
    if (opcode == "max") state.order.greater_of(result, operands[0], operands[1]);
    if (opcode == "min") state.order.lesser_of(result, operands[0], operands[1]);
  }

  // True if comparisons of this type are in the order that ranks are read in.
  [[nodiscard]] bool orders(std::string_view type) const {
    return type.size() > 1 && type[1] == reading_.letter && ptx::type_bytes(type) == reading_.bytes;
  }

  // ---- atomics: changed or not ----

  void atomic(uint32_t i, bool last, State state) {
    const Statement& s = at(i);
    const bool simple = s.operands.size() >= 3 && s.operands[0].size() == 1;
    const std::string kind = minimum_or_maximum(s);
    if (!simple || (kind.empty() && !m_.has_modifier(s, ".cas"))) {
      execute(s, state);
      go_on(i, last, std::move(state));
      return;
    }
    const std::string where = cell(s, state);
    const Value old = content(where, state);
    const Value operand = value_of(s.operands[2], state);
    if (kind.empty()) {
      compare_and_swap(i, last, std::move(state), where, old, operand);
    } else {
      extreme(i, last, std::move(state), kind, old, operand);
    }
  }

  void compare_and_swap(uint32_t i, bool last, State state, const std::string& where, Value old,
                        Value expected) {
    const Statement& s = at(i);
    State swapped = state;
    set(s, old, state);
    state.order.differ(old, expected);
    go_on(i, last, std::move(state));
    const Value put = value_of(s.operands[3], swapped);
    set(s, old, swapped);
    swapped.order.equal(old, expected);
    swapped.memory.clear();
    swapped.memory[where] = put;
    go_on(i, last, std::move(swapped));
  }

  // If the cell changed and that counts as progress, the path is settled.
  void extreme(uint32_t i, bool last, State state, const std::string& kind, Value old, Value operand) {
    const Statement& s = at(i);
    if (!one_direction_) {
      State changed = state;
      set(s, old, changed);
      changed.memory.clear();
      go_on(i, last, std::move(changed));
    }
    set(s, old, state);
    if (orders(kind.substr(3)))
      kind.starts_with("min") ? state.order.at_most(old, operand) : state.order.at_most(operand, old);
    go_on(i, last, std::move(state));
  }

  // ---- conditions ----

  void assume(Value predicate, bool holds, State& state) {
    const Condition* c = values_.condition_of(predicate);
    if (c == nullptr) return;
    const bool is = holds != c->negated;
    if (c->kind == Condition::Compare) {
      assume(*c, is, state.order);
    } else if ((c->kind == Condition::And && is) || (c->kind == Condition::Or && !is) || c->a == c->b) {
      assume(c->a, is, state);
      assume(c->b, is, state);
    }
  }

  void assume(const Condition& c, bool holds, ValueOrder& order) const {
    if (c.type.starts_with(".f") || c.type.starts_with(".bf")) return;
    std::string r = c.relation;
    static const std::map<std::string, std::string> kOpposite = {
        {"eq", "ne"}, {"ne", "eq"}, {"lt", "ge"}, {"ge", "lt"}, {"le", "gt"},
        {"gt", "le"}, {"lo", "hs"}, {"hs", "lo"}, {"ls", "hi"}, {"hi", "ls"}};
    const auto opposite = kOpposite.find(r);
    if (opposite == kOpposite.end()) return;
    if (!holds) r = opposite->second;
    if (r == "eq") order.equal(c.a, c.b);
    if (r == "ne") order.differ(c.a, c.b);
    if (!orders(c.type)) return;
    if (r == "lt" || r == "lo") order.less(c.a, c.b);
    if (r == "gt" || r == "hi") order.less(c.b, c.a);
    if (r == "le" || r == "ls") order.at_most(c.a, c.b);
    if (r == "ge" || r == "hs") order.at_most(c.b, c.a);
  }

  // ---- the rank ----

  // Starts with all registers that are carried around the loop. Registers that may not fall are taken out
  // until all that are left fall on every open path.
  bool rank_exists() {
    std::set<std::string_view> carried;
    for (const State& path : open_) {
      for (const auto& [reg, value] : path.start) carried.insert(reg);
    }
    std::erase_if(carried, [&](std::string_view reg) { return !written_in_loop(reg); });
    for (bool stable = false; !stable && !carried.empty();) {
      stable = true;
      for (const State& path : open_) {
        const auto still = falling(path, carried);
        stable = stable && still.size() == carried.size();
        carried = still;
      }
    }
    return !carried.empty();
  }

  [[nodiscard]] bool written_in_loop(std::string_view reg) const {
    const auto& writers = data_.definitions(reg);
    return std::any_of(writers.begin(), writers.end(),
                       [&](uint32_t w) { return loop_.contains(flow_.instructions()[w].block); });
  }

  // The registers whose new value is below the greatest old value of all of them (or above the least).
  std::set<std::string_view> falling(const State& path, const std::set<std::string_view>& registers) {
    ValueOrder order = path.order;
    const Value rank = values_.named("the rank");
    for (std::string_view r : registers) {
      const Value old = values_.named(fmt::format("{} at the head", r));
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

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const LoopParts& loops_;
  const Loop& loop_;
  const Reading reading_;
  Values values_;
  bool one_direction_ = false, failed_ = false;
  size_t paths_ = 0, steps_ = 0;
  std::vector<State> open_;  // paths around the loop that need a rank
};

bool loop_observes(const Module& m, const ControlFlow& flow, const Loop& loop) {
  return std::any_of(loop.blocks.begin(), loop.blocks.end(), [&](uint32_t b) {
    for (uint32_t i = flow.blocks()[b].first; i < flow.blocks()[b].last; ++i) {
      if (observes(m, *flow.instructions()[i].statement)) return true;
    }
    return false;
  });
}

}  // namespace

bool Progress::ends_by_itself(uint32_t loop) {
  if (shown_[loop]) return *shown_[loop];
  bool shown = false, failed = false;
  for (const char letter : {'s', 'u'}) {
    for (const uint32_t bytes : {4U, 8U}) {
      for (const bool falls : {true, false}) {
        if (shown || failed) continue;
        Proof proof(module_, flow_, data_, loops_, loop, {letter, bytes, falls});
        shown = proof.run();
        failed = proof.failed();
      }
    }
  }
  for (uint32_t inner = 0; shown && inner < loops_.all().size(); ++inner) {
    const bool inside = loops_.all()[inner].parent == loop;
    if (inside && loop_observes(module_, flow_, loops_.all()[inner])) shown = ends_by_itself(inner);
  }
  shown_[loop] = shown;
  return shown;
}

std::string print_progress(const Module& module, const ControlFlow& flow, const DataFlow& data) {
  const LoopParts loops(flow);
  if (!loops.loops().known()) return print_loops(flow, loops.loops());
  Progress progress(module, flow, data, loops);
  std::string out;
  for (uint32_t l = 0; l < loops.all().size(); ++l) {
    const Loop& loop = loops.all()[l];
    if (!loop_observes(module, flow, loop)) continue;
    const Statement& first = *flow.instructions()[flow.blocks()[loop.entries[0]].first].statement;
    out += fmt::format("the loop at line {}: {}\n", module.line(first.head),
                       progress.ends_by_itself(l) ? "ends by itself" : "unknown");
  }
  return out;
}

}  // namespace klap::analysis
