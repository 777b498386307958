#include "analysis/executed/earlier_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/effects/waiting.h"
#include "analysis/expressions/expression_ranges.h"
#include "analysis/values/guard.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Statement;

// A sum of coefficient * product of symbols + constant, over the integers.
struct Linear {
  struct Part {
    int64_t coefficient = 0;
    std::vector<Expr> factors;  // at least one
  };
  std::vector<Part> parts;
  int64_t constant = 0;

  void add(int64_t coefficient, std::vector<Expr> factors) {
    const auto same = [&](const Part& part) { return compare_terms({1, part.factors}, {1, factors}) == 0; };
    const auto at = std::ranges::find_if(parts, same);
    if (at == parts.end()) {
      parts.push_back({coefficient, std::move(factors)});
    } else if ((at->coefficient += coefficient) == 0) {
      parts.erase(at);
    }
  }
  void add(const Linear& other, int64_t times) {
    for (const Part& part : other.parts) add(part.coefficient * times, part.factors);
    constant += other.constant * times;
  }
};

bool is_extension(const ExprNode& n) {
  return n.kind == ExprKind::ZeroExtend || n.kind == ExprKind::SignExtend || n.kind == ExprKind::ToGeneric ||
         n.kind == ExprKind::FromGeneric;
}

// The expression as if nothing wrapped around.
Linear linear(const Expr& e) {
  Linear out;
  if (!e.known()) return out;
  if (is_extension(*e)) return linear(e->operands[0]);
  for (const Term& term : terms_of(e)) {
    const int64_t coefficient = as_signed(term.coefficient, e->bits);
    if (term.factors.empty()) {
      out.constant += coefficient;
    } else if (term.factors.size() == 1 && is_extension(*term.factors[0])) {
      out.add(linear(term.factors[0]), coefficient);
    } else {
      out.add(coefficient, term.factors);
    }
  }
  return out;
}

bool is_special(const Expr& e, std::string_view name) {
  return e->kind == ExprKind::Special && e->name == name;
}
bool is_product(const std::vector<Expr>& factors, std::string_view a, std::string_view b) {
  return factors.size() == 2 && ((is_special(factors[0], a) && is_special(factors[1], b)) ||
                                 (is_special(factors[0], b) && is_special(factors[1], a)));
}

// True for what all threads of a grid have alike.
bool is_uniform(const ExprNode& n) {
  return n.kind == ExprKind::Constant || n.kind == ExprKind::Parameter || n.kind == ExprKind::Address ||
         (n.kind == ExprKind::Special && (n.name.starts_with("ntid.") || n.name.starts_with("nctaid.")));
}

// The number that orders the blocks.
enum class Turn { None, Block, BlockOfRows, BlockOfColumns, Ticket };

// An address as linear form, split by what its parts say.
struct Place {
  std::optional<uint32_t> pointer;  // the parameter that is the pointer
  Turn turn = Turn::None;
  int64_t coefficient = 0;  // of the turn
  Linear uniform;           // the same for all threads
  Linear rest;              // differs by thread, or in a loop
};

class Earlier {
 public:
  explicit Earlier(const FunctionFacts& kernel)
      : k_(kernel),
        m_(kernel.module),
        v_(kernel.values()),
        waiting_(m_, k_.flow, k_.data, WaitsFor::OtherBlocks) {}

  EarlierBlocks run() {
    if (!find_polls()) return {};
    const std::string why_not = problem();
    EarlierBlocks out{why_not.empty(), BlockOrder::Any, why_not};
    if (turn_ == Turn::BlockOfRows) out.order = BlockOrder::Rows;
    if (turn_ == Turn::Block || turn_ == Turn::BlockOfColumns) out.order = BlockOrder::Columns;
    return out;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] std::string text(uint32_t i) const {
    return fmt::format("{} ({})", m_.full_opcode(at(i)), m_.place(at(i).head));
  }

  // ---- instructions ----

