#include "analysis/promotion/promotion_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/pure_code.h"
#include "analysis/promotion/promotion_arguments.h"
#include "analysis/values/substitution.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

enum class Relation { Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual };

std::optional<Relation> parse_relation(std::string_view modifier) {
  using enum Relation;
  if (modifier == ".lt" || modifier == ".lo") return Less;
  if (modifier == ".le" || modifier == ".ls") return LessEqual;
  if (modifier == ".gt" || modifier == ".hi") return Greater;
  if (modifier == ".ge" || modifier == ".hs") return GreaterEqual;
  if (modifier == ".eq") return Equal;
  if (modifier == ".ne") return NotEqual;
  return std::nullopt;
}

Relation opposite(Relation relation) {
  using enum Relation;
  switch (relation) {
    case Less:
      return GreaterEqual;
    case LessEqual:
      return Greater;
    case Greater:
      return LessEqual;
    case GreaterEqual:
      return Less;
    case Equal:
      return NotEqual;
    case NotEqual:
      return Equal;
  }
  return relation;
}

bool is_integer(std::string_view type) {
  return type == ".s16" || type == ".s32" || type == ".s64" || type == ".u16" || type == ".u32" ||
         type == ".u64" || type == ".b16" || type == ".b32" || type == ".b64";
}

// The relation of b and a that `a R b` states.
Relation swapped(Relation relation) {
  using enum Relation;
  if (relation == Less) return Greater;
  if (relation == Greater) return Less;
  if (relation == LessEqual) return GreaterEqual;
  return relation == GreaterEqual ? LessEqual : relation;
}

// A comparison of integers that must hold for the launch, `changing` on its left side.
struct Comparison {
  uint32_t setp = 0;
  Relation relation{};
  std::string changing, bound;  // operands
  uint32_t bits = 32;
  bool is_signed = false;
};

class ConditionFinder {
 public:
  ConditionFinder(const FunctionFacts& kernel, const Site& site, const std::vector<ChainArgument>& arguments)
      : k_(kernel), v_(kernel.values()), site_(site), arguments_(arguments), code_(kernel) {}

  ChainCondition run() {
    out_.text = find_tests();
    if (out_.text.empty()) out_.text = find_slices();
    if (!out_.text.empty()) return at_site();
    out_.kind = LinkCondition::Available;
    out_.text = count();
    if (!out_.text.empty()) {
      out_.counters.clear();
      return std::move(out_);
    }
    out_.kind = LinkCondition::Counted;
    out_.text = counters_text_.empty() ? "the tests are the same for all links" : counters_text_;
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] std::string place(uint32_t i) const { return k_.module.place(at(i).head); }

  ChainCondition at_site() {
    out_.tests.clear();
    out_.slice.clear();
    return std::move(out_);
  }

  // ---- the branches on the way ----

  // Empty, or why they are not known.
  std::string find_tests() {
    uint32_t block = k_.flow.instructions()[k_.flow.index_of(site_.get_call)].block;
    if (!v_.dominance.control_known()) return "which branches decide about the launch is not known";
    while (true) {
      if (k_.flow.in_cycle(block)) return "a loop decides about the launch";
      const auto controllers = v_.dominance.controllers(block);
      if (controllers.empty()) break;
      const uint32_t last = k_.flow.blocks()[controllers[0]].last - 1;
      if (controllers.size() > 1 || !add_test(controllers[0], block))
        return fmt::format("several ways lead to the launch, by {} ({}) among others",
                           k_.module.full_opcode(at(last)), place(last));
      block = controllers[0];
    }
    std::ranges::reverse(branches_);
    std::ranges::reverse(out_.tests);
    return "";
  }

  // The branch at the end of `from`, as `to` is reached by one of its ways.
  bool add_test(uint32_t from, uint32_t to) {
    const auto& blocks = k_.flow.blocks();
    const BasicBlock& block = blocks[from];
    if (!block.conditional || block.end == BlockEnd::IndexedBranch || block.last >= at_end()) return false;
    const uint32_t next = k_.flow.instructions()[block.last].block;
    const bool falls = v_.dominance.post_dominates(to, next);
    const bool jumps = std::ranges::any_of(
        block.successors, [&](uint32_t way) { return way != next && v_.dominance.post_dominates(to, way); });
    if (falls == jumps) return false;
    const Statement& s = at(block.last - 1);
    branches_.push_back(block.last - 1);
    out_.tests.push_back({std::string(k_.module.text(s.predicate)), falls != s.predicate_negated});
    return true;
  }
  [[nodiscard]] uint32_t at_end() const { return static_cast<uint32_t>(k_.flow.instructions().size()); }

