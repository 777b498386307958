#include "analysis/optimise/unrolled_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/graph/operands.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

constexpr uint64_t kMostCopies = 64;

// ---- one iteration, several times over ----

// Walks through an iteration of the one loop and through the copies in the other one side by side.
class Copies {
 public:
  Copies(const Values& v, const IterationLoop& single, const IterationLoop& main, const WrittenOut& sums)
      : v_(v), m_(v.flow.module()), single_(single), main_(main), sums_(sums) {}

  bool run() {
    std::vector<Place> places = {{first_of(single_), first_of(main_), 0}};
    while (!places.empty()) {
      const Place place = places.back();
      places.pop_back();
      if (seen_.insert({place.one, place.other, place.copy}).second && !step(place, places)) return false;
    }
    return true;
  }

 private:
  // An instruction's counterpart, and the copy that it belongs to.
  struct Place {
    uint32_t one = 0, other = 0, copy = 0;
  };

  [[nodiscard]] const Statement& at(uint32_t i) const { return *v_.flow.instructions()[i].statement; }
  [[nodiscard]] const BasicBlock& block_of(uint32_t i) const {
    return v_.flow.blocks()[v_.flow.instructions()[i].block];
  }
  [[nodiscard]] uint32_t first_of(const IterationLoop& loop) const {
    return v_.flow.blocks()[loop.loop().header()].first;
  }
  [[nodiscard]] bool ends_block(uint32_t i) const { return i + 1 == block_of(i).last; }
  [[nodiscard]] uint32_t first_of_successor(uint32_t i, size_t which) const {
    return v_.flow.blocks()[block_of(i).successors[which]].first;
  }

  // The next instruction that does more than compute exactly, from `i` on, or the end of the turn.
  [[nodiscard]] uint32_t next(const IterationLoop& loop, uint32_t i) const {
    while (i != loop.branch()) {
      const bool jumps = m_.is(at(i).head, "bra") && !at(i).predicated;
      const bool is_done = v_.symbolic.is_evaluated(i) && !step_of(i);
      if (!jumps && i != loop.condition() && !is_done) return i;
      i = ends_block(i) ? first_of_successor(i, 0) : i + 1;
    }
    return i;
  }

  // The number of the sum that an instruction adds to, and of the step that it is.
  struct StepOf {
    size_t sum = 0, step = 0, operand = 0;
  };
  [[nodiscard]] std::optional<StepOf> step_of(uint32_t i) const {
    for (const auto* sums : {&sums_.of_single, &sums_.of_main}) {
      for (size_t sum = 0; sum < sums->size(); ++sum) {
        const auto& steps = (*sums)[sum].steps;
        const auto found = std::ranges::find(steps, i, &Accumulator::Step::instruction);
        if (found != steps.end())
          return StepOf{sum, static_cast<size_t>(found - steps.begin()), found->operand};
      }
    }
    return std::nullopt;
  }

  // True if both add to the same sum, in the same step of that copy; true for two that add to none.
  [[nodiscard]] bool add_alike(uint32_t one, uint32_t other, uint32_t copy) const {
    const auto a = step_of(one), b = step_of(other);
    if (!a || !b) return !a && !b;
    return a->sum == b->sum && a->operand == b->operand &&
           b->step == copy * sums_.of_single[a->sum].steps.size() + a->step;
  }

  bool step(Place place, std::vector<Place>& places) {
    uint32_t one = next(single_, place.one);
    const uint32_t other = next(main_, place.other);
    if (one == single_.branch()) {
      if (++place.copy == main_.iterations()) return other == main_.branch();
      one = next(single_, first_of(single_));
      if (one == single_.branch()) return false;  // an iteration that does nothing
    }
    if (other == main_.branch() || !are_alike(one, other, place.copy)) return false;
    const auto [known, is_new] = copy_of_.try_emplace(other, one, place.copy);
    if (!is_new && known->second != std::pair(one, place.copy)) return false;
    if (m_.is(at(one).head, "bra")) return branch(one, other, place.copy, places);
    places.push_back({behind(one), behind(other), place.copy});
    return true;
  }

  [[nodiscard]] uint32_t behind(uint32_t i) const { return ends_block(i) ? first_of_successor(i, 0) : i + 1; }

  bool branch(uint32_t one, uint32_t other, uint32_t copy, std::vector<Place>& places) const {
    if (block_of(one).successors.size() != 2 || block_of(other).successors.size() != 2) return false;
    for (const size_t which : {0U, 1U})
      places.push_back({first_of_successor(one, which), first_of_successor(other, which), copy});
    return true;
  }

