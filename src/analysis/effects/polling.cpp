#include "analysis/effects/polling.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/launches/calls.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

std::string_view memory_space(const Module& m, const Statement& s) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    for (const std::string_view space : {".global", ".shared", ".local", ".const", ".param"}) {
      const std::string_view text = m.text(t);
      if (text == space || text.starts_with(std::string(space) + "::")) return space;
    }
  }
  return {};
}

namespace {

bool is_in(std::string_view opcode, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, opcode) != list.end();
}

// The root that an address is computed from: a parameter of the kernel, a variable, or something unknown.
class Roots {
 public:
  Roots(const Module& module, const ControlFlow& flow, const DataFlow& data)
      : m_(module), flow_(flow), data_(data) {}

  // Returns the root of an address; an empty text means unknown.
  std::string of(std::string_view base) {
    if (!data_.names().is_register(base)) return std::string(base);
    const auto [known, is_new] = roots_.try_emplace(base);
    if (!is_new) return known->second;
    std::set<std::string> found;
    for (const uint32_t writer : data_.definitions(base)) written(writer, base, found);
    const std::string root = found.size() == 1 && !data_.is_ambiguous(base) ? *found.begin() : "";
    return roots_[base] = root;
  }

 private:
  // Adds the roots that one definition gives the register. A number is no root.
  void written(uint32_t i, std::string_view base, std::set<std::string>& found) {
    const Statement& s = *flow_.instructions()[i].statement;
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "ld" && memory_space(m_, s) == ".param") {
      found.insert(m_.compact(s.operands.back()));
    } else if (is_in(opcode, {"mov", "cvta", "add", "sub", "mad"})) {
      for (size_t n = 1; n < s.operands.size(); ++n) {
        const std::string_view operand = m_.text(s.operands[n].first);
        const bool number =
            operand[0] == '-' || (operand[0] >= '0' && operand[0] <= '9') || operand[0] == '%';
        if (operand == base || (number && !data_.names().is_register(operand)) || is_number(operand))
          continue;
        found.insert(of(operand));
      }
    } else {
      found.insert("");
    }
  }

  // True if all instructions that write the operand compute with numbers: an index, a distance.
  [[nodiscard]] bool is_number(std::string_view operand) const {
    const auto& writers = data_.definitions(operand);
    return !writers.empty() && std::ranges::all_of(writers, [&](uint32_t w) {
      const Statement& s = *flow_.instructions()[w].statement;
      return is_in(m_.text(s.head), {"mul", "shl", "shr", "cvt", "and", "or", "bfe", "bfi", "mad24", "rem",
                                     "div", "selp", "neg"});
    });
  }

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  std::map<std::string_view, std::string> roots_;
};

// One loop's instructions, and the dependences between them.
class PollingLoop {
 public:
  PollingLoop(const Module& module, const ControlFlow& flow, const DataFlow& data, const Dominance& dominance,
              const Loop& loop)
      : m_(module), flow_(flow), data_(data), dominance_(dominance), loop_(loop), roots_(module, flow, data) {
    for (uint32_t b : loop.blocks) {
      for (uint32_t i = flow.blocks()[b].first; i < flow.blocks()[b].last; ++i) all_.push_back(i);
    }
    std::ranges::sort(all_);
  }

  std::vector<uint32_t> watched() {
    exits_ = deciding_exits();
    if (exits_.empty()) return {};
    // For nearly all loops the registers alone show that nothing is waited for.
    connect_registers();
    find_changing();
    if (has_way_on([&](uint32_t exit) { return !branches_before(exit).empty(); })) return {};
    connect_memory();
    find_changing();
    const std::set<uint32_t> waits = reached(candidates(), after_);
    const auto is_blocked = [&](uint32_t exit) {
      return std::ranges::any_of(branches_before(exit), [&](uint32_t branch) {
        return waits.contains(branch) && !changing_.contains(branch);
      });
    };
    return has_way_on(is_blocked) ? std::vector<uint32_t>{} : decisive();
  }