  // ---- the tested values ----

  std::string find_slices() {
    std::vector<uint32_t> all;
    for (size_t i = 0; i < branches_.size(); ++i) {
      const auto slice = code_.slice(branches_[i], out_.tests[i].predicate);
      if (!slice)
        return fmt::format("what {} tests ({}) is more than parameters and constants",
                           k_.module.full_opcode(at(branches_[i])), place(branches_[i]));
      if (reads(*slice, LinkArgument::Postponed))
        return fmt::format("what {} tests ({}) needs an argument that is not known before the launch",
                           k_.module.full_opcode(at(branches_[i])), place(branches_[i]));
      all.insert(all.end(), slice->instructions.begin(), slice->instructions.end());
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const uint32_t i : all) out_.slice.push_back(&at(i));
    return "";
  }

  [[nodiscard]] bool reads(const PureSlice& slice, LinkArgument kind) const {
    return std::ranges::any_of(slice.reads,
                               [&](const ByteRange& bytes) { return touches(arguments_, bytes, kind); });
  }

  // True for a value that is the same for all links.
  [[nodiscard]] bool is_settled(uint32_t reader, std::string_view operand) const {
    const auto slice = code_.slice(reader, operand);
    return slice && !reads(*slice, LinkArgument::Stepped) && !reads(*slice, LinkArgument::Available);
  }

  // ---- counting ----

  // Empty, or why the condition is not counted.
  std::string count() {
    const auto available = std::ranges::find(arguments_, LinkArgument::Available, &ChainArgument::kind);
    if (available != arguments_.end())
      return fmt::format("the argument at offset {} is computed from link to link", available->offset);
    for (size_t i = 0; i < branches_.size(); ++i) {
      const std::string problem = predicate(branches_[i], out_.tests[i].predicate, !out_.tests[i].negated);
      if (!problem.empty()) return problem;
    }
    for (const Comparison& c : comparisons_) {
      const std::string problem = comparison(c);
      if (!problem.empty()) return problem;
    }
    return "";
  }

  // The predicate that `reader` reads must have that value.
  std::string predicate(uint32_t reader, std::string_view name, bool value) {
    if (is_settled(reader, name)) return "";
    const uint32_t definition = *v_.reaching.only_definition(reader, v_.registers.find(reader, name));
    const Statement& s = at(definition);
    const ptx::Module& m = k_.module;
    if (m.is(s.head, "not")) return predicate(definition, m.text(s.operands[1]), !value);
    if ((m.is(s.head, "and") && value) || (m.is(s.head, "or") && !value)) {
      const std::string problem = predicate(definition, m.text(s.operands[1]), value);
      return problem.empty() ? predicate(definition, m.text(s.operands[2]), value) : problem;
    }
    return m.is(s.head, "setp") ? compared(definition, value) : unclear(definition);
  }

  [[nodiscard]] std::string unclear(uint32_t i) const {
    return fmt::format("{} ({}) may hold again after it did not", k_.module.full_opcode(at(i)), place(i));
  }

  std::string compared(uint32_t setp, bool value) {
    const Statement& s = at(setp);
    const ptx::Module& m = k_.module;
    if (s.modifiers.size() != 2 || s.operands.size() != 3 || components(m, s.operands[0]).size() != 1 ||
        s.operands[0].size() != 1)
      return unclear(setp);
    const auto relation = parse_relation(m.text(s.modifiers.first));
    const std::string_view type = m.text(s.modifiers.last - 1);
    if (!relation || !is_integer(type)) return unclear(setp);
    Comparison c;
    c.setp = setp;
    c.relation = value ? *relation : opposite(*relation);
    c.changing = components(m, s.operands[1])[0];
    c.bound = components(m, s.operands[2])[0];
    c.bits = 8 * ptx::type_bytes(type);
    c.is_signed = type[1] == 's';
    if (!is_settled(setp, c.bound)) {
      std::swap(c.changing, c.bound);
      c.relation = swapped(c.relation);
    }
    if (!is_settled(setp, c.bound)) return unclear(setp);
    comparisons_.push_back(std::move(c));
    return "";
  }

