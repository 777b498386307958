#include "analysis/effects/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/sites.h"
#include "analysis/suspension/suspension.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

bool takes_frame(const Module& module, const Statement& statement, const LocalNames& names) {
  const auto call = parse_call(module, statement, names);
  return call && call->callee == kTakeFrame;
}

Waiting::Waiting(const Module& module, const ControlFlow& flow, const DataFlow& data, WaitsFor whom)
    : module_(module),
      flow_(flow),
      data_(data),
      loops_(flow),
      shared_(module, flow),
      termination_(module, flow, data, loops_),
      polling_(module, flow, data, loops_),
      whom_(whom) {}

const Statement& Waiting::at(uint32_t instruction) const {
  return *flow_.instructions()[instruction].statement;
}

std::optional<std::string> Waiting::find() {
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    const bool in_loop = loops_.loops().depth(flow_.instructions()[i].block) != 0;
    if ((in_loop || flow_.has_unknown_branch()) && watches(i))
      return fmt::format("{} in a loop ({})", module_.full_opcode(at(i)), module_.place(at(i).head));
  }
  return std::nullopt;
}

bool Waiting::ends_by_itself(uint32_t instruction) {
  const auto loops = loops_.around(flow_.instructions()[instruction].block);
  return !flow_.has_unknown_branch() && !loops.empty() &&
         std::all_of(loops.begin(), loops.end(), [&](uint32_t l) { return termination_.ends_by_itself(l); });
}

// True for memory that only the block's own threads see, if waiting for these is not looked for.
bool Waiting::is_of_block(uint32_t i) const {
  return whom_ != WaitsFor::Anybody && memory_space(module_, at(i)) == ".shared";
}

// True for a plain load, or a call, by which a loop around it waits.
bool Waiting::polls(uint32_t i) {
  const auto loops = loops_.around(flow_.instructions()[i].block);
  return std::any_of(loops.begin(), loops.end(), [&](uint32_t l) {
    const std::vector<uint32_t>& watched = polling_.watched(l);
    return std::binary_search(watched.begin(), watched.end(), i) && !termination_.ends_by_itself(l);
  });
}

// True for a load or an atomic whose result lets a loop around it go an idle path.
bool Waiting::idles(uint32_t i) {
  const Statement& s = at(i);
  const std::string_view space = memory_space(module_, s);
  if (flow_.has_unknown_branch() || space == ".param" || space == ".const" || space == ".local" ||
      module_.has_modifier(s, ".nc"))
    return false;
  const auto loops = loops_.around(flow_.instructions()[i].block);
  RegisterSet dependent;  // few loops have idle paths
  return std::ranges::any_of(loops, [&](uint32_t l) {
    return std::ranges::any_of(termination_.idle_paths(l), [&](const std::vector<uint32_t>& path) {
      if (std::ranges::find(path, flow_.instructions()[i].block) == path.end()) return false;
      if (dependent.empty()) dependent = influenced({i});
      return std::ranges::any_of(path, [&](uint32_t b) {
        const Statement& last = at(flow_.blocks()[b].last - 1);
        return last.predicated && module_.is(last.head, "bra") &&
               dependent.contains(module_.text(last.predicate));
      });
    });
  });
}

// True for a loop of which no branch goes by what memory, other threads or a clock say. So nobody decides how
// often it goes round, and it cannot stay for anybody. It may still go by values from before the loop.
bool Waiting::is_counted(const Loop& loop) const {
  using enum EffectKind;
  std::vector<uint32_t> loads, guarded;
  for (const uint32_t b : loop.blocks) {
    for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
      const Statement& s = at(i);
      const auto is_harmless = [](EffectKind kind) { return kind == StrongLoad || kind == SharedAccess; };
      if (module_.is(s.head, "call") || module_.is(s.head, "brx") ||
          !std::ranges::all_of(instruction_effects(module_, s), is_harmless))
        return false;
      for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
        const std::string_view name = module_.text(t);
        if (name.starts_with('%') && !data_.names().is_register(name) &&
            register_effect(name) == ClockRegister)
          return false;
      }
      const std::string_view space = memory_space(module_, s);
      if (module_.is(s.head, "ld") && space != ".param" && space != ".const") loads.push_back(i);
      if (s.predicated) guarded.push_back(i);
    }
  }
  const RegisterSet dependent = influenced(loads);
  return std::ranges::none_of(guarded,
                              [&](uint32_t i) { return dependent.contains(module_.text(at(i).predicate)); });
}

