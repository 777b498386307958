#include "analysis/values/uniformity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/warp_invariant_load.h"
#include "analysis/values/warp_rows.h"
#include "ptx/edit.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::GlobalWrite;
using ptx::Module;
using ptx::Statement;

namespace {

// Beyond these a value counts as unknown: looking further would cost more than such code is worth.
constexpr uint32_t kMostDefinitions = 64;
constexpr size_t kMostValues = 256;

using Names = std::set<std::string_view>;

bool has_space(const Module& m, const Statement& s, std::string_view space) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view text = m.text(t);
    if (text == space || (text.starts_with(space) && text.substr(space.size()).starts_with("::")))
      return true;
  }
  return false;
}

// Instructions that leave global memory as it is.
bool spares_global(const Module& m, const Statement& s) {
  switch (ptx::opcode_of(m, s).writes_global) {
    case GlobalWrite::Never:
      return true;
    case GlobalWrite::BySpace:
      return has_space(m, s, ".shared") || has_space(m, s, ".local") || has_space(m, s, ".param");
    case GlobalWrite::May:
      return false;
  }
  return false;
}

Uniform special_register(std::string_view name) {
  static const Names kGrid = {"%ntid",
                              "%nctaid",
                              "%gridid",
                              "%nclusterid",
                              "%cluster_nctaid",
                              "%cluster_nctarank",
                              "%is_explicit_cluster",
                              "%total_smem_size",
                              "%dynamic_smem_size",
                              "%aggr_smem_size"};
  static const Names kBlock = {"%ctaid", "%clusterid", "%cluster_ctaid", "%cluster_ctarank"};
  if (kGrid.contains(name) || name.starts_with("%envreg")) return Uniform::Grid;
  return kBlock.contains(name) ? Uniform::Block : Uniform::Thread;
}

Uniform join(Uniform a, Uniform b) { return std::max(a, b); }

// True if a comparison of a value with b tells b - 1 from b. Other orders tell b from b + 1. `swapped`: b is
// on the left.
bool begins_at_bound(std::string_view relation, bool swapped) {
  static const Names kFrom = {".lt", ".ge", ".lo", ".hs"}, kUpTo = {".le", ".gt", ".ls", ".hi"};
  return (swapped ? kUpTo : kFrom).contains(relation);
}

bool is_order(std::string_view relation) {
  return begins_at_bound(relation, false) || begins_at_bound(relation, true);
}

}  // namespace

const char* to_string(Uniform uniform) {
  static constexpr std::array<const char*, 4> kNames = {"grid", "block", "warp", "thread"};
  return kNames.at(static_cast<size_t>(uniform));
}

char letter(Uniform uniform) { return to_string(uniform)[0]; }

Uniformity::Uniformity(const ControlFlow& flow, const Dominance& dominance, const Loops& loops,
                       const VirtualRegisters& registers, const ReachingDefinitions& reaching,
                       const Symbolic& symbolic, const Given& given)
    : m_(flow.module()),
      flow_(flow),
      dominance_(dominance),
      loops_(loops),
      registers_(registers),
      reaching_(reaching),
      symbolic_(symbolic),
      given_(given),
      local_names_(flow.module(), flow.function().body),
      written_(flow.instructions().size(), Uniform::Grid),
      decision_(flow.blocks().size(), Uniform::Grid),
      control_(flow.blocks().size(), Uniform::Grid),
      ending_calls_(flow) {
  find_sources();
  find_writers();
  if (given_.no_races) alike_ = loads_seen_alike(flow_);
  while (update()) {
  }
}

// ---- where values come from ----

void Uniformity::find_sources() {
  sources_.resize(registers_.access_count());
  writers_.resize(registers_.all().size());
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    for (const Access& access : registers_.accesses(i)) writers_[access.reg] += access.written ? 1 : 0;
  }
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    uint32_t next = registers_.first_access(i);
    for (const Access& access : registers_.accesses(i)) {
      if (access.read) sources_[next] = source(i, access.reg);
      ++next;
    }
  }
}

