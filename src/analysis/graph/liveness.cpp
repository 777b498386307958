#include "analysis/graph/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ptx/lines.h"

namespace klap::analysis {

namespace {

// A function in which this many (register, block) pairs are live is given up: no assembler would hold them.
constexpr size_t kMostPairs = size_t{1} << 24;
constexpr uint32_t kNothing = ~0u;

// The live registers at a point that moves backwards through a block, with their weight.
class LiveSet {
 public:
  explicit LiveSet(const VirtualRegisters& registers)
      : registers_(registers), live_(registers.all().size()) {}

  void insert(uint32_t reg) {
    if (live_[reg]) return;
    live_[reg] = true;
    members_.push_back(reg);
    count(reg, 1);
  }
  void erase(uint32_t reg) {
    if (!live_[reg]) return;
    live_[reg] = false;
    count(reg, static_cast<uint32_t>(-1));
  }
  // Empties the set; costs what was inserted.
  void clear() {
    for (uint32_t reg : members_) live_[reg] = false;
    members_.clear();
    weight_ = {};
  }
  // From the state after an instruction to the state before it.
  void step_over(std::span<const Access> accesses) {
    for (const Access& access : accesses) {
      if (access.kills) erase(access.reg);
    }
    for (const Access& access : accesses) {
      if (access.read) insert(access.reg);
    }
  }
  // The pressure of the live registers together with the registers that the instruction writes.
  [[nodiscard]] Pressure with_results(std::span<const Access> accesses) const {
    Pressure sum = weight_;
    for (const Access& access : accesses) {
      if (!access.written || live_[access.reg]) continue;
      sum.words += registers_[access.reg].words();
      sum.predicates += registers_[access.reg].is_predicate() ? 1 : 0;
    }
    return sum;
  }
  [[nodiscard]] Pressure weight() const { return weight_; }
  [[nodiscard]] std::vector<uint32_t> sorted() const {
    std::vector<uint32_t> out;
    for (uint32_t reg = 0; reg < live_.size(); ++reg) {
      if (live_[reg]) out.push_back(reg);
    }
    return out;
  }