  // Finds the loads by which loops wait; false if one waits by something else. A fence or a pause in a loop
  // waits for nothing by itself.
  bool find_polls() {
    if (k_.flow.has_unknown_branch() || !v_.reaching.known()) return false;
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      if (!k_.flow.in_loop(i) || !waiting_.watches(i)) continue;
      const std::string_view opcode = m_.text(at(i).head);
      if (opcode == "membar" || opcode == "fence" || opcode == "nanosleep") continue;
      if (opcode != "ld" || !is_strong_load(m_, at(i))) return false;
      polls_.push_back(i);
    }
    return true;
  }

  // The instructions that may satisfy a poll of another thread.
  std::string find_writes() {
    for (const Function* f : k_.calls().functions()) {
      using enum EffectKind;
      const Effects& own = k_.calls().own(*f);
      if (f != &k_.function && (own.has(StrongStore) || own.has(Atomic) || own.has(Reduction)))
        return fmt::format("{}, called by it, writes for others", f->name);
    }
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const std::string_view space = memory_space(m_, at(i));
      if (space == ".shared" || space == ".local" || space == ".param") continue;
      const auto effects = instruction_effects(m_, at(i));
      if (std::ranges::any_of(effects, [](EffectKind kind) {
            return kind == EffectKind::StrongStore || kind == EffectKind::Atomic ||
                   kind == EffectKind::Reduction;
          }))
        writes_.push_back(i);
    }
    return {};
  }

  [[nodiscard]] ptx::TokenRange address_operand(uint32_t i) const {
    const bool has_result = m_.is(at(i).head, "ld") || m_.is(at(i).head, "atom");
    return at(i).operands[has_result ? 1 : 0];
  }

  [[nodiscard]] int64_t width(uint32_t load) const {
    int64_t bytes = 0, count = 1;
    for (uint32_t t = at(load).modifiers.first; t < at(load).modifiers.last; ++t) {
      if (const uint32_t size = ptx::type_bytes(m_.text(t))) bytes = size;
      if (m_.is(t, ".v2")) count = 2;
      if (m_.is(t, ".v4")) count = 4;
      if (m_.is(t, ".v8")) count = 8;
    }
    return bytes * count;
  }

  // ---- addresses ----

  [[nodiscard]] Linear address(uint32_t i) const {
    return linear(v_.symbolic.address(i, address_operand(i)));
  }

  // Splits a form; nothing if it has no single pointer, or two turns.
  [[nodiscard]] std::optional<Place> place(const Linear& form) {
    Place out;
    out.uniform.constant = form.constant;
    int64_t x = 0, y = 0, rows = 0, columns = 0, ticket = 0;
    for (const Linear::Part& part : form.parts) {
      const Expr& first = part.factors[0];
      const bool is_one = part.factors.size() == 1;
      if (is_one && first->kind == ExprKind::Parameter && first->bits == 64) {
        if (out.pointer || part.coefficient != 1) return std::nullopt;
        out.pointer = static_cast<uint32_t>(first->value);
      } else if (is_one && is_special(first, "ctaid.x")) {
        x = part.coefficient;
      } else if (is_one && is_special(first, "ctaid.y")) {
        y = part.coefficient;
      } else if (is_product(part.factors, "ctaid.y", "nctaid.x")) {
        rows = part.coefficient;
      } else if (is_product(part.factors, "ctaid.x", "nctaid.y")) {
        columns = part.coefficient;
      } else if (is_one && is_ticket(first)) {
        if (ticket != 0) return std::nullopt;
        ticket = part.coefficient;
      } else if (std::ranges::all_of(part.factors, [](const Expr& e) { return is_uniform(*e); })) {
        out.uniform.add(part.coefficient, part.factors);
      } else {
        out.rest.add(part.coefficient, part.factors);
      }
    }
    if (!out.pointer) return std::nullopt;
    const auto is = [&](Turn turn, int64_t coefficient) {
      out.turn = turn;
      out.coefficient = coefficient;
      return std::optional(out);
    };
    if (x == 0 && y == 0 && rows == 0 && columns == 0)
      return is(ticket == 0 ? Turn::None : Turn::Ticket, ticket);
    if (ticket != 0) return std::nullopt;
    if (y == 0 && rows == 0 && columns == 0) return is(Turn::Block, x);
    if (x == rows && y == 0 && columns == 0) return is(Turn::BlockOfRows, x);
    if (y == columns && x == 0 && rows == 0) return is(Turn::BlockOfColumns, y);
    return std::nullopt;
  }

  // ---- tickets ----

  // A counter's value that the block has taken: the result of adding 1, or what the block's threads read
  // behind a barrier where one of them has put it.
  [[nodiscard]] bool is_ticket(const Expr& e) {
    if (e->kind != ExprKind::Opaque) return false;
    const auto i = static_cast<uint32_t>(e->value);
    if (is_count(i)) return true;
    return m_.is(at(i).head, "ld") && memory_space(m_, at(i)) == ".shared" && reads_ticket(i);
  }

  [[nodiscard]] bool is_count(uint32_t i) const {
    return m_.is(at(i).head, "atom") && m_.has_modifier(at(i), ".add") && m_.has_modifier(at(i), ".u32") &&
           memory_space(m_, at(i)) == ".global" && at(i).operands.size() == 3 &&
           v_.symbolic.read(i, m_.compact(at(i).operands[2]), 32).as_constant() == 1u;
  }

  // True if the only write to shared memory that may come before the load puts a ticket there.
  [[nodiscard]] bool reads_ticket(uint32_t load) const {
    if (k_.flow.in_loop(load)) return false;
    std::optional<uint32_t> store;
    bool meets = false;
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      if (i == load || !k_.flow.can_follow(i, load)) continue;
      const std::string_view opcode = m_.text(at(i).head);
      const std::string_view space = memory_space(m_, at(i));
      if (opcode == "call" || opcode == "cp" || (opcode == "red" && space != ".global")) return false;
      if (opcode == "bar" || opcode == "barrier") meets = meets || !m_.has_modifier(at(i), ".warp");
      if ((opcode != "st" && opcode != "atom") || space == ".global" || space == ".local" ||
          space == ".param")
        continue;
      if (store || opcode != "st" || space != ".shared") return false;
      store = i;
    }
    if (!store || !meets || at(*store).operands.size() != 2) return false;
    const Expr to = v_.symbolic.address(*store, at(*store).operands[0]);
    const Expr from = v_.symbolic.address(load, at(load).operands[1]);
    const Expr value = v_.symbolic.read(*store, m_.compact(at(*store).operands[1]), 32);
    return to == from && value.known() && value->kind == ExprKind::Opaque &&
           is_count(static_cast<uint32_t>(value->value)) && k_.flow.can_follow(*store, load);
  }

  // ---- bounds ----

  // The most, or the least, that a thread at instruction `i` can have in a form that differs by thread.
  [[nodiscard]] std::optional<int64_t> bound(const Linear& form, uint32_t i, bool most) const {
    int64_t sum = form.constant;
    for (const Linear::Part& part : form.parts) {
      if (part.factors.size() != 1 || part.factors[0]->range.signed_least < INT32_MIN ||
          part.factors[0]->range.signed_most > INT32_MAX)
        return std::nullopt;
      const Expr& symbol = part.factors[0];
      // Nothing is known of what memory or a loop gives.
      if (symbol->kind == ExprKind::Opaque || symbol->kind == ExprKind::Merged) return std::nullopt;
      const bool takes_most = (part.coefficient > 0) == most;
      int64_t value = takes_most ? symbol->range.signed_most : symbol->range.signed_least;
      if (takes_most) value = std::min(value, guarded_most(symbol, i));
      sum += part.coefficient * value;
    }
    return sum;
  }

  // The most that a symbol can be where a thread has passed comparisons of it with constants.
  [[nodiscard]] int64_t guarded_most(const Expr& symbol, uint32_t i) const {
    int64_t most = symbol->range.signed_most;
    for (const auto& [compare, a, b] : comparisons(i)) {
      const auto limit = b.as_constant();
      if (!(a == symbol) || !limit || *limit > INT32_MAX) continue;
      if (compare == ".lt" || compare == ".lo") most = std::min(most, static_cast<int64_t>(*limit) - 1);
      if (compare == ".le" || compare == ".ls") most = std::min(most, static_cast<int64_t>(*limit));
    }
    return most;
  }

  struct Comparison {
    std::string_view compare;  // that holds
    Expr a, b;                 // of 32 bits
  };
  [[nodiscard]] std::vector<Comparison> comparisons(uint32_t i) const {
    std::vector<Comparison> out;
    for (const PassedBranch& passed :
         passed_branches(k_.flow, v_.dominance, k_.flow.instructions()[i].block)) {
      if (!passed.when) continue;
      const uint32_t reg = v_.registers.find(passed.branch, m_.text(at(passed.branch).predicate));
      const auto writer = v_.reaching.only_definition(passed.branch, reg);
      if (!writer || !m_.is(at(*writer).head, "setp") || at(*writer).predicated ||
          at(*writer).operands.size() != 3 || at(*writer).modifiers.size() != 2)
        continue;
      const std::string_view type = m_.text(at(*writer).modifiers.last - 1);
      if (type != ".s32" && type != ".u32" && type != ".b32") continue;
      const auto read = [&](size_t n) {
        return v_.symbolic.read(*writer, components(m_, at(*writer).operands[n])[0], 32);
      };
      const std::string_view compare = m_.text(at(*writer).modifiers.first);
      out.push_back({*passed.when ? compare : negated(compare), read(1), read(2)});
    }
    return out;
  }
  static std::string_view negated(std::string_view compare) {
    constexpr std::string_view kPairs[][2] = {
        {".eq", ".ne"}, {".lt", ".ge"}, {".le", ".gt"}, {".lo", ".hs"}, {".ls", ".hi"}};
    for (const auto& pair : kPairs) {
      if (compare == pair[0]) return pair[1];
      if (compare == pair[1]) return pair[0];
    }
    return {};
  }

  // ---- loops that go back ----

  // The values at which a register can start that is only decreased from then on, as instruction `i` reads
  // it. Nothing if it may be something else.
  [[nodiscard]] std::optional<std::vector<Linear>> starts(uint32_t i, uint32_t reg) const {
    std::vector<Linear> out;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    std::vector<std::pair<uint32_t, uint32_t>> work = {{i, reg}};  // readings
    while (!work.empty()) {
      const auto [reader, read] = work.back();
      work.pop_back();
      const auto origins = v_.reaching.origins(reader, read);
      if (origins.entry || origins.definitions.empty()) return std::nullopt;
      for (const uint32_t definition : origins.definitions) {
        if (!seen.emplace(definition, read).second) continue;
        if (at(definition).predicated) return std::nullopt;
        const Expr value = v_.symbolic.written(definition, read);
        if (!value.known()) return std::nullopt;
        const Linear form = linear(value);
        const bool has_merged = any_leaf(value, [](const ExprNode& n) { return n.kind == ExprKind::Merged; });
        if (!has_merged) {
          out.push_back(form);
          continue;
        }
        const bool decreases = form.constant <= 0 && form.parts.size() == 1 &&
                               form.parts[0].coefficient == 1 && form.parts[0].factors.size() == 1 &&
                               form.parts[0].factors[0]->kind == ExprKind::Merged;
        if (!decreases) return std::nullopt;
        const ExprNode& merged = *form.parts[0].factors[0];
        const auto from = static_cast<uint32_t>(merged.value);
        work.emplace_back(from, v_.registers.find(from, merged.name));
      }
    }
    return out;
  }

  // The forms that an address is one of, or below one of them.
  [[nodiscard]] std::optional<std::vector<Linear>> highest(uint32_t poll) const {
    const Linear form = address(poll);
    const auto merged = std::ranges::find_if(form.parts, [](const Linear::Part& part) {
      return part.factors.size() == 1 && part.factors[0]->kind == ExprKind::Merged;
    });
    if (merged == form.parts.end()) return std::vector{form};
    if (merged->coefficient <= 0) return std::nullopt;
    const ExprNode& symbol = *merged->factors[0];
    const auto reader = static_cast<uint32_t>(symbol.value);
    auto values = starts(reader, v_.registers.find(reader, symbol.name));
    if (!values) return std::nullopt;
    for (Linear& value : *values) {
      Linear whole = form;
      whole.add(-merged->coefficient, merged->factors);
      whole.add(value, merged->coefficient);
      value = std::move(whole);
    }
    return values;
  }

  // ---- the claim ----

  // Says what stands against the claim; empty if nothing does.
  std::string problem() {
    if (std::string found = find_writes(); !found.empty()) return found;
    for (const uint32_t poll : polls_) {
      if (std::string found = check(poll); !found.empty()) return found;
    }
    return {};
  }

  std::string check(uint32_t poll) {
    const auto forms = highest(poll);
    if (!forms || forms->empty()) return fmt::format("{} may read anything", text(poll));
    bool is_written = false;
    for (const Linear& form : *forms) {
      const auto polled = place(form);
      if (!polled || polled->turn == Turn::None || polled->coefficient <= 0)
        return fmt::format("{} does not go by the block's number", text(poll));
      if (turn_ != Turn::None && turn_ != polled->turn)
        return fmt::format("{} goes by another number", text(poll));
      turn_ = polled->turn;
      const auto most = bound(polled->rest, poll, true);
      if (!most) return fmt::format("{} may read anything", text(poll));
      for (const uint32_t write : writes_) {
        const auto written = written_by(write, *polled);
        if (!written) return fmt::format("{} may write what {} reads", text(write), text(poll));
        if (written->pointer != polled->pointer) continue;
        if (!is_before(*polled, *most, *written, write, width(poll)))
          return fmt::format("a later block may write what {} reads, by {}", text(poll), text(write));
        is_written = true;
      }
    }
    return is_written ? std::string() : fmt::format("no block writes what {} reads", text(poll));
  }

  // The place that a write goes to. Where a comparison says what the turn is, the write goes by that turn as
  // well.
  [[nodiscard]] std::optional<Place> written_by(uint32_t write, const Place& polled) {
    const Linear form = address(write);
    auto written = place(form);
    if (!written || written->turn != Turn::None || written->pointer != polled.pointer) return written;
    for (const auto& [compare, a, b] : comparisons(write)) {
      if (compare != ".eq" || !a.known() || !b.known()) continue;
      Linear zero = linear(a);
      zero.add(linear(b), -1);
      zero.add(1, {Expr::parameter(*polled.pointer, 64)});  // so that it has a place
      const auto equal = place(zero);
      if (!equal || equal->turn != polled.turn || equal->coefficient == 0 ||
          polled.coefficient % equal->coefficient != 0)
        continue;
      Linear by_turn = form;
      zero.add(-1, {Expr::parameter(*polled.pointer, 64)});
      by_turn.add(zero, polled.coefficient / equal->coefficient);
      if (auto found = place(by_turn)) return found;
    }
    return written;
  }

  [[nodiscard]] bool is_before(const Place& polled, int64_t most, const Place& written, uint32_t write,
                               int64_t width) const {
    if (written.turn != polled.turn || written.coefficient != polled.coefficient) return false;
    Linear difference = written.uniform;
    difference.add(polled.uniform, -1);
    const auto least = bound(written.rest, write, false);
    return difference.parts.empty() && least && difference.constant + *least - most >= width;
  }

  const FunctionFacts& k_;
  const ptx::Module& m_;
  const Values& v_;
  Waiting waiting_;
  std::vector<uint32_t> polls_, writes_;
  Turn turn_ = Turn::None;
};

}  // namespace

EarlierBlocks waits_for_earlier_blocks(const FunctionFacts& kernel) { return Earlier(kernel).run(); }

BlockOrder block_order(const FunctionFacts& kernel) {
  if (Loops(kernel.flow).all().empty()) return BlockOrder::Any;  // most have no loop
  if (!Waiting(kernel.module, kernel.flow, kernel.data, WaitsFor::OtherBlocks).find()) return BlockOrder::Any;
  return waits_for_earlier_blocks(kernel).order;
}

}  // namespace klap::analysis