Uniformity::Source Uniformity::source(uint32_t index, uint32_t reg) const {
  Source out;
  const auto only = reaching_.only_definition(index, reg);
  out.unknown = registers_[reg].is_parameter || (!only && writers_[reg] > kMostDefinitions);
  if (out.unknown) return out;
  out.definitions = only ? std::vector<uint32_t>{*only} : reaching_.origins(index, reg).definitions;
  out.same_iteration = only && in_same_iteration(*only, index);
  if (!out.same_iteration) out.choices = choices(out.definitions, index);
  out.unknown = out.choices.size() > kMostValues;
  return out;
}

// True if the definition ran in the iteration of its innermost loop in which it is read. That holds for a
// definition that is read only behind itself, if the reading lies in that loop at all.
bool Uniformity::in_same_iteration(uint32_t definition, uint32_t reading) const {
  const uint32_t from = block_of(definition), to = block_of(reading);
  if (from == to && definition < reading) return true;
  if (loops_.is_irreducible(from) || loops_.is_irreducible(to)) return false;
  const uint32_t loop = loops_.innermost(from);
  return loop == Loop::kNone || loops_.contains(loop, to);
}

// The branches that decide which definitions run, and how often. Branches are looked at only up to one behind
// which all definitions lie together with the reading.
std::vector<uint32_t> Uniformity::choices(const std::vector<uint32_t>& definitions, uint32_t reading) const {
  std::vector<uint32_t> blocks = {block_of(reading)};
  for (const uint32_t definition : definitions) blocks.push_back(block_of(definition));
  std::vector<uint32_t> work(blocks.begin() + 1, blocks.end()), out;
  std::set<uint32_t> seen;
  while (!work.empty()) {
    const uint32_t block = work.back();
    work.pop_back();
    for (const uint32_t branch : dominance_.controllers(block)) {
      if (!seen.insert(branch).second || is_behind(branch, blocks)) continue;
      out.push_back(branch);
      work.push_back(branch);
      if (out.size() > kMostValues) return out;
    }
  }
  return out;
}

// True if every thread that comes to one of the blocks took one and the same way at the branch, and took it
// just once.
bool Uniformity::is_behind(uint32_t branch, const std::vector<uint32_t>& blocks) const {
  const auto& components = flow_.components().of;
  for (const uint32_t way : flow_.blocks()[branch].successors) {
    const auto& entries = flow_.blocks()[way].predecessors;
    const bool only_entry = std::all_of(entries.begin(), entries.end(), [&](uint32_t entry) {
      return entry == branch || dominance_.dominates(way, entry);
    });
    const bool once = dominance_.known() && components[branch] != components[way];
    const bool all = std::all_of(blocks.begin(), blocks.end(),
                                 [&](uint32_t block) { return dominance_.dominates(way, block); });
    if (only_entry && once && all) return true;
  }
  return false;
}

Uniform Uniformity::of_source(const Source& source) const {
  if (source.unknown || source.definitions.empty()) return Uniform::Thread;
  Uniform out = Uniform::Grid;
  for (const uint32_t definition : source.definitions) {
    out = join(out, written_[definition]);
    if (!source.same_iteration && at(definition).predicated) {
      out = join(out, operand(definition, m_.text(at(definition).predicate)));
    }
  }
  for (const uint32_t branch : source.choices) out = join(out, decision_[branch]);
  return out;
}

Uniform Uniformity::read(uint32_t instruction, uint32_t reg) const {
  uint32_t next = registers_.first_access(instruction);
  for (const Access& access : registers_.accesses(instruction)) {
    if (access.reg == reg && access.read) {
      return of_source(sources_[next]);
    }
    ++next;
  }
  return Uniform::Thread;
}

Uniform Uniformity::operand(uint32_t instruction, std::string_view text) const {
  const uint32_t reg = registers_.find(instruction, text);
  return reg == VirtualRegisters::kNone ? name(text) : read(instruction, reg);
}

// ---- what is known beforehand ----

void Uniformity::find_writers() {
  for (const FlatInstruction& f : flow_.instructions()) {
    writes_global_ = writes_global_ || !spares_global(m_, *f.statement);
  }
}