  [[nodiscard]] bool are_alike(uint32_t one, uint32_t other, uint32_t copy) const {
    const Statement& a = at(one);
    const Statement& b = at(other);
    if (m_.full_opcode(a) != m_.full_opcode(b) || a.operands.size() != b.operands.size()) return false;
    if (!add_alike(one, other, copy)) return false;
    if (a.predicated != b.predicated || a.predicate_negated != b.predicate_negated) return false;
    if (a.predicated &&
        !are_same(one, std::string(m_.text(a.predicate)), other, std::string(m_.text(b.predicate)), copy))
      return false;
    if (m_.is(a.head, "bra")) return true;
    for (size_t k = 0; k < a.operands.size(); ++k) {
      if (!are_alike(one, other, k, copy)) return false;
    }
    return true;
  }

  [[nodiscard]] bool are_alike(uint32_t one, uint32_t other, size_t operand, uint32_t copy) const {
    if (const auto sum = step_of(one); sum && sum->operand == operand) return true;
    const ptx::TokenRange a = at(one).operands[operand], b = at(other).operands[operand];
    const OperandUse use = operand_use(m_, at(one), operand);
    if (use != operand_use(m_, at(other), operand)) return false;
    if (m_.is(a.first, "[")) {
      return m_.is(b.first, "[") &&
             are_equal(v_.symbolic.address(one, a), v_.symbolic.address(other, b), copy);
    }
    const std::vector<std::string> of_one = components(m_, a), of_other = components(m_, b);
    if (of_one.size() != of_other.size()) return false;
    if (use == OperandUse::Written) return true;
    if (use != OperandUse::Read) return false;
    for (size_t k = 0; k < of_one.size(); ++k) {
      if (!are_same(one, of_one[k], other, of_other[k], copy)) return false;
    }
    return true;
  }

  // One word of an operand: a register with the same value, or the same literal.
  [[nodiscard]] bool are_same(uint32_t one, const std::string& a, uint32_t other, const std::string& b,
                              uint32_t copy) const {
    const uint32_t reg_a = v_.registers.find(one, a), reg_b = v_.registers.find(other, b);
    if (reg_a == VirtualRegisters::kNone || reg_b == VirtualRegisters::kNone)
      return reg_a == reg_b && a == b && !a.starts_with('%');
    const bool are_predicates = v_.registers[reg_a].is_predicate() && v_.registers[reg_b].is_predicate();
    if (!are_predicates) return are_equal(v_.symbolic.read(one, reg_a), v_.symbolic.read(other, reg_b), copy);
    const auto from_a = v_.reaching.only_definition(one, reg_a);
    const auto from_b = v_.reaching.only_definition(other, reg_b);
    if (!from_a || !from_b || place_in(*from_a, a) != place_in(*from_b, b)) return false;
    if (!single_.contains(*from_a)) return *from_a == *from_b;
    const auto known = copy_of_.find(*from_b);
    return known != copy_of_.end() && known->second == std::pair(*from_a, copy);
  }

  // The index of the result that the instruction writes to that register.
  [[nodiscard]] size_t place_in(uint32_t i, std::string_view name) const {
    size_t place = 0;
    const ptx::TokenRange results = at(i).operands[0];
    for (uint32_t t = results.first; t < results.last && !m_.is(t, name); ++t) ++place;
    return place;
  }

  [[nodiscard]] bool are_equal(const Expr& one, const Expr& other, uint32_t copy) const {
    return in_copy(single_.value(one), copy) == in_main(main_.value(other), copy);
  }

  // A result of the iteration's instruction `i`.
  [[nodiscard]] Expr result(uint32_t i, const std::string& place, uint32_t bits) const {
    const uint64_t most = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    return Expr::symbol(fmt::format("result {} of {}", place, i), bits, most);
  }