 private:
  using Edges = std::map<uint32_t, std::vector<uint32_t>>;
  struct RegisterEdge {
    uint32_t from, to;
    std::string_view name;
  };

  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }
  [[nodiscard]] std::string_view opcode(uint32_t i) const { return m_.text(at(i).head); }
  [[nodiscard]] bool inside(uint32_t i) const { return loop_.contains(flow_.instructions()[i].block); }

  // ---- exits ----

  // The instructions by which threads leave the loop or stay. Empty also for a loop without one.
  [[nodiscard]] std::vector<uint32_t> deciding_exits() const {
    std::vector<uint32_t> out;
    for (uint32_t b : loop_.blocks) {
      const BasicBlock& block = flow_.blocks()[b];
      const bool leaves =
          block.exits_function || loop_.merged ||
          std::ranges::any_of(block.successors, [&](uint32_t to) { return !loop_.contains(to); });
      if (leaves && (at(block.last - 1).predicated || opcode(block.last - 1) == "brx"))
        out.push_back(block.last - 1);
    }
    return out;
  }

  // The other branches of the loop that decide whether an iteration comes to an exit.
  [[nodiscard]] std::vector<uint32_t> branches_before(uint32_t exit) const {
    std::vector<uint32_t> out, work = {flow_.instructions()[exit].block};
    std::set<uint32_t> seen;
    while (!work.empty()) {
      const uint32_t block = work.back();
      work.pop_back();
      for (uint32_t b : dominance_.controllers(block)) {
        const uint32_t branch = flow_.blocks()[b].last - 1;
        const bool other = loop_.contains(b) && std::ranges::find(exits_, branch) == exits_.end();
        if (!other || !seen.insert(b).second) continue;
        out.push_back(branch);
        work.push_back(b);
      }
    }
    return out;
  }

  void find_changing() { changing_ = reached(sources(), after_); }

  // True if an exit goes by a value that changes, and nothing that the loop waits for decides whether it is
  // reached.
  template <typename Blocked>
  [[nodiscard]] bool has_way_on(const Blocked& is_blocked) const {
    return std::ranges::any_of(exits_,
                               [&](uint32_t exit) { return changing_.contains(exit) && !is_blocked(exit); });
  }

  // The instructions whose result other threads may change, and which gives the same in every iteration while
  // they do not.
  [[nodiscard]] std::vector<uint32_t> candidates() const {
    std::vector<uint32_t> out;
    std::ranges::copy_if(all_, std::back_inserter(out),
                         [&](uint32_t i) { return !changing_.contains(i) && others_may_write(i); });
    return out;
  }

  // The candidates by which exits go, or branches before exits.
  [[nodiscard]] std::vector<uint32_t> decisive() const {
    std::vector<uint32_t> deciding = exits_;
    for (uint32_t exit : exits_) std::ranges::copy(branches_before(exit), std::back_inserter(deciding));
    const std::set<uint32_t> before = reached(deciding, before_);
    std::vector<uint32_t> out = candidates();
    std::erase_if(out, [&](uint32_t i) { return !before.contains(i); });
    return out;
  }

  // ---- dependences ----

  void edge(uint32_t from, uint32_t to) {
    after_[from].push_back(to);
    before_[to].push_back(from);
  }

  void connect_registers() {
    for (uint32_t i : all_) {
      for (const std::string_view r : registers_of(m_, at(i), data_.names()).written) {
        for (uint32_t use : data_.uses(r)) {
          if (!inside(use)) continue;
          edge(i, use);
          by_register_.push_back({i, use, r});
        }
      }
      if (opcode(i) == "call") call_edges(i);
    }
  }

  // Adds dependences through memory, and of values on the branches that choose them.
  void connect_memory() {
    for (uint32_t i : all_) {
      const auto written = registers_of(m_, at(i), data_.names()).written;
      const bool chosen =
          std::ranges::any_of(written, [&](std::string_view r) { return data_.definitions(r).size() > 1; });
      if (is_store(i)) memory_edges(i);
      if (is_store(i) || chosen) control_edges(i);
    }
  }

  // The branches of the loop that decide whether the instruction runs.
  void control_edges(uint32_t i) {
    for (uint32_t b : dominance_.controllers(flow_.instructions()[i].block)) {
      const uint32_t branch = flow_.blocks()[b].last - 1;
      if (loop_.contains(b) && branch != i) edge(branch, i);
    }
  }

  [[nodiscard]] bool is_store(uint32_t i) const {
    return is_in(opcode(i), {"st", "red", "atom"}) && memory_space(m_, at(i)) != ".param";
  }

  // A load may read a value that was stored before.
  void memory_edges(uint32_t store) {
    for (uint32_t i : all_) {
      if (opcode(i) != "ld" || !may_overlap(i, store)) continue;
      edge(store, i);
      through_memory_.emplace(store, i);
    }
  }

  bool may_overlap(uint32_t load, uint32_t store) {
    const std::string_view a = memory_space(m_, at(load)), b = memory_space(m_, at(store));
    if (a == ".param" || a == ".const" || (!a.empty() && !b.empty() && a != b)) return false;
    const auto read = parse_address(m_, at(load).operands.back());
    const size_t place = opcode(store) == "atom" ? 1 : 0;
    const auto written = parse_address(m_, at(store).operands[place]);
    if (!read || !written) return true;
    if (a == ".shared") return true;  // the whole block's, by any thread
    if (read->base == written->base && a == ".local") return read->offset == written->offset;
    const std::string from = roots_.of(read->base), to = roots_.of(written->base);
    return from.empty() || to.empty() || from == to;
  }

  // The results of a call depend on the values that are passed to it.
  void call_edges(uint32_t call) {
    const Statement* scope = flow_.instructions()[call].scope;
    for (uint32_t i : all_) {
      if (flow_.instructions()[i].scope != scope || memory_space(m_, at(i)) != ".param") continue;
      if (opcode(i) == "st" && i < call) edge(i, call);
      if (opcode(i) == "ld" && i > call) edge(call, i);
    }
  }

  // True if an iteration may use a value that the one before has left in the register.
  bool is_carried(std::string_view r) {
    const auto [known, is_new] = exposed_.try_emplace(r, false);
    if (!is_new) return known->second;
    std::set<uint32_t> seen;
    std::vector<uint32_t> work = loop_.entries;
    bool found = false;
    while (!work.empty() && !found) {
      const uint32_t b = work.back();
      work.pop_back();
      if (!seen.insert(b).second) continue;
      const std::optional<bool> first = first_access(b, r);
      found = first.value_or(false);
      if (first) continue;
      for (uint32_t to : flow_.blocks()[b].successors) {
        if (loop_.contains(to)) work.push_back(to);
      }
    }
    return exposed_[r] = found;
  }

  // True if the block reads the register before it writes it, false if it writes it for certain first.
  [[nodiscard]] std::optional<bool> first_access(uint32_t block, std::string_view r) const {
    for (uint32_t i = flow_.blocks()[block].first; i < flow_.blocks()[block].last; ++i) {
      const Registers registers = registers_of(m_, at(i), data_.names());
      if (std::ranges::find(registers.read, r) != registers.read.end()) return true;
      if (std::ranges::find(registers.written, r) == registers.written.end()) continue;
      if (at(i).predicated) return true;
      return false;
    }
    return std::nullopt;
  }

  // ---- what changes ----

  [[nodiscard]] std::vector<uint32_t> sources() {
    std::vector<uint32_t> out;
    for (uint32_t i : all_) {
      if (changes_by_itself(i)) out.push_back(i);
    }
    std::map<uint32_t, uint32_t> number;
    for (uint32_t i : all_) number.emplace(i, static_cast<uint32_t>(number.size()));
    std::vector<std::vector<uint32_t>> next(all_.size());
    for (const auto& [from, targets] : after_data()) {
      for (uint32_t to : targets) next[number.at(from)].push_back(number.at(to));
    }
    const Components components = strongly_connected(
        static_cast<uint32_t>(all_.size()), [&](uint32_t n) -> const auto& { return next[n]; });
    const auto together = [&](uint32_t a, uint32_t b) {
      return components.of[number.at(a)] == components.of[number.at(b)];
    };
    std::set<uint32_t> computing;  // components
    for (const RegisterEdge& e : by_register_) {
      if (together(e.from, e.to) && is_carried(e.name)) computing.insert(components.of[number.at(e.from)]);
    }
    for (const auto& [from, to] : through_memory_) {
      if (together(from, to)) computing.insert(components.of[number.at(from)]);
    }
    std::erase_if(computing, [&](uint32_t c) {
      return std::ranges::none_of(
          all_, [&](uint32_t i) { return components.of[number.at(i)] == c && computes(i, together); });
    });
    for (uint32_t i : all_) {
      if (computing.contains(components.of[number.at(i)])) out.push_back(i);
    }
    return out;
  }

  // The dependences without those by which a branch decides.
  [[nodiscard]] Edges after_data() const {
    Edges out = after_;
    std::erase_if(out, [&](const auto& entry) {
      return is_in(opcode(entry.first), {"bra", "brx", "ret", "exit"});
    });
    return out;
  }

  [[nodiscard]] bool changes_by_itself(uint32_t i) const {
    if (opcode(i) == "atom" || opcode(i) == "red") return true;
    if (opcode(i) == "call") return !is_reader(i);
    for (uint32_t t = at(i).tokens.first; t < at(i).tokens.last; ++t) {
      if (m_.text(t).starts_with('%') && !data_.names().is_register(m_.text(t)) &&
          register_effect(m_.text(t)) == EffectKind::ClockRegister)
        return true;
    }
    return false;
  }

  // True for an instruction that computes a new value from one that an earlier iteration has left. An
  // instruction that only keeps or collects values does not count.
  template <typename Together>
  [[nodiscard]] bool computes(uint32_t i, const Together& together) const {
    const std::string_view op = opcode(i);
    if (op == "ld" || op == "st") return walks(i, together) || iterates(i, together);
    return !is_in(op, {"mov", "selp", "or", "and", "min", "max", "setp", "cvt", "cvta", "bra"});
  }

  // An access whose address the cycle computes.
  template <typename Together>
  [[nodiscard]] bool walks(uint32_t i, const Together& together) const {
    const auto address = parse_address(m_, at(i).operands[opcode(i) == "ld" ? 1 : 0]);
    if (!address) return true;
    return std::ranges::any_of(data_.definitions(address->base),
                               [&](uint32_t w) { return inside(w) && together(w, i); });
  }

  // A cycle through memory that others see is one, too: the threads of the block work on it together.
  template <typename Together>
  [[nodiscard]] bool iterates(uint32_t i, const Together& together) const {
    return std::ranges::any_of(through_memory_, [&](const auto& pair) {
      return (pair.first == i || pair.second == i) && together(pair.first, pair.second) &&
             memory_space(m_, at(i)) != ".local";
    });
  }

  // ---- what others may write ----

  [[nodiscard]] const Function* callee(uint32_t call) const {
    const auto parsed = parse_call(m_, at(call), data_.names());
    const Function* f = parsed && parsed->direct ? m_.find_function(parsed->callee) : nullptr;
    return f != nullptr && f->is_definition ? f : nullptr;
  }

  // A function that changes nothing, so that it returns the same for the same arguments and memory.
  [[nodiscard]] bool is_reader(uint32_t call) const {
    const Function* f = callee(call);
    if (f == nullptr) return false;
    const CallGraph graph(m_, *f);
    for (const Effect& effect : graph.closure(*f).all()) {
      using enum EffectKind;
      if (effect.kind != PositionRegister && effect.kind != LaneRegister && effect.kind != LocalMemory &&
          effect.kind != StrongLoad && effect.kind != SharedAccess)
        return false;
    }
    return std::ranges::none_of(graph.functions(), [&](const Function* g) {
      return any_access(*g, "st", {".local", ".param"});
    });
  }

  // True if the function has such an instruction in a space other than the given ones.
  [[nodiscard]] bool any_access(const Function& f, std::string_view op,
                                std::initializer_list<std::string_view> but) const {
    bool found = false;
    ptx::for_each_statement(f.body, [&](const Statement& s) {
      found = found || (s.kind == ptx::StatementKind::Instruction && m_.is(s.head, op) &&
                        !is_in(memory_space(m_, s), but));
    });
    return found;
  }

  // True for a load from memory that the loop does not write itself, or for a call of a function that loads.
  [[nodiscard]] bool others_may_write(uint32_t i) const {
    if (opcode(i) == "call") {
      const Function* f = callee(i);
      if (f == nullptr) return false;
      const CallGraph graph(m_, *f);
      return std::ranges::any_of(graph.functions(), [&](const Function* g) {
        return any_access(*g, "ld", {".local", ".param", ".const"});
      });
    }
    if (opcode(i) != "ld" || is_in(memory_space(m_, at(i)), {".local", ".param", ".const"})) return false;
    return std::ranges::none_of(through_memory_, [&](const auto& pair) { return pair.second == i; });
  }

  static std::set<uint32_t> reached(const std::vector<uint32_t>& from, const Edges& edges) {
    std::set<uint32_t> seen(from.begin(), from.end());
    std::vector<uint32_t> work = from;
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      const auto next = edges.find(i);
      if (next == edges.end()) continue;
      for (uint32_t to : next->second) {
        if (seen.insert(to).second) work.push_back(to);
      }
    }
    return seen;
  }

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const Dominance& dominance_;
  const Loop& loop_;
  Roots roots_;
  std::vector<uint32_t> all_, exits_;
  std::set<uint32_t> changing_;
  Edges after_, before_;
  std::vector<RegisterEdge> by_register_;
  std::set<std::pair<uint32_t, uint32_t>> through_memory_;  // edges
  std::map<std::string_view, bool> exposed_;
};

}  // namespace

const std::vector<uint32_t>& Polling::watched(uint32_t loop) {
  const auto [known, is_new] = known_.try_emplace(loop);
  if (is_new) known->second = PollingLoop(module_, flow_, data_, dominance_, loops_.all()[loop]).watched();
  return known->second;
}

}  // namespace klap::analysis