Uniform Uniformity::reached(uint32_t instruction) const {
  if (ending_calls_.is_behind(instruction) || flow_.has_unknown_branch()) return Uniform::Thread;
  return control_[block_of(instruction)];
}

// ---- the iteration ----

bool Uniformity::update() {
  bool changed = false;
  const auto raise = [&](Uniform& to, Uniform value) {
    changed = changed || value > to;
    to = join(to, value);
  };
  for (uint32_t b = 0; b < flow_.blocks().size(); ++b) {
    for (const uint32_t branch : dominance_.controllers(b)) {
      raise(control_[b], join(decision_[branch], control_[branch]));
    }
    for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i)
      raise(written_[i], compute(i));
    raise(decision_[b], decide(b));
  }
  return changed;
}

Uniform Uniformity::decide(uint32_t block) const {
  const BasicBlock& b = flow_.blocks()[block];
  const uint32_t last = b.last - 1;
  const Statement& s = at(last);
  Uniform out = Uniform::Grid;
  if (b.conditional) out = operand(last, m_.text(s.predicate));
  if (b.end == BlockEnd::IndexedBranch) out = join(out, reads(last));
  return out;
}

bool Uniformity::is_operand(uint32_t index, std::string_view text) const {
  for (const ptx::TokenRange& range : at(index).operands) {
    for (uint32_t t = range.first; t < range.last; ++t) {
      if (m_.text(t) == text) return true;
    }
  }
  return false;
}

// All registers that an instruction reads.
Uniform Uniformity::reads(uint32_t index) const {
  Uniform out = Uniform::Grid;
  const uint32_t predicate =
      at(index).predicated ? registers_.find(index, m_.text(at(index).predicate)) : VirtualRegisters::kNone;
  for (const Access& access : registers_.accesses(index)) {
    // A predicate decides whether the instruction runs, not what it computes.
    const bool guards = access.reg == predicate && !is_operand(index, m_.text(at(index).predicate));
    if (access.read && !guards) out = join(out, read(index, access.reg));
  }
  return out;
}

// Everything else that an instruction names: special registers, variables, functions.
Uniform Uniformity::names(uint32_t index) const {
  Uniform out = Uniform::Grid;
  for (const ptx::TokenRange& range : at(index).operands) {
    for (uint32_t t = range.first; t < range.last; ++t) {
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      if (registers_.find(index, m_.text(t)) != VirtualRegisters::kNone) continue;
      out = join(out, name(m_.text(t)));
    }
  }
  return out;
}

Uniform Uniformity::name(std::string_view text) const {
  if (text.empty() || text == "_" || text == "WARP_SZ") return Uniform::Grid;
  if (text.starts_with('%')) return special_register(text.substr(0, text.find('.')));
  const bool literal = text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
  if (literal) return Uniform::Grid;
  if (local_names_.is_shared(text)) return Uniform::Block;
  if (local_names_.contains(text)) return Uniform::Thread;  // local variables, parameters of calls
  for (const ptx::Parameter& parameter : flow_.function().parameters) {
    const bool kernel = flow_.function().kind == ptx::FunctionKind::Entry;
    if (parameter.name == text) return kernel ? Uniform::Grid : Uniform::Thread;
  }
  if (m_.find_function(text) != nullptr) return Uniform::Grid;
  const ptx::Variable* variable = m_.find_variable(text);
  if (variable == nullptr) return Uniform::Thread;
  if (variable->space == ".shared") return Uniform::Block;
  return variable->space == ".global" || variable->space == ".const" ? Uniform::Grid : Uniform::Thread;
}

Uniform Uniformity::compute(uint32_t index) const {
  const std::string_view opcode = m_.text(at(index).head);
  if (ptx::opcode_of(opcode).is_computation()) return arithmetic(index);
  if (opcode == "ld") return load(index);
  if (opcode == "bar" || opcode == "barrier") return block_reduction(index);
  return warp_operation(index);
}