  // The expression for the iteration that is `copy` steps on.
  [[nodiscard]] Expr in_copy(const Expr& e, uint32_t copy) const {
    if (!is_plain(e)) return {};
    return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
      if (is_iteration(*part))
        return part + Expr::constant(copy, part->bits) * count_in_iteration(part->bits);
      const auto i = result_of(*part);
      if (!i || !single_.contains(*i)) return std::nullopt;
      return result(*i, std::to_string(place_in(*i, part->name)), part->bits);
    });
  }

  [[nodiscard]] Expr in_main(const Expr& e, uint32_t copy) const {
    if (!is_plain(e)) return {};
    bool known = true;
    const Expr out = substitute(e, [&](const Expr& part) -> std::optional<Expr> {
      const auto i = result_of(*part);
      if (!i || !main_.contains(*i)) return std::nullopt;
      const auto made = copy_of_.find(*i);
      if (made == copy_of_.end() || made->second.second != copy) {
        known = false;
        return part;
      }
      return result(made->second.first, std::to_string(place_in(*i, part->name)), part->bits);
    });
    return known ? out : Expr();
  }

  static std::optional<uint32_t> result_of(const ExprNode& n) {
    const bool is_result =
        n.kind == ExprKind::Opaque && !is_iteration(n) && !is_index(n) && !is_count(n) && !is_base(n);
    return is_result ? std::optional(static_cast<uint32_t>(n.value)) : std::nullopt;
  }
  static bool is_plain(const Expr& e) {
    return e.known() && !any_leaf(e, [](const ExprNode& n) {
             return n.kind == ExprKind::Merged || is_index(n) || is_position(n);
           });
  }

  const Values& v_;
  const ptx::Module& m_;
  const IterationLoop& single_;
  const IterationLoop& main_;
  const WrittenOut& sums_;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> copy_of_;  // instruction of main -> of single, which copy
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> seen_;
};

// ---- how many iterations go which way ----

class Control {
 public:
  Control(const Values& v, const LinearIndex& form, const Guard& guard, const BehindLoops& behind)
      : v_(v), m_(v.flow.module()), form_(form), guard_(guard), behind_(behind) {}

  std::optional<WrittenOut> run(uint32_t block) {
    const Expr index = LinearIndex::index(32);
    const bool is_plain = guard_.index == index || guard_.index == LinearIndex::base() + index;
    if (v_.loops.all().size() < 2 || guard_.inclusive || !is_plain) return std::nullopt;
    if (!behind_.block && v_.loops.all().size() != 2) return std::nullopt;
    const auto first = choice(block);
    if (!first) return std::nullopt;
    const auto second = choice(ways(*first).second);
    if (!second) return std::nullopt;
    auto found = rest_first(*first, *second);
    return found ? std::move(found) : rest_last(*first, *second);
  }

 private:
  // A conditional branch, its condition for going to the first successor as `left compare right`.
  struct Choice {
    uint32_t block = 0, comparison = 0;
    std::string compare, type;
    Expr left, right;
    bool when = false;  // the comparison's result for the first successor
  };

  [[nodiscard]] const BasicBlock& block(uint32_t b) const { return v_.flow.blocks()[b]; }

  // The rest first: the first choice leads around the single iterations, the second one around the others.
  [[nodiscard]] std::optional<WrittenOut> rest_first(const Choice& around, const Choice& last) const {
    const auto copies = copies_by(around);
    if (!copies || !is_few(last, *copies)) return std::nullopt;
    const Loop* const single = loop_at(ways(around).first);
    const Loop* const main = loop_at(ways(last).first);
    if (!are_in_turn(single, main, around, last)) return std::nullopt;
    WrittenOut out;
    out.single = std::make_unique<IterationLoop>(v_, form_, *single);
    out.main = std::make_unique<IterationLoop>(v_, form_, *main, *copies, out.single.get());
    find_sums(out);
    const bool counts = is_counted_down(*out.single, out.of_single, 1, left_over(*copies)) &&
                        out.main->handed_on().size() == out.of_main.size() && out.main->ends_by(guard_);
    return counts ? with_copies(std::move(out), around, last) : std::nullopt;
  }

  // The rest last: the first choice leads around the loop of several iterations.
  [[nodiscard]] std::optional<WrittenOut> rest_last(const Choice& around, const Choice& last) const {
    const auto copies = copies_by(last);
    if (!copies || !is_few(around, *copies)) return std::nullopt;
    const Loop* const main = loop_at(ways(around).first);
    const Loop* const single = loop_at(ways(last).first);
    if (!are_in_turn(main, single, around, last)) return std::nullopt;
    WrittenOut out;
    out.main = std::make_unique<IterationLoop>(v_, form_, *main, *copies);
    out.single = std::make_unique<IterationLoop>(v_, form_, *single, 1, out.main.get());
    find_sums(out);
    const Expr all = more_iterations() + Expr::constant(1, 32), rest = left_over(*copies);
    const bool counts = is_counted_down(*out.main, out.of_main, *copies, all - rest) &&
                        is_counted_down(*out.single, out.of_single, 1, rest);
    return counts ? with_copies(std::move(out), around, last) : std::nullopt;
  }

  // True if the first choice leads to one loop or around it, and the second choice behind it to the other
  // one.
  [[nodiscard]] bool are_in_turn(const Loop* one, const Loop* other, const Choice& first,
                                 const Choice& second) const {
    return one != nullptr && other != nullptr && one != other &&
           passes(one->exits[0].to) == passes(ways(first).second) && is_behind(ways(second).second) &&
           is_behind(other->exits[0].to);
  }

