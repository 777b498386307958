#include "analysis/values/warp_invariant_load.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/effects/effects.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::Synchronisation;

// The number of block barriers that every way to a place has passed, if these are all the same. `entered`
// tells what synchronises behind the last of them.
struct Passed {
  bool reached = false, same = true;
  bool atomics = false;             // which a fence makes synchronise
  std::optional<uint32_t> entered;  // the first instruction that synchronises
  uint32_t barriers = 0;
  friend bool operator==(const Passed&, const Passed&) = default;
};

std::optional<uint32_t> first_of(std::optional<uint32_t> a, std::optional<uint32_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

Passed join(const Passed& a, const Passed& b) {
  if (!a.reached || !b.reached) return a.reached ? a : b;
  return {true, a.same && b.same && a.barriers == b.barriers, a.atomics || b.atomics,
          first_of(a.entered, b.entered), a.barriers};
}

// bar.sync 0 of all threads, which every thread that comes there runs.
bool is_block_barrier(const Module& m, const Statement& s) {
  const bool barrier = m.is(s.head, "bar") || m.is(s.head, "barrier");
  return barrier && !s.predicated && m.has_modifier(s, ".sync") && !m.has_modifier(s, ".warp") &&
         !m.has_modifier(s, ".cluster") && s.operands.size() == 1 && m.text(s.operands[0]) == "0";
}

// True for an instruction that orders no other thread's writes before the code that follows.
bool synchronises_nothing(const Module& m, const Statement& s) {
  switch (ptx::opcode_of(m, s).synchronises) {
    case Synchronisation::Never:
      return true;
    case Synchronisation::WhenStrong:
      return !is_strong_load(m, s);
    case Synchronisation::May:
      return false;
  }
  return false;
}

bool is_relaxed_atomic(const Module& m, const Statement& s) {
  return (m.is(s.head, "atom") || m.is(s.head, "red")) && !m.has_modifier(s, ".acquire") &&
         !m.has_modifier(s, ".acq_rel");
}

// True for an instruction that may synchronise, but is no barrier of the block.
bool only_synchronises(const Module& m, const Statement& s) {
  const bool barrier = m.is(s.head, "bar") || m.is(s.head, "barrier");
  return m.is(s.head, "atom") || m.is(s.head, "red") || m.is(s.head, "ld") ||
         (barrier && m.has_modifier(s, ".warp"));
}

Passed after(const Module& m, const Statement& s, uint32_t index, Passed before) {
  const bool fence = m.is(s.head, "membar") || m.is(s.head, "fence");
  if (is_block_barrier(m, s)) {
    ++before.barriers;
    before.atomics = false;
    before.entered = std::nullopt;
  } else if (is_relaxed_atomic(m, s)) {
    before.atomics = true;
  } else if (fence ? before.atomics : !synchronises_nothing(m, s)) {
    before.same = before.same && (fence || only_synchronises(m, s));
    before.entered = first_of(before.entered, index);
  }
  return before;
}

bool is_plain_load(const Module& m, const Statement& s) {
  if (!m.is(s.head, "ld") || is_strong_load(m, s)) return false;
  return !m.has_modifier(s, ".local") && !m.has_modifier(s, ".param") &&
         !m.has_modifier(s, ".shared::cluster");
}

// For each instruction what the ways to it have passed; `same` is false where that is not known.
std::vector<Passed> passed_before(const ControlFlow& flow) {
  const Module& m = flow.module();
  Passed unknown;
  unknown.same = false;
  std::vector<Passed> out(flow.instructions().size(), unknown);
  if (flow.has_unknown_branch() || flow.blocks().empty()) return out;
  std::vector<Passed> entry(flow.blocks().size());
  entry[0].reached = true;
  std::vector<uint32_t> work = {0};
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    Passed passed = entry[b];
    for (uint32_t i = flow.blocks()[b].first; i < flow.blocks()[b].last; ++i) {
      out[i] = passed;
      passed = after(m, *flow.instructions()[i].statement, i, passed);
    }
    for (const uint32_t next : flow.blocks()[b].successors) {
      const Passed joined = join(entry[next], passed);
      if (joined == entry[next]) continue;
      entry[next] = joined;
      work.push_back(next);
    }
  }
  return out;
}

}  // namespace

std::vector<bool> loads_seen_alike(const ControlFlow& flow) {
  std::vector<bool> out;
  for (const Passed& passed : passed_before(flow)) {
    const Statement& s = *flow.instructions()[out.size()].statement;
    out.push_back(passed.same && !passed.entered && is_plain_load(flow.module(), s));
  }
  return out;
}

std::vector<std::optional<uint32_t>> entered_before_loads(const ControlFlow& flow) {
  std::vector<std::optional<uint32_t>> out;
  for (const Passed& passed : passed_before(flow)) {
    const Statement& s = *flow.instructions()[out.size()].statement;
    out.push_back(passed.same && is_plain_load(flow.module(), s) ? passed.entered : std::nullopt);
  }
  return out;
}

}  // namespace klap::analysis