Uniform Uniformity::arithmetic(uint32_t index) const {
  const Statement& s = at(index);
  // Addresses in windows that each thread or block has for itself.
  if (m_.is(s.head, "cvta") && has_space(m_, s, ".local")) return Uniform::Thread;
  Uniform out = join(reads(index), names(index));
  if (m_.is(s.head, "cvta") && has_space(m_, s, ".shared")) out = join(out, Uniform::Block);
  if (ptx::opcode_of(m_, s).reads_carry()) out = join(out, carry(index));
  if (out == Uniform::Grid) return out;
  // Differences in the operands may cancel in the exact value.
  Uniform exact = Uniform::Grid;
  for (const Access& access : registers_.accesses(index)) {
    if (access.written) exact = join(exact, evaluated(symbolic_.written(index, access.reg)));
  }
  return std::min({out, exact, between_warps(index)});
}

// A comparison of a place in the row by which whole warps go one way or the other. The places of a warp lie
// between a multiple of 32 and the next. They must be compared with such a multiple, or with one less.
Uniform Uniformity::between_warps(uint32_t index) const {
  const Statement& s = at(index);
  if (!given_.full_rows || !m_.is(s.head, "setp") || s.operands.size() < 3) return Uniform::Thread;
  const std::string_view type = m_.text(s.modifiers.last - 1);
  const bool integer = type.starts_with(".u") || type.starts_with(".s");
  if (!integer || s.modifiers.size() + 1 != s.operands.size() || !is_order(m_.text(s.modifiers.first)))
    return Uniform::Thread;
  if (!splits_row(index, 1, 2, type) && !splits_row(index, 2, 1, type)) return Uniform::Thread;
  if (s.operands.size() == 3) return Uniform::Warp;
  const std::string other = operand_text(index, 3);  // joined to it
  return join(Uniform::Warp, operand(index, other.substr(other.starts_with('!') ? 1 : 0)));
}

bool Uniformity::splits_row(uint32_t index, size_t place, size_t bound, std::string_view type) const {
  const std::string at_bound = operand_text(index, bound);
  if (operand(index, at_bound) > Uniform::Warp) return false;
  const uint32_t bits = 8 * ptx::type_bytes(type);
  const Expr value = symbolic_.read(index, operand_text(index, place), bits);
  if (!value.known() || evaluated(divide(by_warp(value), of_lanes(value), Sign::Unsigned)) > Uniform::Warp)
    return false;
  const Expr limit = symbolic_.read(index, at_bound, bits);
  const bool from = begins_at_bound(m_.text(at(index).modifiers.first), place == 2);
  return is_whole_warps(from ? limit : limit + Expr::constant(1, bits));
}

// The uniformity of parameters, constants and special registers; every other symbol counts as Thread here.
Uniform Uniformity::evaluated(const Expr& value) const {
  const Expr shown = value.known() && given_.full_rows ? by_warp(value) : value;
  if (!shown.known()) return Uniform::Thread;
  Uniform out = Uniform::Grid;
  any_leaf(shown, [&](const ExprNode& leaf) {
    out = join(out, of_leaf(leaf));
    return false;
  });
  return out;
}

Uniform Uniformity::of_leaf(const ExprNode& leaf) const {
  if (leaf.kind == ExprKind::Constant || leaf.kind == ExprKind::Parameter) return Uniform::Grid;
  if (is_warp_number(leaf)) return Uniform::Warp;
  if (leaf.kind != ExprKind::Special) return Uniform::Thread;
  const bool row = leaf.name == "tid.y" || leaf.name == "tid.z";
  return row && given_.full_rows ? Uniform::Warp : name("%" + leaf.name);
}

// The carry that an instruction takes from one before it in its block.
Uniform Uniformity::carry(uint32_t index) const {
  Uniform out = Uniform::Grid;
  for (uint32_t i = index; i-- > flow_.blocks()[block_of(index)].first;) {
    if (!m_.has_modifier(at(i), ".cc")) continue;
    if (at(i).predicated) return Uniform::Thread;
    out = join(out, join(reads(i), names(i)));
    if (!ptx::opcode_of(m_, at(i)).reads_carry()) return out;
  }
  return Uniform::Thread;
}

