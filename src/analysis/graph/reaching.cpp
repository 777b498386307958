#include "analysis/graph/reaching.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "ptx/lines.h"

namespace klap::analysis {

// Builds the values register by register, each only where the register is live, as no other place is asked
// for.
class ReachingBuilder {
 public:
  ReachingBuilder(ReachingDefinitions& out, const Liveness& liveness)
      : out_(out), flow_(out.flow_), registers_(out.registers_), liveness_(liveness) {}

  void run() {
    out_.read_.assign(registers_.access_count(), kNone);
    out_.written_.assign(registers_.access_count(), kNone);
    order_blocks();
    collect_accesses();
    block_in_.assign(flow_.blocks().size(), kNone);
    block_out_.assign(flow_.blocks().size(), kNone);
    for (uint32_t reg = 0; reg < registers_.all().size(); ++reg) build(reg);
  }

 private:
  static constexpr uint32_t kNone = ReachingDefinitions::kNone;
  struct Place {
    uint32_t instruction, access;
  };

  // Depth-first order in which a block with one predecessor comes after it.
  void order_blocks() {
    const auto& blocks = flow_.blocks();
    position_.assign(blocks.size(), kNone);
    if (blocks.empty()) return;
    std::vector<std::pair<uint32_t, size_t>> stack{{0, 0}};
    std::vector<bool> seen(blocks.size());
    seen[0] = true;
    auto next = static_cast<uint32_t>(blocks.size());
    while (!stack.empty()) {
      auto& [b, successor] = stack.back();
      if (successor == blocks[b].successors.size()) {
        position_[b] = --next;
        stack.pop_back();
        continue;
      }
      const uint32_t to = blocks[b].successors[successor++];
      if (!seen[to]) stack.emplace_back(to, 0);
      seen[to] = true;
    }
  }

  // The accesses of each register in text order, hence by block.
  void collect_accesses() {
    const auto count = static_cast<uint32_t>(registers_.all().size());
    start_.assign(count + 1, 0);
    const auto for_all = [&](auto&& visit) {
      for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
        uint32_t at = registers_.first_access(i);
        for (const Access& access : registers_.accesses(i)) visit(i, access, at++);
      }
    };
    for_all([&](uint32_t, const Access& access, uint32_t) { ++start_[access.reg + 1]; });
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    places_.resize(start_.back());
    std::vector<uint32_t> next(start_);
    for_all([&](uint32_t i, const Access& access, uint32_t at) { places_[next[access.reg]++] = {i, at}; });
  }

  [[nodiscard]] std::span<const Place> places(uint32_t reg) const {
    return {places_.data() + start_[reg], places_.data() + start_[reg + 1]};
  }

  // ---- one register; the values are local until finish() hands on what is left of them ----

  void build(uint32_t reg) {
    values_.clear();
    same_as_.clear();
    merges_.clear();
    make_definitions(reg);
    const auto blocks = liveness_.blocks_live_in(reg);
    // Most registers are written once, always before they are read: every read then finds that value.
    const bool simple = values_.size() == 1 && std::find(blocks.begin(), blocks.end(), 0u) == blocks.end();
    if (simple) {
      for (uint32_t b : blocks) block_in_[b] = 0;
    } else {
      make_merges({blocks.begin(), blocks.end()});
    }
    walk(reg);
    simplify();
    finish(reg);
    for (uint32_t b : blocks) block_in_[b] = kNone;
    for (const Place& p : places(reg)) block_out_[block_of(p)] = kNone;
  }

  uint32_t make(uint32_t instruction, bool entry) {
    values_.push_back({instruction, entry});
    same_as_.push_back(static_cast<uint32_t>(same_as_.size()));
    return same_as_.back();
  }

  void make_definitions(uint32_t reg) {
    for (const Place& p : places(reg)) {
      if (!access(p).written || !flow_.blocks()[block_of(p)].reachable) continue;
      block_out_[block_of(p)] = out_.written_[p.access] = make(p.instruction, false);
    }
  }

  void make_merges(std::vector<uint32_t> live) {
    std::sort(live.begin(), live.end(), [&](uint32_t a, uint32_t b) { return position_[a] < position_[b]; });
    for (uint32_t b : live) {
      const uint32_t from = only_predecessor(b);
      if (b == 0 || from == kNone) {
        block_in_[b] = make(kNone, b == 0);
        merges_.push_back(b);
      } else {
        block_in_[b] = out_of(from);
      }
    }
    for (uint32_t b : merges_) {
      for (uint32_t from : flow_.blocks()[b].predecessors) {
        if (flow_.blocks()[from].reachable) values_[block_in_[b]].from.push_back(out_of(from));
      }
    }
  }