 private:
  void count(uint32_t reg, uint32_t sign) {
    weight_.words += sign * registers_[reg].words();
    weight_.predicates += registers_[reg].is_predicate() ? sign : 0;
  }
  const VirtualRegisters& registers_;
  std::vector<bool> live_;
  std::vector<uint32_t> members_;  // all that were inserted
  Pressure weight_;
};

Pressure larger(const Pressure& a, const Pressure& b) {
  return {std::max(a.words, b.words), std::max(a.predicates, b.predicates)};
}

}  // namespace

Liveness::Liveness(const ControlFlow& flow, const VirtualRegisters& registers)
    : flow_(flow), registers_(registers) {
  summarise_blocks();
  known_ = !flow.has_unknown_branch() && spread();
  if (!known_) assume_all_live();
  measure();
  exposed_ = killing_ = {};
}

// Turns "of each: members" around.
Liveness::Sparse Liveness::inverted(const Sparse& sparse, uint32_t count) {
  Sparse out;
  out.start.assign(count + 1, 0);
  for (uint32_t member : sparse.members) ++out.start[member + 1];
  std::partial_sum(out.start.begin(), out.start.end(), out.start.begin());
  out.members.resize(sparse.members.size());
  std::vector<uint32_t> next(out.start);
  for (uint32_t at = 0; at + 1 < sparse.start.size(); ++at) {
    for (uint32_t member : sparse.of(at)) out.members[next[member]++] = at;
  }
  return out;
}

// Which registers each block reads before it overwrites them, and which it overwrites.
void Liveness::summarise_blocks() {
  const auto count = static_cast<uint32_t>(registers_.all().size());
  Sparse exposed{{0}, {}}, killing{{0}, {}};
  std::vector<uint32_t> read_in(count, kNothing), killed_in(count, kNothing);
  for (uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const BasicBlock& block = flow_.blocks()[b];
    const auto expose = [&](uint32_t reg) {
      if (killed_in[reg] == b || read_in[reg] == b || !block.reachable) return;
      read_in[reg] = b;
      exposed.members.push_back(reg);
    };
    for (uint32_t i = block.first; i < block.last; ++i) {
      for (const Access& access : registers_.accesses(i)) {
        if (access.read) expose(access.reg);
      }
      for (const Access& access : registers_.accesses(i)) {
        if (access.kills && std::exchange(killed_in[access.reg], b) != b)
          killing.members.push_back(access.reg);
      }
    }
    if (block.falls_off) {
      for (uint32_t result : registers_.results()) expose(result);
    }
    exposed.start.push_back(static_cast<uint32_t>(exposed.members.size()));
    killing.start.push_back(static_cast<uint32_t>(killing.members.size()));
  }
  exposed_ = inverted(exposed, count);
  killing_ = inverted(killing, count);
}

bool Liveness::spread() {
  const auto blocks = static_cast<uint32_t>(flow_.blocks().size());
  exposed_mark_.assign(blocks, kNothing);
  killing_mark_.assign(blocks, kNothing);
  blocks_of_.start.assign(1, 0);
  for (uint32_t reg = 0; reg < registers_.all().size(); ++reg) {
    if (!spread(reg)) return false;
    blocks_of_.start.push_back(static_cast<uint32_t>(blocks_of_.members.size()));
  }
  live_in_ = inverted(blocks_of_, blocks);
  return true;
}

// From the blocks that read the register backwards, up to the blocks that overwrite it.
bool Liveness::spread(uint32_t reg) {
  for (uint32_t b : killing_.of(reg)) killing_mark_[b] = reg;
  const auto enter = [&](uint32_t b) {
    if (std::exchange(exposed_mark_[b], reg) == reg) return;
    blocks_of_.members.push_back(b);
    work_.push_back(b);
  };
  for (uint32_t b : exposed_.of(reg)) enter(b);
  while (!work_.empty()) {
    const uint32_t b = work_.back();
    work_.pop_back();
    for (uint32_t from : flow_.blocks()[b].predecessors) {
      ++steps_;
      if (killing_mark_[from] != reg && flow_.blocks()[from].reachable) enter(from);
    }
  }
  return blocks_of_.members.size() <= kMostPairs;
}

void Liveness::assume_all_live() {
  everything_.resize(registers_.all().size());
  std::iota(everything_.begin(), everything_.end(), 0);
  every_block_.resize(flow_.blocks().size());
  std::iota(every_block_.begin(), every_block_.end(), 0);
  blocks_of_ = live_in_ = {};
}

std::span<const uint32_t> Liveness::live_in(uint32_t block) const {
  if (!known_) return everything_;
  return live_in_.of(block);
}

std::span<const uint32_t> Liveness::blocks_live_in(uint32_t reg) const {
  if (!known_) return every_block_;
  return blocks_of_.of(reg);
}

void Liveness::live_out(uint32_t block, std::vector<uint32_t>& set) const {
  set.clear();
  const BasicBlock& b = flow_.blocks()[block];
  if (!b.reachable) return;
  for (uint32_t to : b.successors) set.insert(set.end(), live_in_.of(to).begin(), live_in_.of(to).end());
  if (b.falls_off) set.insert(set.end(), registers_.results().begin(), registers_.results().end());
}

std::vector<uint32_t> Liveness::live_before(uint32_t instruction) const {
  if (!known_) return everything_;
  const uint32_t block = flow_.instructions()[instruction].block;
  if (!flow_.blocks()[block].reachable) return {};
  LiveSet live(registers_);
  std::vector<uint32_t> out;
  live_out(block, out);
  for (uint32_t reg : out) live.insert(reg);
  for (uint32_t i = flow_.blocks()[block].last; i > instruction; --i)
    live.step_over(registers_.accesses(i - 1));
  return live.sorted();
}

bool Liveness::is_live_before(uint32_t reg, uint32_t instruction) const {
  if (!known_) return true;
  const BasicBlock& block = flow_.blocks()[flow_.instructions()[instruction].block];
  if (!block.reachable) return false;
  for (uint32_t i = instruction; i < block.last; ++i) {
    bool kills = false;
    for (const Access& access : registers_.accesses(i)) {
      if (access.reg == reg && access.read) return true;
      kills = kills || (access.reg == reg && access.kills);
    }
    if (kills) return false;
  }
  std::vector<uint32_t> out;
  live_out(flow_.instructions()[instruction].block, out);
  return std::find(out.begin(), out.end(), reg) != out.end();
}

// The pressure at every instruction of reachable blocks.
void Liveness::measure_blocks() {
  LiveSet live(registers_);
  std::vector<uint32_t> out;
  for (uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    const BasicBlock& block = flow_.blocks()[b];
    if (!block.reachable) continue;
    live.clear();
    live_out(b, out);
    steps_ += out.size();
    for (uint32_t reg : out) live.insert(reg);
    for (uint32_t i = block.last; i-- > block.first;) {
      pressure_[i] = live.with_results(registers_.accesses(i));
      live.step_over(registers_.accesses(i));
      pressure_[i] = larger(pressure_[i], live.weight());
    }
  }
}

void Liveness::measure() {
  pressure_.resize(flow_.instructions().size());
  if (known_) {
    measure_blocks();
  } else {
    LiveSet all(registers_);
    for (uint32_t reg : everything_) all.insert(reg);
    std::fill(pressure_.begin(), pressure_.end(), all.weight());
  }
  for (uint32_t i = 0; i < pressure_.size(); ++i) {
    if (pressure_[i].words > maximum_.pressure.words) maximum_.words_at = i;
    if (pressure_[i].predicates > maximum_.pressure.predicates) maximum_.predicates_at = i;
    maximum_.pressure = larger(maximum_.pressure, pressure_[i]);
  }
}

std::string print_liveness(const ControlFlow& flow, const VirtualRegisters& registers,
                           const Liveness& liveness) {
  const ptx::LineNumbers lines(flow.module());
  std::string out;
  if (!liveness.known()) out += "unknown: every register is taken to be live everywhere\n";
  const auto& maximum = liveness.maximum();
  out += fmt::format("maximum: {} registers of 32 bits", maximum.pressure.words);
  const auto place = [&](uint32_t i) { return lines.of(flow.instructions()[i].statement->head); };
  if (maximum.words_at != ControlFlow::npos) out += fmt::format(" (line {})", place(maximum.words_at));
  out += fmt::format(", {} predicates", maximum.pressure.predicates);
  if (maximum.predicates_at != ControlFlow::npos)
    out += fmt::format(" (line {})", place(maximum.predicates_at));
  out += '\n';
  for (uint32_t b = 0; b < flow.blocks().size() && liveness.known(); ++b) {
    const BasicBlock& block = flow.blocks()[b];
    Pressure most;
    for (uint32_t i = block.first; i < block.last; ++i) most = larger(most, liveness.pressure(i));
    out += fmt::format("b{} line {}: up to {} registers, {} predicates; live in:", b, place(block.first),
                       most.words, most.predicates);
    std::vector<uint32_t> live(liveness.live_in(b).begin(), liveness.live_in(b).end());
    std::sort(live.begin(), live.end());
    for (uint32_t reg : live) out += fmt::format(" {}", registers[reg].name);
    out += '\n';
  }
  return out;
}

}  // namespace klap::analysis