// True for a load that has another address in each iteration of a counted loop. Loops around that one are
// shown to end by themselves: one that looks at the same row again and again may wait with a limit.
bool Waiting::reads_a_row(uint32_t i) {
  const auto loops = loops_.around(flow_.instructions()[i].block);
  if (flow_.has_unknown_branch() || loops.empty()) return false;
  const uint32_t innermost = loops.front();
  const Loop& loop = loops_.all()[innermost];
  const auto address = parse_address(module_, at(i).operands.back());
  const auto& writers = data_.definitions(address ? address->base : std::string_view());
  const bool moves =
      std::ranges::any_of(writers, [&](uint32_t w) { return loop.contains(flow_.instructions()[w].block); });
  return moves && is_counted(loop) && std::ranges::all_of(loops, [&](uint32_t l) {
           return l == innermost || termination_.ends_by_itself(l);
         });
}

bool Waiting::watches(uint32_t i) {
  const Statement& s = at(i);
  const std::string_view opcode = module_.text(s.head);
  if (is_of_block(i) || takes_frame(module_, s, data_.names())) return false;
  if (opcode == "membar" || opcode == "fence" || opcode == "nanosleep") return true;
  if (is_strong_load(module_, s)) return !ends_by_itself(i) && !reads_a_row(i);
  if ((opcode == "ld" || opcode == "call") && polls(i)) return true;
  if ((opcode == "ld" || opcode == "atom") && idles(i)) return true;
  std::vector<uint32_t> sources;
  if (opcode == "atom" && !is_reduction(i)) sources = {i};
  if (opcode == "call") sources = results_of_call(i);
  if (sources.empty()) return false;
  if (flow_.has_unknown_branch()) return true;
  for (uint32_t l : loops_.around(flow_.instructions()[i].block)) {
    const Loop& loop = loops_.all()[l];
    if (decides(sources, loop) && !is_retry(i, loop) && !termination_.ends_by_itself(l)) return true;
  }
  return false;
}

// True for an atomic whose result nothing reads, and that orders nothing. It tells its thread nothing.
bool Waiting::is_reduction(uint32_t atom) const {
  const Statement& s = at(atom);
  for (const char* order : {".acquire", ".acq_rel", ".sc"}) {
    if (module_.has_modifier(s, order)) return false;
  }
  const auto& results = registers_of(module_, s, data_.names()).written;
  return std::ranges::all_of(
      results, [&](std::string_view reg) { return data_.uses(reg).empty() && !data_.is_ambiguous(reg); });
}

bool Waiting::asks_again(uint32_t i) const {
  const auto address = parse_address(module_, at(i).operands.back());
  const auto& writers = data_.definitions(address ? address->base : std::string_view());
  const auto loops = loops_.around(flow_.instructions()[i].block);
  return std::any_of(loops.begin(), loops.end(), [&](uint32_t l) {
    const Loop& loop = loops_.all()[l];
    const bool moves = std::any_of(writers.begin(), writers.end(),
                                   [&](uint32_t w) { return loop.contains(flow_.instructions()[w].block); });
    return !moves && decides({i}, loop);
  });
}

bool Waiting::goes_on_by_memory(uint32_t instruction) const {
  if (flow_.has_unknown_branch()) return true;
  const auto loops = loops_.around(flow_.instructions()[instruction].block);
  return std::any_of(loops.begin(), loops.end(), [&](uint32_t l) {
    std::vector<uint32_t> reads;
    for (uint32_t b : loops_.all()[l].blocks) {
      for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
        const bool is_load = module_.is(at(i).head, "ld") && !module_.has_modifier(at(i), ".param");
        if (is_load || module_.is(at(i).head, "atom")) reads.push_back(i);
      }
    }
    return decides(reads, loops_.all()[l]);
  });
}

// True for an atom.cas that retries. Its expected value is computed anew in the loop, it puts another value
// in the cell, and the loop tests whether it did.
bool Waiting::is_retry(uint32_t atom, const Loop& loop) const {
  const Statement& s = at(atom);
  if (!module_.has_modifier(s, ".cas") || s.operands.size() < 4) return false;
  const std::string_view expected = module_.text(s.operands[2]);
  if (data_.constant(expected) || data_.is_ambiguous(expected)) return false;  // a lock, or may be one
  const RegisterSet same = copies_of(expected), result = copies_of(module_.text(s.operands[0]));
  if (same.contains(module_.text(s.operands[3]))) return false;
  const auto& writers = data_.definitions(expected);
  const bool anew = std::any_of(writers.begin(), writers.end(),
                                [&](uint32_t w) { return loop.contains(flow_.instructions()[w].block); });
  const auto compares = [&](uint32_t i) {
    if (!module_.is(at(i).head, "setp") || at(i).operands.size() < 3) return false;
    const std::string_view a = module_.text(at(i).operands[1]), b = module_.text(at(i).operands[2]);
    return (result.contains(a) && same.contains(b)) || (result.contains(b) && same.contains(a));
  };
  return anew && std::any_of(loop.blocks.begin(), loop.blocks.end(), [&](uint32_t b) {
           for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
             if (compares(i)) return true;
           }
           return false;
         });
}