  [[nodiscard]] std::optional<WrittenOut> with_copies(WrittenOut out, const Choice& first,
                                                      const Choice& second) const {
    if (!Copies(v_, *out.single, *out.main, out).run()) return std::nullopt;
    out.conditions = {first.comparison, second.comparison};
    return out;
  }

  // True if threads that come to the block do nothing more in the loops.
  [[nodiscard]] bool is_behind(uint32_t b) const {
    if (!behind_.block) return ends_at_once(v_.flow, b);
    for (size_t steps = 0; steps < v_.flow.blocks().size() && b != *behind_.block; ++steps) {
      if (block(b).successors.size() != 1 || block(b).exits_function || v_.loops.depth(b) != 0) return false;
      b = block(b).successors[0];
    }
    return b == *behind_.block;
  }

  static bool has_sum(const std::vector<Accumulator>& sums, uint32_t reg) {
    return std::ranges::find(sums, reg, &Accumulator::reg) != sums.end();
  }

  // The sums that both loops hand on. A register that only one of them adds to is none.
  void find_sums(WrittenOut& out) const {
    if (!behind_.block) return;
    for (const IterationLoop::HandedOn& handed_on : out.main->handed_on()) {
      auto single = find_accumulator(v_, out.single->loop(), handed_on.reg);
      auto main = find_accumulator(v_, out.main->loop(), handed_on.reg);
      if (!single || !main || single->operation != main->operation) continue;
      out.of_single.push_back(*std::move(single));
      out.of_main.push_back(*std::move(main));
    }
  }

  // The block that threads come to from there without a choice: one that has a choice, or a loop's header.
  [[nodiscard]] uint32_t passes(uint32_t b) const {
    for (size_t steps = 0; steps < v_.flow.blocks().size(); ++steps) {
      const bool goes_on =
          block(b).successors.size() == 1 && !block(b).exits_function && v_.loops.depth(b) == 0;
      if (!goes_on) return b;
      b = block(b).successors[0];
    }
    return b;
  }

  [[nodiscard]] std::optional<Choice> choice(uint32_t from) const {
    const uint32_t b = passes(from);
    if (block(b).successors.size() != 2 || v_.loops.depth(b) != 0) return std::nullopt;
    const uint32_t branch = block(b).last - 1;
    const Statement& s = *v_.flow.instructions()[branch].statement;
    if (block(b).end != BlockEnd::Branch || !s.predicated) return std::nullopt;
    auto out = comparison(branch);
    if (out) {
      out->block = b;
      out->when = !s.predicate_negated;
    }
    return out;
  }

  [[nodiscard]] std::optional<Choice> comparison(uint32_t branch) const {
    const Statement& s = *v_.flow.instructions()[branch].statement;
    const uint32_t predicate = v_.registers.find(branch, m_.text(s.predicate));
    if (predicate == VirtualRegisters::kNone) return std::nullopt;
    const auto writer = v_.reaching.only_definition(branch, predicate);
    if (!writer) return std::nullopt;
    const Statement& setp = *v_.flow.instructions()[*writer].statement;
    const bool plain = m_.is(setp.head, "setp") && !setp.predicated && setp.operands.size() == 3 &&
                       setp.operands[0].size() == 1 && setp.modifiers.size() == 2;
    if (!plain) return std::nullopt;
    for (const Access& access : v_.registers.accesses(*writer)) {
      if (access.written && v_.reaching.uses(*writer, access.reg) != std::vector{branch}) return std::nullopt;
    }
    Choice out;
    out.comparison = *writer;
    out.compare = m_.text(setp.modifiers.first);
    out.type = m_.text(setp.modifiers.last - 1);
    const uint32_t bits = 8 * ptx::type_bytes(out.type);
    const auto read = [&](size_t k) {
      return v_.symbolic.read(*writer, components(m_, setp.operands[k])[0], bits);
    };
    out.left = form_.apply(read(1));
    out.right = form_.apply(read(2));
    return bits == 32 ? std::optional(out) : std::nullopt;
  }

  // The targets of threads for which the comparison does not hold, and of those for which it does.
  [[nodiscard]] std::pair<uint32_t, uint32_t> ways(const Choice& choice) const {
    const auto& successors = block(choice.block).successors;
    const uint32_t holds = choice.when ? successors[0] : successors[1];
    return {choice.when ? successors[1] : successors[0], holds};
  }