  // How much the value that `setp` reads grows from link to link; nothing if that is not constant.
  [[nodiscard]] std::optional<uint64_t> growth(const Comparison& c) const {
    const Expr value = v_.symbolic.read(c.setp, c.changing, c.bits);
    if (!value.known()) return std::nullopt;
    const bool followed = !any_leaf(value, [&](const ExprNode& leaf) {
      if (leaf.kind == ExprKind::Opaque || leaf.kind == ExprKind::Merged ||
          leaf.kind == ExprKind::ParameterBlock)
        return true;
      if (leaf.kind != ExprKind::Parameter || stepped(leaf) != nullptr) return false;
      const ByteRange bytes{static_cast<uint32_t>(leaf.value), leaf.bits / 8};
      return touches(arguments_, bytes, LinkArgument::Stepped);
    });
    if (!followed) return std::nullopt;
    const Expr next = substitute(value, [&](const Expr& part) -> std::optional<Expr> {
      const ChainArgument* a = part->kind == ExprKind::Parameter ? stepped(*part) : nullptr;
      if (a == nullptr) return std::nullopt;
      return part + Expr::constant(a->step, part->bits);
    });
    return (next - value).as_constant();
  }

  // The argument that an expression reads as a whole, if a constant is added to it from link to link.
  [[nodiscard]] const ChainArgument* stepped(const ExprNode& parameter) const {
    const auto found = std::ranges::find_if(arguments_, [&](const ChainArgument& a) {
      return a.kind == LinkArgument::Stepped && !a.multiplies && a.offset == parameter.value &&
             8 * a.bytes == parameter.bits;
    });
    return found == arguments_.end() ? nullptr : &*found;
  }

  // promotion_condition.h explains this.
  std::string comparison(const Comparison& c) {
    const auto grown = growth(c);
    if (!grown) return unclear(c.setp);
    if (*grown == 0) return "";
    const uint64_t half = uint64_t{1} << (c.bits - 1);
    if (*grown == half) return unclear(c.setp);
    ChainCounter counter;
    counter.bits = c.bits;
    counter.falls = *grown > half;
    counter.step = counter.falls ? half - (*grown - half) : *grown;
    counter.is_signed = c.is_signed;
    counter.value = c.changing;
    using enum Relation;
    const bool strict = c.relation == (counter.falls ? Greater : Less);
    const bool inclusive = c.relation == (counter.falls ? GreaterEqual : LessEqual);
    describe(c, counter);
    if (c.relation == NotEqual && counter.step == 1) {
      until_equal(c, counter);
    } else if (!(strict || inclusive) || !stays_in_range(c, counter, inclusive)) {
      return unclear(c.setp);
    }
    out_.counters.push_back(std::move(counter));
    return "";
  }

  static void until_equal(const Comparison& c, ChainCounter& counter) {
    counter.value = counter.falls ? c.changing : c.bound;
    counter.minus = counter.falls ? c.bound : c.changing;
    if (counter.minus == "0") counter.minus.clear();
    counter.falls = true;
    counter.is_signed = false;
  }

  // True if the bound is so far from the end of the range that no step leads across both. A single comparison
  // with steps of one needs no such distance: promotion_condition.h tells why.
  [[nodiscard]] bool stays_in_range(const Comparison& c, const ChainCounter& counter, bool inclusive) const {
    const uint64_t room = counter.step - 1 + (inclusive ? 1 : 0);
    if (room == 0 || (counter.step == 1 && comparisons_.size() == 1)) return true;
    const Expr bound = v_.symbolic.read(c.setp, c.bound, c.bits);
    if (!bound.known()) return false;
    const uint64_t half = uint64_t{1} << (c.bits - 1);
    const Range& range = bound->range;
    // Distances from the end of the range, without a sum that could wrap around.
    if (!c.is_signed) return (counter.falls ? range.least : (half - 1 + half) - range.most) >= room;
    const auto most = static_cast<uint64_t>(range.signed_most);
    const auto least = static_cast<uint64_t>(range.signed_least);
    return (counter.falls ? least + half : half - 1 - most) >= room;
  }

  void describe(const Comparison& c, const ChainCounter& counter) {
    const Expr value = v_.symbolic.read(c.setp, c.changing, c.bits);
    const Expr bound = v_.symbolic.read(c.setp, c.bound, c.bits);
    counters_text_ +=
        fmt::format("{}{}, which goes {} by {}, is compared with {}", counters_text_.empty() ? "" : "; ",
                    to_string(value), counter.falls ? "down" : "up", counter.step,
                    bound.known() ? to_string(bound) : c.bound);
  }

  const FunctionFacts& k_;
  const Values& v_;
  const Site& site_;
  const std::vector<ChainArgument>& arguments_;
  const PureCode code_;
  ChainCondition out_;
  std::vector<uint32_t> branches_;  // beside out_.tests
  std::vector<Comparison> comparisons_;
  std::string counters_text_;
};

}  // namespace

ChainCondition find_condition(const FunctionFacts& kernel, const Site& site,
                              const std::vector<ChainArgument>& arguments) {
  return ConditionFinder(kernel, site, arguments).run();
}

}  // namespace klap::analysis