  // kNone if several predecessors can be reached.
  [[nodiscard]] uint32_t only_predecessor(uint32_t block) const {
    uint32_t only = kNone;
    for (uint32_t from : flow_.blocks()[block].predecessors) {
      if (!flow_.blocks()[from].reachable) continue;
      if (only != kNone) return kNone;
      only = from;
    }
    return only;
  }

  // The value at a block's end: of its last definition there, else what came in.
  [[nodiscard]] uint32_t out_of(uint32_t block) const {
    return block_out_[block] != kNone ? block_out_[block] : block_in_[block];
  }
  [[nodiscard]] uint32_t block_of(const Place& p) const { return flow_.instructions()[p.instruction].block; }
  [[nodiscard]] const Access& access(const Place& p) const {
    return registers_.accesses(p.instruction)[p.access - registers_.first_access(p.instruction)];
  }

  // Connects the reads, and the definitions that leave something of the value before them.
  void walk(uint32_t reg) {
    uint32_t block = kNone, value = kNone;
    for (const Place& p : places(reg)) {
      if (!flow_.blocks()[block_of(p)].reachable) continue;
      if (std::exchange(block, block_of(p)) != block_of(p)) value = block_in_[block_of(p)];
      if (access(p).read) out_.read_[p.access] = value;
      if (!access(p).written) continue;
      const uint32_t made = out_.written_[p.access];
      // If nothing came in, no instruction reads the value that goes on.
      if (!access(p).kills && value != kNone) values_[made].from.push_back(value);
      value = made;
    }
  }

  // The value that stands for a merge that was removed.
  uint32_t find(uint32_t value) {
    while (same_as_[value] != value) value = same_as_[value] = same_as_[same_as_[value]];
    return value;
  }

  // Removes merges that join one value with nothing but themselves. Removing one can make those that use it
  // such merges too, so they are looked at next.
  void simplify() {
    if (merges_.empty()) return;
    std::vector<std::vector<uint32_t>> users(values_.size());
    std::vector<uint32_t> work;
    for (auto b = merges_.rbegin(); b != merges_.rend(); ++b) {
      work.push_back(block_in_[*b]);
      for (uint32_t from : values_[work.back()].from) users[from].push_back(work.back());
    }
    while (!work.empty()) {
      const uint32_t merge = work.back();
      work.pop_back();
      if (same_as_[merge] != merge) continue;
      const uint32_t single = only_input(merge);
      if (single == kNone) continue;
      same_as_[merge] = single;
      work.insert(work.end(), users[merge].begin(), users[merge].end());
      if (users[merge].size() > users[single].size()) users[merge].swap(users[single]);
      users[single].insert(users[single].end(), users[merge].begin(), users[merge].end());
      users[merge] = {};
    }
  }

  // The one value that a merge joins, or kNone if there are several (the entry counts as one).
  uint32_t only_input(uint32_t merge) {
    if (values_[merge].entry) return kNone;
    uint32_t single = kNone;
    for (uint32_t from : values_[merge].from) {
      from = find(from);
      if (from == merge || from == single) continue;
      if (single != kNone) return kNone;
      single = from;
    }
    return single;
  }

  void finish(uint32_t reg) {
    std::vector<uint32_t> number(values_.size());
    auto next = static_cast<uint32_t>(out_.values_.size());
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (same_as_[v] == v) number[v] = next++;
    }
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (same_as_[v] != v) continue;
      auto& from = values_[v].from;
      for (uint32_t& f : from) f = number[find(f)];
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      out_.values_.push_back(std::move(values_[v]));
    }
    for (const Place& p : places(reg)) {
      for (uint32_t* value : {&out_.read_[p.access], &out_.written_[p.access]}) {
        if (*value != kNone) *value = number[find(*value)];
      }
    }
  }

  ReachingDefinitions& out_;
  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  const Liveness& liveness_;
  std::vector<uint32_t> position_;  // block -> place in the order
  std::vector<uint32_t> start_;     // register -> its places
  std::vector<Place> places_;
  std::vector<uint32_t> block_in_, block_out_;  // of the register at hand, as are all below
  std::vector<ReachingDefinitions::Value> values_;
  std::vector<uint32_t> same_as_;
  std::vector<uint32_t> merges_;  // blocks
};

namespace {

// `start` and everything that is reached from it.
template <typename Neighbours>
std::vector<uint32_t> closure(uint32_t start, const Neighbours& neighbours) {
  std::vector<uint32_t> out{start};
  std::unordered_set<uint32_t> seen{start};
  for (size_t next = 0; next < out.size(); ++next) {
    for (uint32_t to : neighbours(out[next])) {
      if (seen.insert(to).second) out.push_back(to);
    }
  }
  return out;
}

}  // namespace

ReachingDefinitions::ReachingDefinitions(const ControlFlow& flow, const VirtualRegisters& registers,
                                         const Liveness& liveness)
    : flow_(flow), registers_(registers), known_(liveness.known()) {
  if (known_) {
    ReachingBuilder(*this, liveness).run();
    invert();
  } else {
    list_all();
  }
}