  [[nodiscard]] const Loop* loop_at(uint32_t from) const {
    const uint32_t header = passes(from);
    for (const Loop& loop : v_.loops.all()) {
      const bool is_simple = loop.is_natural() && loop.depth == 1 && loop.latches.size() == 1 &&
                             loop.exits.size() == 1 && loop.exits[0].from == loop.latches[0] &&
                             loop.exits[0].to < v_.flow.blocks().size();
      if (is_simple && loop.header() == header) return &loop;
    }
    return nullptr;
  }

  // (bound - 1 - index) / n: the iterations, less one, of a thread that has any.
  [[nodiscard]] Expr more_iterations() const {
    const Expr one = Expr::constant(1, 32);
    return divide(guard_.bound - guard_.index - one, LinearIndex::count(32), Sign::Unsigned);
  }
  [[nodiscard]] Expr left_over(uint32_t copies) const {
    return bit_and(more_iterations() + Expr::constant(1, 32), Expr::constant(copies - 1, 32));
  }

  // The number of iterations at a time in the main loop, if the choice leads around the single iterations
  // when there are none.
  [[nodiscard]] std::optional<uint32_t> copies_by(const Choice& around) const {
    if (around.compare != ".eq" || around.right.as_constant() != 0U) return std::nullopt;
    for (uint32_t copies = 2; copies <= kMostCopies; copies *= 2) {
      if (around.left == left_over(copies)) return copies;
    }
    return std::nullopt;
  }

  // The choice that ends threads with fewer iterations than the main loop runs at a time.
  [[nodiscard]] bool is_few(const Choice& last, uint32_t copies) const {
    return last.compare == ".lt" && last.type == ".u32" && last.left == more_iterations() &&
           last.right.as_constant() == copies - 1;
  }

  // True if one register, which is no sum, counts the iterations down to 0, so many in a turn.
  [[nodiscard]] bool is_counted_down(const IterationLoop& loop, const std::vector<Accumulator>& sums,
                                     uint32_t step, const Expr& begin) const {
    std::vector<IterationLoop::HandedOn> others;
    for (const IterationLoop::HandedOn& handed_on : loop.handed_on()) {
      if (!has_sum(sums, handed_on.reg)) others.push_back(handed_on);
    }
    if (others.size() != 1) return false;
    const auto [reg, writer] = others[0];
    const auto end = comparison(loop.branch());
    const auto when = loop.stays_when();
    if (!end || !when || !(end->compare == ".ne" && *when) || end->right.as_constant() != 0U) return false;
    const Expr next = v_.symbolic.written(writer, reg);
    if (!next.known() || !(end->left == next) ||
        !v_.dominance.dominates(v_.flow.instructions()[writer].block, loop.loop().latches[0]))
      return false;
    const Expr before = next + Expr::constant(step, 32);
    if (before->kind != ExprKind::Merged) return false;
    const auto reader = static_cast<uint32_t>(before->value);
    if (v_.registers.find(reader, before->name) != reg || reader != writer) return false;
    return is_read_by(loop, reg, {writer, loop.condition().value_or(writer)}) &&
           begins_with(reader, reg, writer, begin);
  }

  // True if only these instructions of the loop read the register.
  [[nodiscard]] bool is_read_by(const IterationLoop& loop, uint32_t reg,
                                const std::set<uint32_t>& readers) const {
    for (uint32_t i = 0; i < v_.flow.instructions().size(); ++i) {
      if (!loop.contains(i) || readers.contains(i)) continue;
      for (const Access& access : v_.registers.accesses(i)) {
        if (access.reg == reg && access.read) return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool begins_with(uint32_t reader, uint32_t reg, uint32_t writer, const Expr& value) const {
    const ReachingDefinitions::Origins origins = v_.reaching.origins(reader, reg);
    if (origins.entry || origins.definitions.size() != 2) return false;
    for (const uint32_t definition : origins.definitions) {
      const auto accesses = v_.registers.accesses(definition);
      const bool always =
          std::ranges::any_of(accesses, [&](const Access& a) { return a.reg == reg && a.kills; });
      if (!always) return false;
      if (definition == writer) continue;
      if (!(form_.apply(v_.symbolic.written(definition, reg)) == value)) return false;
    }
    return true;
  }

  const Values& v_;
  const ptx::Module& m_;
  const LinearIndex& form_;
  const Guard& guard_;
  const BehindLoops behind_;
};

}  // namespace

std::optional<WrittenOut> find_unrolled_loop(const Values& child, const LinearIndex& form, const Guard& guard,
                                             uint32_t block, const BehindLoops& behind) {
  return Control(child, form, guard, behind).run(block);
}

}  // namespace klap::analysis