Uniform Uniformity::load(uint32_t index) const {
  const Statement& s = at(index);
  if (symbolic_.parameter_offset(index)) {
    return flow_.function().kind == ptx::FunctionKind::Entry ? Uniform::Grid : Uniform::Thread;
  }
  const bool fixed = m_.has_modifier(s, ".nc") || has_space(m_, s, ".const");
  const bool parameter = has_space(m_, s, ".param") && flow_.function().kind == ptx::FunctionKind::Entry;
  const bool spared = has_space(m_, s, ".global") && !writes_global_ && !is_strong_load(m_, s);
  if (fixed || parameter || spared) return join(reads(index), names(index));
  const bool alike = !alike_.empty() && alike_[index];
  return alike ? join(Uniform::Warp, join(reads(index), names(index))) : Uniform::Thread;
}

// The register or literal that makes an operand; nothing for a vector.
std::string Uniformity::operand_text(uint32_t index, size_t operand) const {
  const auto& operands = at(index).operands;
  const auto parts =
      operand < operands.size() ? components(m_, operands[operand]) : std::vector<std::string>();
  return parts.size() == 1 ? parts[0] : std::string();
}

// True if all threads of the group run the instruction together, with the same of each of these operands.
bool Uniformity::runs_together(uint32_t index, Uniform group, std::initializer_list<size_t> operands) const {
  const Statement& s = at(index);
  if (reached(index) > group) return false;
  if (s.predicated && operand(index, m_.text(s.predicate)) > group) return false;
  return std::all_of(operands.begin(), operands.end(), [&](size_t i) {
    const std::string text = operand_text(index, i);
    return !text.empty() && operand(index, text) <= group;
  });
}

// Operations whose result the participating lanes share. All lanes that run one execution of such an
// instruction are in its mask, so with one mask there is one result.
Uniform Uniformity::warp_operation(uint32_t index) const {
  const Statement& s = at(index);
  const std::string_view opcode = m_.text(s.head);
  if (!m_.has_modifier(s, ".sync") || s.operands.empty()) return Uniform::Thread;
  const size_t mask = s.operands.size() - 1;
  const bool shared =
      opcode == "vote" || opcode == "redux" || (opcode == "match" && m_.has_modifier(s, ".all"));
  if (shared) return runs_together(index, Uniform::Warp, {mask}) ? Uniform::Warp : Uniform::Thread;
  // A value that all lanes of the warp take from one lane.
  const bool from_one = opcode == "shfl" && m_.has_modifier(s, ".idx") && s.operands.size() == 5 &&
                        symbolic_.read(index, operand_text(index, 3), 32).as_constant() == 31;
  return from_one && runs_together(index, Uniform::Warp, {2, mask}) ? Uniform::Warp : Uniform::Thread;
}

// bar.red: without a count of threads, all threads of the block get the same.
Uniform Uniformity::block_reduction(uint32_t index) const {
  const bool whole = m_.has_modifier(at(index), ".red") && at(index).operands.size() == 3;
  return whole && runs_together(index, Uniform::Block, {1}) ? Uniform::Block : Uniform::Thread;
}

std::string print_uniformity(const ControlFlow& flow, const VirtualRegisters& registers,
                             const Uniformity& uniformity) {
  const Module& m = flow.module();
  ptx::Edits edits(m);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const auto accesses = registers.accesses(i);
    const bool writes =
        std::any_of(accesses.begin(), accesses.end(), [](const Access& access) { return access.written; });
    edits.insert_before(flow.instructions()[i].statement->tokens.first,
                        fmt::format("/*{} {}*/ ", writes ? letter(uniformity.written(i)) : '-',
                                    letter(uniformity.reached(i))));
  }
  return "// Before each instruction: its result, and whether it is reached, is the same in the whole grid "
         "(g), in\n"
         "// each block (b) or warp (w), or may differ by thread (t).\n" +
         edits.apply(flow.function().tokens) + "\n";
}

}  // namespace klap::analysis