// The register and the registers that it is moved to.
RegisterSet Waiting::copies_of(std::string_view reg) const {
  RegisterSet out = {reg};
  std::vector<std::string_view> work = {reg};
  while (!work.empty()) {
    const std::string_view from = work.back();
    work.pop_back();
    for (uint32_t use : data_.uses(from)) {
      if (!module_.is(at(use).head, "mov") || at(use).operands.size() != 2) continue;
      const std::string_view to = module_.text(at(use).operands[0]);
      if (data_.definitions(to).size() == 1 && out.insert(to).second) work.push_back(to);
    }
  }
  return out;
}

// The loads of a called function's result, if that function watches memory.
std::vector<uint32_t> Waiting::results_of_call(uint32_t call) const {
  const auto parsed = parse_call(module_, at(call), data_.names());
  const Function* callee = parsed->direct ? module_.find_function(parsed->callee) : nullptr;
  if (callee == nullptr || !callee->is_definition || parsed->results.empty()) return {};
  const CallGraph graph(module_, *callee);
  const Effects& effects = graph.closure(*callee);
  using enum EffectKind;
  if (!effects.has(StrongLoad) && !effects.has(Atomic) && !effects.has(Fence) && !effects.has(Sleep))
    return {};
  std::vector<uint32_t> out;
  const Statement* scope = flow_.instructions()[call].scope;
  for (uint32_t i = call + 1; i < flow_.instructions().size() && flow_.instructions()[i].scope == scope;
       ++i) {
    if (module_.is(at(i).head, "ld") && module_.has_modifier(at(i), ".param")) out.push_back(i);
  }
  return out;
}

// Loads that may give a value that the store has put into the thread's own memory or to the same address.
// Results of a call that it passes a parameter to count as well.
std::vector<uint32_t> Waiting::loads_of_stored(uint32_t store) const {
  const std::string_view space = memory_space(module_, at(store));
  const auto to = parse_address(module_, at(store).operands[0]);
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    if (!module_.is(at(i).head, "ld") || memory_space(module_, at(i)) != space) continue;
    const auto from = parse_address(module_, at(i).operands.back());
    const bool same = from && to && from->base == to->base && from->offset == to->offset;
    const bool of_call =
        space == ".param" && i > store && flow_.instructions()[i].scope == flow_.instructions()[store].scope;
    const bool computed = from && to && from->base != to->base && space == ".local";
    if (same || of_call || computed) out.push_back(i);
  }
  return out;
}

// All registers whose value depends on the results of these instructions. The dependence may go through
// memory, a function, or another thread of the block.
RegisterSet Waiting::influenced(const std::vector<uint32_t>& sources) const {
  RegisterSet out;
  std::vector<uint32_t> work = shared_.loads_after(sources);
  work.insert(work.end(), sources.begin(), sources.end());
  std::set<uint32_t> stored;
  while (!work.empty()) {
    const uint32_t i = work.back();
    work.pop_back();
    if (module_.is(at(i).head, "st") && at(i).operands.size() == 2) {
      const std::vector<std::string> values = components(module_, at(i).operands[1]);
      const bool passes_on = std::any_of(values.begin(), values.end(),
                                         [&](const std::string& value) { return out.contains(value); });
      if (!passes_on || !stored.insert(i).second) continue;
      const std::vector<uint32_t> loads = loads_of_stored(i);
      work.insert(work.end(), loads.begin(), loads.end());
    }
    for (std::string_view r : registers_of(module_, at(i), data_.names()).written) {
      if (!out.insert(r).second) continue;
      const auto& uses = data_.uses(r);
      work.insert(work.end(), uses.begin(), uses.end());
    }
  }
  return out;
}

// True if a branch by which a thread can leave the loop depends on what the instructions write.
bool Waiting::decides(const std::vector<uint32_t>& sources, const Loop& loop) const {
  const RegisterSet dependent = influenced(sources);
  const auto depends = [&](const Statement& s) {
    if (s.predicated && dependent.contains(module_.text(s.predicate))) return true;
    return module_.is(s.head, "brx") && dependent.contains(module_.text(s.operands[0].first));
  };
  return std::any_of(loop.blocks.begin(), loop.blocks.end(), [&](uint32_t b) {
    const BasicBlock& block = flow_.blocks()[b];
    const Statement& s = at(block.last - 1);
    const bool ends = module_.is(s.head, "ret") || module_.is(s.head, "exit");
    const bool leaves = ends || loop.merged ||
                        std::any_of(block.successors.begin(), block.successors.end(),
                                    [&](uint32_t to) { return !loop.contains(to); });
    return leaves && depends(s);
  });
}

}  // namespace klap::analysis
