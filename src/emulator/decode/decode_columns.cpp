// Linear scan: each register's life is taken as one stretch of the text, from the first to the last place
// where it is live or touched.
#include "emulator/decode/decode_columns.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/graph/liveness.h"

namespace klap::emulator {

using analysis::VirtualRegisters;

namespace {

struct Stretch {
  uint32_t first = ~0u, last = 0;
  void add(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

std::vector<Stretch> stretches(const analysis::ControlFlow& flow, const VirtualRegisters& registers,
                               const analysis::Liveness& liveness) {
  std::vector<Stretch> out(registers.all().size());
  const auto count = static_cast<uint32_t>(flow.instructions().size());
  for (uint32_t i = 0; i < count; ++i) {
    for (const analysis::Access& access : registers.accesses(i)) out[access.reg].add(i);
  }
  if (!liveness.known()) return out;
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const analysis::BasicBlock& block = flow.blocks()[b];
    for (const uint32_t reg : liveness.live_in(b)) {
      out[reg].add(block.first);
      for (const uint32_t from : block.predecessors) out[reg].add(flow.blocks()[from].last - 1);
    }
  }
  // Callers write the parameters, all of them, before the first instruction.
  for (uint32_t reg = 0; reg < out.size(); ++reg) {
    if (registers[reg].is_parameter) out[reg].add(0);
  }
  return out;
}

uint32_t estimate(const analysis::Liveness& liveness) {
  constexpr uint32_t kOverhead = 10, kLeast = 16, kMost = 255, kUnit = 8;
  const uint32_t words = liveness.maximum().pressure.words + kOverhead;
  return std::clamp((words + kUnit - 1) / kUnit * kUnit, kLeast, kMost);
}

}  // namespace

uint32_t lane_columns(const analysis::VirtualRegister& reg) {
  return ptx::type_bytes(reg.type) == 16 ? 2 : 1;
}

Columns assign_columns(const analysis::ControlFlow& flow, const VirtualRegisters& registers) {
  const analysis::Liveness liveness(flow, registers);
  Columns out;
  out.first.resize(registers.all().size());
  out.register_estimate = estimate(liveness);
  const std::vector<Stretch> lives = stretches(flow, registers, liveness);
  std::vector<uint32_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return lives[a].first < lives[b].first; });
  std::map<uint32_t, std::vector<uint32_t>> free;  // width -> columns
  std::multimap<uint32_t, uint32_t> busy;          // last instruction -> register
  for (const uint32_t reg : order) {
    // An instruction may write one column before it has read another: none is given on within one.
    while (liveness.known() && !busy.empty() && busy.begin()->first < lives[reg].first) {
      const uint32_t done = busy.begin()->second;
      free[registers[done].lanes * lane_columns(registers[done])].push_back(out.first[done]);
      busy.erase(busy.begin());
    }
    const uint32_t width = registers[reg].lanes * lane_columns(registers[reg]);
    std::vector<uint32_t>& candidates = free[width];
    if (candidates.empty()) {
      out.first[reg] = out.count;
      out.count += width;
    } else {
      out.first[reg] = candidates.back();
      candidates.pop_back();
    }
    busy.emplace(lives[reg].last, reg);
  }
  return out;
}

}  // namespace klap::emulator
