#include "analysis/order/launching_blocks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/expressions/expression_ranges.h"
#include "analysis/order/block_limit.h"
#include "analysis/order/block_values.h"
#include "analysis/values/guard.h"
#include "analysis/values/values.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// The sources that a value is computed from, through any number of registers.
struct Sources {
  bool input = false;     // a parameter, memory, or what a function gave
  bool data = false;      // memory, but not the block's own with its index in it
  bool shared = false;    // memory that may be the block's
  bool block = false;     // the block's index
  bool thread = false;    // the thread's
  bool by_block = false;  // memory at a place that is one for the block, but not for the grid
  bool ticket = false;    // an atomic operation's result, at one address for all blocks
  bool elected = false;   // a comparison of one of these two that may single out a block
};

class LaunchingBlocks {
 public:
  LaunchingBlocks(const FunctionFacts& parent, const Site& site)
      : k_(parent), values_(parent.values()), m_(parent.module) {
    const uint32_t block = k_.flow.instructions()[k_.flow.index_of(site.get_call)].block;
    for (const PassedBranch& passed : passed_branches(k_.flow, values_.dominance, block))
      perhaps_one_ = perhaps_one_ || leaves_one(passed);
    perhaps_one_ = perhaps_one_ || (is_bounded_below_ && !is_bounded_above_);
    const std::set<BlockLimit> limits = limits_;  // of all ways
    for (const PassedBranch& way : joined_ways(block)) {
      is_bounded_below_ = is_bounded_above_ = false;
      perhaps_one_ = perhaps_one_ || leaves_one(way) || is_bounded_below_;
    }
    limits_ = limits;
    for (const ptx::Statement* const call : {site.get_call, site.launch_call})
      perhaps_one_ = perhaps_one_ || has_elected_extents(site, k_.flow.index_of(call));
    perhaps_one_ = perhaps_one_ || has_elected_arguments(site);
  }
  [[nodiscard]] bool perhaps_one() const { return perhaps_one_; }
  [[nodiscard]] const std::set<BlockLimit>& limits() const { return limits_; }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }

  [[nodiscard]] bool leaves_one(const PassedBranch& passed) const {
    const Statement& branch = at(passed.branch);
    // One entry of a table of labels.
    if (!passed.when) {
      const Sources from = sources(reads(passed.branch));
      return from.block || is_elected(from) || is_chosen(from);
    }
    return predicate(passed.branch, m_.text(branch.predicate), *passed.when);
  }

  // CUDA refuses a grid without blocks, and an argument may leave a child nothing to do. So they may elect
  // the block of the parent that launches, too. The extents are stored in the scope of a call.
  [[nodiscard]] bool has_elected_extents(const Site& site, uint32_t call) const {
    const auto& instructions = k_.flow.instructions();
    if (call == ControlFlow::npos) return false;
    std::vector<std::string> extents = {site.shared};
    extents.insert(extents.end(), site.grid.begin(), site.grid.end());
    extents.insert(extents.end(), site.block.begin(), site.block.end());
    for (uint32_t i = call; i-- > 0 && instructions[i].scope == instructions[call].scope;) {
      for (const std::string& extent : extents) {
        const uint32_t reg = values_.registers.find(i, extent);
        if (reg == VirtualRegisters::kNone) continue;
        const Sources from = sources({{i, reg}});
        if (is_elected(from) || may_leave_one(from)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool has_elected_arguments(const Site& site) const {
    return std::ranges::any_of(site.arguments, [&](const Argument& argument) {
      const uint32_t store = k_.flow.index_of(argument.store);
      return store != ControlFlow::npos && sources(reads(store)).elected;
    });
  }

  // The branches that decide over a block of the code without being on all ways to it: `b == 2 || b == 5`.
  [[nodiscard]] std::vector<PassedBranch> joined_ways(uint32_t block) const {
    std::vector<PassedBranch> out;
    const auto& blocks = k_.flow.blocks();
    for (const BasicBlock& from : blocks) {
      const bool is_jump = from.end == BlockEnd::Branch;
      if (!from.conditional || from.successors.size() != (is_jump ? 2U : 1U)) continue;
      std::vector<uint32_t> leading = from.successors;
      std::erase_if(leading, [&](uint32_t next) { return !leads_to(next, block); });
      if (leading.size() != 1) continue;
      const bool is_on_all_ways =
          blocks[leading[0]].predecessors.size() == 1 && values_.dominance.dominates(leading[0], block);
      if (is_on_all_ways) continue;
      const bool falls_through = blocks[leading[0]].first == from.last;
      out.emplace_back(from.last - 1, falls_through == at(from.last - 1).predicate_negated);
    }
    return out;
  }
  // True if control can get there without beginning another iteration of a loop.
  [[nodiscard]] bool leads_to(uint32_t from, uint32_t to) const {
    std::set<uint32_t> seen = {from};
    std::vector<uint32_t> open = {from};
    while (!open.empty()) {
      const uint32_t block = open.back();
      open.pop_back();
      if (block == to) return true;
      for (const uint32_t next : k_.flow.blocks()[block].successors) {
        if (!values_.dominance.dominates(next, block) && seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  // An instruction reads a predicate that had that value.
  [[nodiscard]] bool predicate(uint32_t reader, std::string_view name, bool value) const {
    const uint32_t reg = values_.registers.find(reader, name);
    if (reg == VirtualRegisters::kNone) return true;
    const auto writer = values_.reaching.only_definition(reader, reg);
    if (!writer) {
      const Sources from = sources({{reader, reg}});
      return may_leave_one(from) || is_elected(from) || is_chosen(from);
    }
    const Statement& s = at(*writer);
    const auto operand = [&](size_t i) { return m_.compact(s.operands[i]); };
    if (!s.predicated && s.operands.size() == 2 && m_.is(s.head, "not"))
      return predicate(*writer, operand(1), !value);
    const bool both = (m_.is(s.head, "and") && value) || (m_.is(s.head, "or") && !value);
    if (!s.predicated && s.operands.size() == 3 && both)
      return predicate(*writer, operand(1), value) || predicate(*writer, operand(2), value);
    const Sources from = sources({{reader, reg}}), behind = sources(reads(*writer));
    if (behind.elected || (is_elected(behind) && !has_bound_of_input(s))) return true;
    if (!from.block) return is_chosen(from);
    const auto compared = comparison(*writer, value);
    if (!compared || is_equality(*compared)) return true;
    if (!from.input) return !lets_two_blocks_through(*compared);
    const Bound bound = bound_of(*compared);
    const auto limit = bound == Bound::Upper ? limit_of(*compared) : std::nullopt;
    if (limit) limits_.insert(*limit);
    // The host does not see how many blocks another bound lets through.
    if (!limit && !from.data) return true;
    is_bounded_below_ = is_bounded_below_ || bound == Bound::Lower;
    is_bounded_above_ = is_bounded_above_ || bound == Bound::Upper;
    return bound == Bound::None;
  }

  static bool may_leave_one(const Sources& from) { return from.block && !from.input; }
  // True if data that the block finds by its index decides for all of its threads: `if (chosen[b])`.
  static bool is_chosen(const Sources& from) { return from.by_block && !from.thread; }

  // ---- blocks that are elected ----

  // True if the value may tell a block by the number that it has drawn: the last block of the grid goes on
  // alone, or the first one that comes. Its threads may tell each other by shared memory.
  [[nodiscard]] bool is_elected(const Sources& from) const {
    return from.ticket || from.elected || (from.shared && shares_election());
  }

  // True if what the kernel writes to shared memory may depend on an election.
  [[nodiscard]] bool shares_election() const {
    if (!shares_election_) {
      const auto& instructions = k_.flow.instructions();
      shares_election_ = false;
      for (uint32_t i = 0; i < instructions.size() && !*shares_election_; ++i)
        shares_election_ = may_write_shared(at(i)) && is_elected_at(i);
    }
    return *shares_election_;
  }
  // True if it may hold the block's index, or something at a place that depends on it.
  [[nodiscard]] bool shares_block() const {
    if (!shares_block_) {
      const auto& instructions = k_.flow.instructions();
      shares_block_ = false;  // also for what is stored there again
      for (uint32_t i = 0; i < instructions.size() && !*shares_block_; ++i) {
        const auto call = parse_call(m_, at(i), k_.data.names());
        shares_block_ = (may_write_shared(at(i)) && sources(reads(i), Elections::Ignored).block) ||
                        (call && (may_ask(*call) || is_told_block(i)));
      }
    }
    return *shares_block_;
  }
  // True if it may hold data that the block finds by its index.
  [[nodiscard]] bool shares_choice() const {
    if (!shares_choice_) {
      const auto& instructions = k_.flow.instructions();
      shares_choice_ = false;  // also for what is stored there again
      for (uint32_t i = 0; i < instructions.size() && !*shares_choice_; ++i)
        shares_choice_ = may_write_shared(at(i)) && sources(reads(i), Elections::Ignored).by_block;
    }
    return *shares_choice_;
  }
  // True if a call passes something on that depends on the index.
  [[nodiscard]] bool is_told_block(uint32_t call) const {
    const auto& instructions = k_.flow.instructions();
    for (uint32_t i = call; i-- > 0 && instructions[i].scope == instructions[call].scope;) {
      if (m_.is(at(i).head, "st") && sources(reads(i), Elections::Ignored).block) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_elected_at(uint32_t instruction) const {
    if (sources(reads(instruction)).elected) return true;
    const auto passed =
        passed_branches(k_.flow, values_.dominance, k_.flow.instructions()[instruction].block);
    return std::ranges::any_of(
        passed, [&](const PassedBranch& branch) { return sources(reads(branch.branch)).elected; });
  }

  // True for a comparison that may single out a block, by its index or a number that it has drawn. An order
  // relation with a bound that is not constant is taken to let many through.
  [[nodiscard]] bool elects(uint32_t test) const {
    const Statement& s = at(test);
    if (!m_.is(s.head, "setp") || has_bound_of_input(s)) return false;
    const Sources from = sources(reads(test), Elections::Ignored);
    return from.ticket || from.block;
  }
  // True if a branch decides over the instruction by such a comparison.
  [[nodiscard]] bool is_behind_election(uint32_t instruction) const {
    const uint32_t block = k_.flow.instructions()[instruction].block;
    for (const PassedBranch& passed : passed_branches(k_.flow, values_.dominance, block)) {
      for (const auto& [reader, reg] : reads(passed.branch)) {
        const auto& definitions = values_.reaching.origins(reader, reg).definitions;
        if (std::ranges::any_of(definitions, [&](uint32_t d) { return elects(d); })) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool has_bound_of_input(const Statement& s) const {
    if (!m_.is(s.head, "setp") || s.operands.size() != 3 || m_.has_modifier(s, ".eq") ||
        m_.has_modifier(s, ".ne"))
      return false;
    return std::ranges::none_of(std::array{1, 2}, [&](size_t i) {
      const std::string operand = m_.compact(s.operands[i]);
      return ptx::integer_value(operand.starts_with('-') ? operand.substr(1) : operand) ||
             k_.data.constant(operand);
    });
  }

  [[nodiscard]] std::optional<IndexComparison> comparison(uint32_t setp, bool value) const {
    const Statement& s = at(setp);
    if (!m_.is(s.head, "setp") || s.predicated || s.modifiers.size() != 2 || s.operands.size() != 3 ||
        s.operands[0].size() != 1)
      return std::nullopt;
    const std::string_view type = m_.text(s.modifiers.last - 1);
    const uint32_t bits = 8 * ptx::type_bytes(type);
    if (bits == 0 || type[1] == 'f') return std::nullopt;
    const std::string_view relation = relation_of(m_.text(s.modifiers.first), value);
    if (relation.empty()) return std::nullopt;
    const auto read = [&](size_t i) { return values_.symbolic.read(setp, m_.compact(s.operands[i]), bits); };
    const Expr left = read(1), right = read(2);
    return IndexComparison{left, right, left - right, relation, type[1] != 's'};
  }

  static std::string_view relation_of(std::string_view compare, bool value) {
    static constexpr std::array<std::array<std::string_view, 3>, 10> kRelations = {{{".lt", ".lt", ".ge"},
                                                                                    {".le", ".le", ".gt"},
                                                                                    {".gt", ".gt", ".le"},
                                                                                    {".ge", ".ge", ".lt"},
                                                                                    {".lo", ".lt", ".ge"},
                                                                                    {".ls", ".le", ".gt"},
                                                                                    {".hi", ".gt", ".le"},
                                                                                    {".hs", ".ge", ".lt"},
                                                                                    {".eq", ".eq", ".ne"},
                                                                                    {".ne", ".ne", ".eq"}}};
    const auto* const found = std::ranges::find(kRelations, compare, [](const auto& row) { return row[0]; });
    return found == kRelations.end() ? std::string_view() : (*found)[value ? 1 : 2];
  }

  // The block's index, or a thread's in the grid, is one number, which may be input.
  static bool is_equality(const IndexComparison& c) { return c.relation == ".eq"; }

  // The side on which input bounds the index of the block.
  enum class Bound : uint8_t { None, Lower, Upper };

  // Input bounds the index if an order relation compares them, and the index grows on one side of it. The
  // index may be divided, as the place of a tile is. Nothing is known of other functions of it, such as the
  // bit of a mask or a distance.
  [[nodiscard]] Bound bound_of(const IndexComparison& c) const {
    if (c.relation == ".ne" || !c.difference.known() || has_window(c)) return Bound::None;
    std::optional<bool> grows, part_grows;
    for (const Term& term : terms_of(c.difference)) {
      if (!has_index(term)) continue;
      if (!std::ranges::all_of(term.factors, [&](const Expr& f) { return is_part(f); })) return Bound::None;
      const bool is_whole = std::ranges::all_of(term.factors, is_leaf);
      const bool is_positive = as_signed(term.coefficient, c.difference->bits) > 0;
      std::optional<bool>& known = is_whole ? grows : part_grows;
      if (is_whole && known && *known != is_positive) return Bound::None;
      known = is_positive;
    }
    if (!grows) grows = part_grows;
    if (!grows) return Bound::None;
    return *grows == (c.relation == ".lt" || c.relation == ".le") ? Bound::Upper : Bound::Lower;
  }

  // `b - first < count`, without signs, bounds the index on both sides.
  [[nodiscard]] bool has_window(const IndexComparison& c) const {
    const auto is_behind_input = [&](const Expr& side) {
      const std::vector<Term> terms = terms_of(side);
      const auto is_negative = [&](const Term& t) { return as_signed(t.coefficient, side->bits) < 0; };
      const auto index = std::ranges::find_if(terms, [&](const Term& t) { return has_index(t); });
      return index != terms.end() && std::ranges::any_of(terms, [&](const Term& t) {
               return !t.factors.empty() && !has_index(t) && !is_thread_index(t) &&
                      is_negative(t) != is_negative(*index);
             });
    };
    return c.is_unsigned && (is_behind_input(c.left) || is_behind_input(c.right));
  }

  static bool is_leaf(const Expr& e) { return e->operands.empty() && e->terms.empty(); }
  [[nodiscard]] bool has_index(const Term& term) const {
    return std::ranges::any_of(term.factors, [&](const Expr& factor) { return takes_index(factor); });
  }
  [[nodiscard]] bool takes_index(const Expr& e) const {
    return any_leaf(e, [&](const ExprNode& leaf) { return is_of_block(leaf); });
  }
  // True for a leaf whose value comes from the block's index.
  [[nodiscard]] bool is_of_block(const ExprNode& leaf) const {
    if (leaf.kind == ExprKind::Special) return is_block_index(leaf);
    const auto instruction = static_cast<uint32_t>(leaf.value);
    if (leaf.kind == ExprKind::Opaque) {
      Sources from;
      Readings open;
      add_definition(from, open, instruction);
      return from.block || sources(std::move(open)).block;
    }
    if (leaf.kind != ExprKind::Merged) return false;
    const uint32_t reg = values_.registers.find(instruction, leaf.name);
    return reg == VirtualRegisters::kNone || sources({{instruction, reg}}).block;
  }
  // True if the index, or a part of it that grows with it, is all that the expression takes from the block.
  [[nodiscard]] bool is_part(const Expr& e) const {
    using enum ExprKind;
    switch (e->kind) {
      case Opaque:
        return !is_of_block(*e) || is_load(static_cast<uint32_t>(e->value));
      case And:
        return std::ranges::any_of(e->operands, [](const Expr& o) { return o.as_constant().has_value(); }) &&
               std::ranges::all_of(e->operands, [&](const Expr& o) { return is_part(o); });
      case Or:
      case Xor:
        return false;
      case Minimum:
      case MinimumSigned:
      case Maximum:
      case MaximumSigned:
        if (std::ranges::count_if(e->operands, [&](const Expr& o) { return takes_index(o); }) > 1)
          return false;
        break;
      default:
        break;
    }
    return std::ranges::all_of(e->operands, [&](const Expr& o) { return is_part(o); }) &&
           std::ranges::all_of(e->terms, [&](const Term& term) {
             return std::ranges::all_of(term.factors, [&](const Expr& f) { return is_part(f); });
           });
  }
  [[nodiscard]] bool is_load(uint32_t instruction) const {
    return ptx::opcode_of(m_, at(instruction)).result == ptx::OpcodeResult::Memory;
  }

  // ---- the sources of registers ----

  static bool is_block_register(std::string_view operand) {
    return operand.starts_with("%ctaid") || operand.starts_with("%cluster");
  }

  using Readings = std::vector<std::pair<uint32_t, uint32_t>>;  // instructions and registers

  enum class Elections : uint8_t { Ignored, Found };
  [[nodiscard]] Sources sources(Readings open, Elections elections = Elections::Found) const {
    Sources out;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    while (!open.empty()) {
      const auto reading = open.back();
      open.pop_back();
      if (!seen.insert(reading).second) continue;
      const auto origins = values_.reaching.origins(reading.first, reading.second);
      out.input = out.input || origins.entry;
      const bool is_merged = origins.definitions.size() > 1;
      for (const uint32_t definition : origins.definitions) {
        add_definition(out, open, definition);
        if (elections == Elections::Found)
          out.elected = out.elected || elects(definition) || (is_merged && is_behind_election(definition));
      }
    }
    return out;
  }
  [[nodiscard]] Readings reads(uint32_t instruction) const {
    Readings out;
    for (const auto& access : values_.registers.accesses(instruction)) {
      if (access.read) out.emplace_back(instruction, access.reg);
    }
    return out;
  }

  void add_definition(Sources& out, Readings& open, uint32_t definition) const {
    const Statement& s = at(definition);
    for (const auto& operand : s.operands) {
      const std::string text = m_.compact(operand);
      out.block = out.block || is_block_register(text);
      out.thread = out.thread || text.starts_with("%tid") || text.starts_with("%lane");
    }
    const bool is_input = m_.is(s.head, "call") || ptx::opcode_of(m_, s).result == ptx::OpcodeResult::Memory;
    const bool is_told = may_read_shared(s) && shares_block();
    out.shared = out.shared || may_read_shared(s);
    out.block = out.block || is_told;
    out.ticket = out.ticket || draws_among_blocks(k_, values_, definition);
    add_call(out, open, definition);
    // A loaded value counts as input even if its address depends on the block's index.
    if (is_input) out.input = true;
    const bool is_choice = is_at_one_place(s, definition) || (may_read_shared(s) && shares_choice());
    out.by_block = out.by_block || (is_input && is_choice);
    out.data = out.data || (is_input && !is_told && !m_.has_modifier(s, ".param"));
    if (!is_input) std::ranges::copy(reads(definition), std::back_inserter(open));
  }

  // True for a load from a table in global memory, at the block's place.
  [[nodiscard]] bool is_at_one_place(const Statement& s, uint32_t instruction) const {
    return !m_.has_modifier(s, ".param") && !may_be_shared(s) &&
           loads_at_place_of_block(k_, values_, instruction);
  }

  [[nodiscard]] bool may_be_shared(const Statement& s) const {
    return std::ranges::none_of(std::array{".global", ".param", ".const"},
                                [&](const char* space) { return m_.has_modifier(s, space); });
  }
  [[nodiscard]] bool may_read_shared(const Statement& s) const {
    return m_.is(s.head, "ld") && may_be_shared(s);
  }
  [[nodiscard]] bool may_write_shared(const Statement& s) const {
    return (m_.is(s.head, "st") || m_.is(s.head, "atom") || m_.is(s.head, "red")) && may_be_shared(s);
  }

  // A called function gives input. But it may draw a number, ask for the block's index, or compute
  // with one that it is given. It may tell the threads of its block as well.
  void add_call(Sources& out, Readings& open, uint32_t result) const {
    const ptx::Statement* const scope = k_.flow.instructions()[result].scope;
    if (!m_.is(at(result).head, "ld") || !m_.has_modifier(at(result), ".param") ||
        k_.flow.enclosing(scope) == nullptr)
      return;
    const auto& instructions = k_.flow.instructions();
    for (uint32_t i = result; i-- > 0 && instructions[i].scope == scope;) {
      if (m_.is(at(i).head, "st")) std::ranges::copy(reads(i), std::back_inserter(open));
      const auto call = parse_call(m_, at(i), k_.data.names());
      if (!call) continue;
      out.ticket = out.ticket || may_draw(*call);
      out.block = out.block || may_ask(*call);
    }
  }
  [[nodiscard]] const Effects* effects_of(const Call& call) const {
    const ptx::Function* const callee = call.direct ? m_.find_function(call.callee) : nullptr;
    return callee != nullptr && k_.calls().contains(*callee) ? &k_.calls().closure(*callee) : nullptr;
  }
  [[nodiscard]] bool may_draw(const Call& call) const {
    const Effects* const effects = effects_of(call);
    return effects != nullptr && effects->has(EffectKind::Atomic);
  }
  [[nodiscard]] bool may_ask(const Call& call) const {
    const Effects* const effects = effects_of(call);
    if (effects == nullptr) return !call.direct;
    if (effects->has(EffectKind::IndirectCall)) return true;
    return std::ranges::any_of(effects->all(), [](const Effect& e) { return is_block_register(e.what); });
  }

  const FunctionFacts& k_;
  const Values& values_;
  const ptx::Module& m_;
  mutable std::optional<bool> shares_election_, shares_block_, shares_choice_;  // once they are known
  mutable bool is_bounded_below_ = false, is_bounded_above_ = false;            // the block's index, by input
  bool perhaps_one_ = false;
  mutable std::set<BlockLimit> limits_;
};

}  // namespace

std::optional<std::set<BlockLimit>> limits_of_launching_blocks(const FunctionFacts& parent,
                                                               const Site& site) {
  if (parent.flow.has_unknown_branch() || !parent.values().dominance.known()) return std::nullopt;
  const LaunchingBlocks blocks(parent, site);
  if (blocks.perhaps_one()) return std::nullopt;
  return blocks.limits();
}

}  // namespace klap::analysis