// Lists by value the reads that find it, and the values that it goes on in.
void ReachingDefinitions::invert() {
  const auto turn = [&](std::vector<uint32_t>& start, std::vector<uint32_t>& members, auto&& for_all) {
    start.assign(values_.size() + 1, 0);
    for_all([&](uint32_t value, uint32_t) { ++start[value + 1]; });
    std::partial_sum(start.begin(), start.end(), start.begin());
    members.resize(start.back());
    std::vector<uint32_t> next(start);
    for_all([&](uint32_t value, uint32_t member) { members[next[value]++] = member; });
  };
  turn(onward_start_, onward_, [&](auto&& visit) {
    for (uint32_t v = 0; v < values_.size(); ++v) {
      for (uint32_t from : values_[v].from) visit(from, v);
    }
  });
  turn(reader_start_, reader_, [&](auto&& visit) {
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      const uint32_t first = registers_.first_access(i);
      for (uint32_t at = first; at < first + registers_.accesses(i).size(); ++at) {
        if (read_[at] != kNone) visit(read_[at], i);
      }
    }
  });
}

void ReachingDefinitions::list_all() {
  all_definitions_.resize(registers_.all().size());
  all_uses_.resize(registers_.all().size());
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    for (const Access& access : registers_.accesses(i)) {
      if (access.written) all_definitions_[access.reg].push_back(i);
      if (access.read) all_uses_[access.reg].push_back(i);
    }
  }
}

uint32_t ReachingDefinitions::access_of(uint32_t instruction, uint32_t reg) const {
  const auto accesses = registers_.accesses(instruction);
  for (uint32_t at = 0; at < accesses.size(); ++at) {
    if (accesses[at].reg == reg) return at;
  }
  return kNone;
}

ReachingDefinitions::Origins ReachingDefinitions::origins(uint32_t instruction, uint32_t reg) const {
  const uint32_t at = access_of(instruction, reg);
  if (at == kNone || !registers_.accesses(instruction)[at].read) return {};
  if (!known_) return {all_definitions_[reg], true};
  const uint32_t start = read_[registers_.first_access(instruction) + at];
  if (start == kNone) return {{}, true};
  Origins out;
  const auto from = [&](uint32_t v) { return std::span<const uint32_t>(values_[v].from); };
  for (uint32_t v : closure(start, from)) {
    out.entry = out.entry || values_[v].entry;
    if (values_[v].instruction != kNone) out.definitions.push_back(values_[v].instruction);
  }
  std::sort(out.definitions.begin(), out.definitions.end());
  return out;
}

std::optional<uint32_t> ReachingDefinitions::only_definition(uint32_t instruction, uint32_t reg) const {
  const Origins found = origins(instruction, reg);
  if (found.entry || found.definitions.size() != 1) return std::nullopt;
  const uint32_t definition = found.definitions[0];
  if (!registers_.accesses(definition)[access_of(definition, reg)].kills) return std::nullopt;
  return definition;
}

std::vector<uint32_t> ReachingDefinitions::uses(uint32_t instruction, uint32_t reg) const {
  const uint32_t at = access_of(instruction, reg);
  if (at == kNone || !registers_.accesses(instruction)[at].written) return {};
  if (!known_) return all_uses_[reg];
  const uint32_t start = written_[registers_.first_access(instruction) + at];
  if (start == kNone) return {};  // never runs
  std::vector<uint32_t> out;
  const auto onward = [&](uint32_t v) {
    return std::span(onward_).subspan(onward_start_[v], onward_start_[v + 1] - onward_start_[v]);
  };
  for (uint32_t v : closure(start, onward))
    out.insert(out.end(), reader_.begin() + reader_start_[v], reader_.begin() + reader_start_[v + 1]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string print_reaching(const ControlFlow& flow, const VirtualRegisters& registers,
                           const ReachingDefinitions& reaching) {
  const ptx::LineNumbers lines(flow.module());
  const auto line = [&](uint32_t i) { return lines.of(flow.instructions()[i].statement->head); };
  std::string out;
  if (!reaching.known()) out += "unknown: every definition of a register is taken to reach every read\n";
  for (uint32_t i : registers.unknown_instructions())
    out += fmt::format("line {}: unknown opcode, taken to write any register it names\n", line(i));
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    for (const Access& access : registers.accesses(i)) {
      if (!access.read) continue;
      const auto origins = reaching.origins(i, access.reg);
      out += fmt::format("line {}: {} from", line(i), registers[access.reg].name);
      for (uint32_t definition : origins.definitions) out += fmt::format(" line {}", line(definition));
      if (origins.entry) out += registers[access.reg].is_parameter ? " parameter" : " nothing";
      out += '\n';
    }
  }
  return out;
}

}  // namespace klap::analysis
