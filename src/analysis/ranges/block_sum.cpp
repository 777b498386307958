#include "analysis/ranges/block_sum.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/graph/dataflow.h"
#include "analysis/legality/warp_block.h"
#include "analysis/optimise/accumulators.h"
#include "analysis/ranges/block_state.h"
#include "analysis/ranges/integer_code.h"
#include "analysis/ranges/shared_cells.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

using State = BlockThread::State;

constexpr uint64_t kMostSteps = 4'000'000;

std::vector<uint8_t> both(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  std::vector<uint8_t> out(a.size());
  for (size_t k = 0; k < a.size(); ++k) out[k] = static_cast<uint8_t>(std::min(2, a[k] + b[k]));
  return out;
}

// Ends the run because a condition is not known that can be assumed.
struct Undecided {
  std::string condition;
};

class Block : private BlockState {
 public:
  Block(const Values& values, const RangeLoop& loop, uint32_t threads)
      : Block(values, loop, {threads}, nullptr) {}
  // With `effects` the block may do more with memory than to add to it.
  Block(const Values& values, const RangeLoop& loop, const EndRun& run, BlockEffects* effects)
      : BlockState(values, run, effects), loop_(loop), warp_barriers_(run.threads / kWarpLanes) {}

  BlockSum run() {
    try {
      run_threads();
      const auto is_fixed = [](const Added& a) { return a.count == 1 && is_rounded(a.operation); };
      return {"", additions(), std::ranges::any_of(added_, is_fixed)};
    } catch (const Refused& refused) {
      return {refused.why, {}};
    }
  }

  EndOfBlock run_to_end() {
    try {
      run_threads();
      return effects_->end();
    } catch (const Refused& refused) {
      return {refused.why};
    } catch (const Undecided& undecided) {
      return {"", 0, {}, false, undecided.condition};
    }
  }

 private:
  void run_threads() {
    while (!is_done()) {
      for (uint32_t t = 0; t < threads_.size(); ++t) {
        while (threads_[t].state == State::Runs) step(t);
      }
      if (!meet()) throw Refused{"its threads wait for each other in a way that is not known"};
    }
  }

  [[nodiscard]] bool is_done() const {
    return std::ranges::all_of(threads_, [](const BlockThread& t) { return t.state == State::Done; });
  }

  // ---- steps ----

  void step(uint32_t t) {
    BlockThread& thread = threads_[t];
    const uint32_t i = thread.next;
    if (++steps_ > kMostSteps) throw refused(i, "is run too often");
    if (i == loop_.branch) return enter(t);
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    if (s.predicated && !holds(t, i)) return go_on(t, i);
    if (opcode == "bra") {
      const BasicBlock& block = flow_.blocks()[flow_.instructions()[i].block];
      return go_to(t, block.successors.at(0));
    }
    if (opcode == "ret" || opcode == "exit") {
      thread.state = State::Done;
      return;
    }
    if (waits(t, i)) return;
    execute(t, i);
    go_on(t, i);
  }

  // The sums are symbols from here on; other registers of the loop are not read (range_loop.h).
  void enter(uint32_t t) {
    for (const uint32_t b : loop_.blocks) {
      for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
        for (const Access& access : v_.registers.accesses(i)) {
          if (access.written) threads_[t].registers[access.reg] = {};
        }
      }
    }
    for (size_t sum = 0; sum < loop_.sums.size(); ++sum) {
      std::vector<uint8_t> times(loop_.sums.size() * threads_.size());
      times[sum * threads_.size() + t] = 1;
      sums_.push_back({loop_.sums[sum].operation, std::move(times)});
      threads_[t].registers[loop_.sums[sum].reg] = {Expr(), sums_.size() - 1, {}};
    }
    go_to(t, loop_.behind);
  }

  bool holds(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    const HeldValue value = read(t, i, std::string(m_.text(s.predicate)), 32);
    const auto known = value.number.known() ? value.number.as_constant() : std::nullopt;
    return (known ? *known != 0 : assumed(i, value)) != s.predicate_negated;
  }
  bool assumed(uint32_t i, const HeldValue& condition) {
    const auto value = effects_ != nullptr ? described(condition) : std::nullopt;
    if (!value) throw refused(i, "goes by a value that is not known");
    effects_->go_by(*value);
    const auto found = run_.assumed.find(value->text);
    if (found == run_.assumed.end()) throw Undecided{value->text};
    return found->second;
  }

  void go_on(uint32_t t, uint32_t i) {
    const BasicBlock& block = flow_.blocks()[flow_.instructions()[i].block];
    if (i + 1 < block.last) {
      threads_[t].next = i + 1;
    } else if (i + 1 == flow_.instructions().size()) {
      threads_[t].state = State::Done;
    } else {
      go_to(t, flow_.instructions()[i + 1].block);
    }
  }
  void go_to(uint32_t t, uint32_t block) {
    if (block == 0 || loop_.blocks.contains(block)) throw Refused{"its threads come back to the loop"};
    threads_[t].next = flow_.blocks()[block].first;
  }

  // True for an instruction at which threads meet: they go on together (meet()).
  bool waits(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    const bool is_barrier = opcode == "bar" || opcode == "barrier";
    if (!is_barrier && opcode != "shfl" && opcode != "redux") return false;
    if (s.predicated) throw refused(i, "is for some of the threads");
    if (!m_.has_modifier(s, ".sync")) throw refused(i, "is not known");
    if (is_barrier && m_.has_modifier(s, ".warp")) {
      check_mask(t, i, 0);
      threads_[t].state = State::AtWarpBarrier;
    } else if (is_barrier) {
      if (s.operands.size() != 1 || constant(t, i, 0) != 0) throw refused(i, "is for some of the threads");
      threads_[t].state = State::AtBlockBarrier;
    } else {
      check_mask(t, i, s.operands.size() - 1);
      threads_[t].state = State::AtShuffle;
    }
    return true;
  }
  void check_mask(uint32_t t, uint32_t i, size_t operand) {
    if (static_cast<uint32_t>(constant(t, i, operand)) != ~0U) throw refused(i, "is for some of the lanes");
  }

  // ---- threads that meet ----

  bool meet() {
    bool any = false;
    for (uint32_t warp = 0; warp < warp_barriers_.size(); ++warp) {
      const uint32_t first = warp * kWarpLanes;
      if (!are_all_at(first, first + kWarpLanes, threads_[first].state)) continue;
      const uint32_t i = threads_[first].next;
      if (threads_[first].state == State::AtShuffle) {
        exchange(first, i);
      } else if (threads_[first].state == State::AtWarpBarrier) {
        ++warp_barriers_[warp];
      } else {
        continue;
      }
      any = true;
      release(first, first + kWarpLanes);
    }
    if (!any && are_all_at(0, static_cast<uint32_t>(threads_.size()), State::AtBlockBarrier)) {
      ++block_barriers_;
      release(0, static_cast<uint32_t>(threads_.size()));
      any = true;
    }
    return any || is_done();
  }
  [[nodiscard]] bool are_all_at(uint32_t first, uint32_t last, State state) const {
    for (uint32_t t = first; t < last; ++t) {
      if (threads_[t].state != state || threads_[t].next != threads_[first].next) return false;
    }
    return true;
  }
  void release(uint32_t first, uint32_t last) {
    for (uint32_t t = first; t < last; ++t) {
      threads_[t].state = State::Runs;
      go_on(t, threads_[t].next);
    }
  }

  void exchange(uint32_t first, uint32_t i) {
    if (m_.is(at(i).head, "redux")) return reduce(first, i);
    std::array<HeldValue, kWarpLanes> given;
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) given[lane] = read(first + lane, i, 1, 32);
    const Statement& s = at(i);
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      const uint32_t t = first + lane;
      const auto b = static_cast<uint32_t>(constant(t, i, 2)), c = static_cast<uint32_t>(constant(t, i, 3));
      const auto [from, is_there] = shuffled_lane(m_, s, lane, b & 31, c);
      std::vector<std::string> results;
      for (uint32_t token = s.operands[0].first; token < s.operands[0].last; ++token) {
        if (!m_.is(token, "|")) results.emplace_back(m_.text(token));
      }
      write(t, i, results.at(0), given.at(from));
      if (results.size() > 1) write(t, i, results[1], {Expr::constant(is_there ? 1 : 0, 32), {}, {}});
    }
  }

  // `redux.sync.add.s32 d, a, mask`
  void reduce(uint32_t first, uint32_t i) {
    const Statement& s = at(i);
    const std::string operation = operation_of(s);
    HeldValue all;
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      const HeldValue mine = read(first + lane, i, 1, 32);
      if (operation.empty() || !mine.sum) throw refused(i, "has an operand that is no sum");
      all = lane == 0 ? mine : add(operation, all, mine).value_or(HeldValue());
    }
    if (!all.sum || sums_[*all.sum].operation != operation) throw refused(i, "is another operation");
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) write(first + lane, i, all);
  }

  // ---- instructions ----

  // "add.i32" of `add.s32`, `atom.global.add.u32` and the like: of the last type and the modifier or opcode
  // that names an operation.
  [[nodiscard]] std::string operation_of(const Statement& s) const {
    const std::string type = type_of(s);
    for (uint32_t token = s.modifiers.first; token + 1 < s.modifiers.last; ++token) {
      const std::string found = commuting_operation(m_.text(token).substr(1), type);
      if (!found.empty()) return found;
    }
    return "";
  }

  // The sum of two sums, or of a sum and what adds nothing; nothing if that is not known.
  std::optional<HeldValue> add(const std::string& operation, const HeldValue& a, const HeldValue& b) {
    if (operation.empty() || a.part != HeldValue::Part::Whole || b.part != HeldValue::Part::Whole)
      return std::nullopt;
    for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (!one->sum && is_zero(*one) && other->sum && sums_[*other->sum].operation == operation &&
          !is_idempotent(operation))
        return *other;
    }
    if (!a.sum || !b.sum || sums_[*a.sum].operation != operation || sums_[*b.sum].operation != operation)
      return std::nullopt;
    sums_.push_back({operation, both(sums_[*a.sum].times, sums_[*b.sum].times)});
    return HeldValue{Expr(), sums_.size() - 1, {}};
  }

  void execute(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "mov") return move(t, i);
    if (opcode == "ld") return load(t, i);
    if (opcode == "st") return store(t, i);
    if (opcode == "atom" || opcode == "red") return add_to_memory(t, i);
    if (opcode == "setp") return compare(t, i);
    if (opcode == "selp") return select(t, i);
    if (opcode == "membar" || opcode == "fence") return;
    const bool computes = ptx::opcode_of(m_, s).result == ptx::OpcodeResult::Pure && !s.operands.empty();
    if (!computes) throw refused(i, "is not known");
    if (is_addition_of_sums(t, i)) return;
    write_computed(t, i, integer_result(m_, s, numbers(t, i)));
  }

  // The number; where that is not known, the value is what this instruction makes of its operands.
  void write_computed(uint32_t t, uint32_t i, const Expr& number) {
    if (number.known()) return write(t, i, {number, {}, {}});
    const auto computed = effects_ == nullptr ? std::nullopt : instruction(t, i, 1);
    if (!computed || components(m_, at(i).operands[0]).size() != 1) return write_unknown(t, i);
    write(t, i, {Expr(), {}, {}, effects_->values().number_of(*computed)});
  }

  void select(uint32_t t, uint32_t i) {
    const auto known = number(t, i, 3, 32).as_constant();
    if (known) return write(t, i, read(t, i, *known != 0 ? 1 : 2, bits_of(type_of(at(i)))));
    if (effects_ == nullptr) throw refused(i, "goes by a value that is not known");
    write_computed(t, i, Expr());
  }

  // ---- values that are only told apart ----

  // The instruction with its operands from that one on; nothing if one of them is not known.
  std::optional<Computed> instruction(uint32_t t, uint32_t i, size_t first) {
    Computed out{m_.full_opcode(at(i)), {}, false};
    for (size_t operand = first; operand < at(i).operands.size(); ++operand) {
      const auto value = operand_value(t, i, operand);
      if (!value || !add_operand(out, *value)) return std::nullopt;
    }
    return out;
  }
  std::optional<Computed> operand_value(uint32_t t, uint32_t i, size_t operand) {
    const std::vector<std::string> words = components(m_, at(i).operands[operand]);
    if (words.size() != 1 || words[0].empty()) return std::nullopt;
    const std::string type = type_of(at(i));
    const bool is_negated = words[0][0] == '!';
    auto value = described(read(t, i, is_negated ? words[0].substr(1) : words[0],
                                type.empty() || type == ".pred" ? 32 : bits_of(type)));
    if (value && is_negated) value->text = "!" + value->text;
    return value;
  }
  std::optional<Computed> described(const HeldValue& value) {
    if (value.opaque) return effects_->values().operand(*value.opaque);
    if (value.sum)
      return value.part == HeldValue::Part::Whole ? described_sum(sums_[*value.sum]) : std::nullopt;
    return value.number.known() ? std::optional(effects_->values().operand(value.number)) : std::nullopt;
  }
  // Only sums in which each thread's takes part are the same for blocks of all sizes.
  std::optional<Computed> described_sum(const SumOf& sum) const {
    const auto complete = complete_sums(sum.operation, sum.times);
    if (!complete || complete->empty()) return std::nullopt;
    return Computed{fmt::format("s{}", fmt::join(*complete, "+s")), {}, is_rounded(sum.operation)};
  }

  // The address of a plain access, or of an atomic operation.
  std::optional<Computed> described_address(uint32_t t, uint32_t i, size_t operand) {
    const auto [base, offset] = address_parts(t, i, operand);
    auto out = described(base);
    if (out) out->text += fmt::format("[{}]", offset);
    return out;
  }

  static bool is_zero(const HeldValue& value) {
    return value.number.known() && value.number.as_constant() == 0U;
  }

  bool is_addition_of_sums(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    if (s.operands.size() != 3) return false;
    const std::string type = type_of(s);
    for (uint32_t token = s.modifiers.first; token + 1 < s.modifiers.last; ++token) {
      if (!m_.is(token, ".rn") && !m_.is(token, ".ftz")) return false;
    }
    const std::string operation = commuting_operation(m_.text(s.head), type);
    if (operation.empty()) return false;
    const HeldValue a = read(t, i, 1, bits_of(type)), b = read(t, i, 2, bits_of(type));
    const bool are_zeros = !a.sum && !b.sum && is_zero(a) && is_zero(b);  // also of floating-point numbers
    if (are_zeros) write(t, i, a);
    if (!a.sum && !b.sum) return are_zeros;
    const auto sum = add(operation, a, b);
    if (!sum) return false;
    write(t, i, *sum);
    return true;
  }

  void move(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    const std::string type = type_of(s);
    const std::vector<std::string> to = components(m_, s.operands[0]), from = components(m_, s.operands[1]);
    const uint32_t bits = type == ".pred" ? 32 : bits_of(type);
    if (to.size() == 1 && from.size() == 1) return write(t, i, to[0], read(t, i, from[0], bits));
    if (bits != 64 || to.size() + from.size() != 3) throw refused(i, "is not known");
    if (to.size() == 2) {
      const HeldValue whole = read(t, i, from[0], bits);
      write(t, i, to[0], half(whole, HeldValue::Part::Low));
      write(t, i, to[1], half(whole, HeldValue::Part::High));
      return;
    }
    const HeldValue low = read(t, i, from[0], 32), high = read(t, i, from[1], 32);
    const bool is_whole = low.sum && low.sum == high.sum && low.part == HeldValue::Part::Low &&
                          high.part == HeldValue::Part::High;
    const bool are_zeros = !low.sum && !high.sum && is_zero(low) && is_zero(high);
    if (are_zeros) return write(t, i, to[0], {Expr::constant(0, bits), {}, {}});
    write(t, i, to[0], is_whole ? HeldValue{Expr(), low.sum, {}} : HeldValue());
  }
  static HeldValue half(const HeldValue& whole, HeldValue::Part part) {
    if (whole.sum && whole.part == HeldValue::Part::Whole) return {Expr(), whole.sum, part};
    const auto number = !whole.sum && whole.number.known() ? whole.number.as_constant() : std::nullopt;
    if (!number) return {};
    constexpr uint32_t kHalf = 32;
    return {Expr::constant(part == HeldValue::Part::Low ? *number & 0xffffffffU : *number >> kHalf, kHalf),
            {},
            {}};
  }

  // `setp.lt.s32 p, a, b`
  void compare(uint32_t t, uint32_t i) {
    const auto result = comparison_result(m_, at(i), numbers(t, i));
    if (!result) return write_computed(t, i, Expr());
    write(t, i, {Expr::constant(*result ? 1 : 0, 32), {}, {}});
  }
  // ---- memory ----

  void load(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    if (const auto offset = v_.symbolic.parameter_offset(i)) return load_parameters(t, i, *offset);
    if (effects_ != nullptr && is_plain_load(m_, s)) return load_global(t, i);
    if (!is_plain_access(s, ".shared") || components(m_, s.operands[0]).size() != 1)
      throw refused(i, "stands outside the loop");
    const SharedPlace place = shared_place(t, i, 1);
    HeldValue value;
    const auto why_not = shared_.load(place, ptx::type_bytes(type_of(s)), touch(t), value);
    if (why_not) throw refused(i, *why_not);
    write(t, i, std::move(value));
  }

  void load_global(uint32_t t, uint32_t i) {
    auto where = described_address(t, i, 1);
    if (!where || components(m_, at(i).operands[0]).size() != 1)
      throw refused(i, "has an address that is not known");
    where->text = m_.full_opcode(at(i)) + " " + where->text;
    write(t, i, {Expr(), {}, {}, effects_->load(t, *where)});
  }

  // The ends of the range are not known: another block may have others.
  void load_parameters(uint32_t t, uint32_t i, uint32_t offset) {
    const Statement& s = at(i);
    const uint32_t bytes = ptx::type_bytes(type_of(s));
    for (const std::string& word : components(m_, s.operands[0])) {
      const auto overlaps = [&](uint32_t end) { return offset < end + 4 && end < offset + bytes; };
      const bool is_end = overlaps(loop_.end_offset) || (loop_.begin_offset && overlaps(*loop_.begin_offset));
      const bool is_number = (bytes == 4 || bytes == 8) && (!is_end || run_.knows_range);
      write(t, i, word, {!is_number ? Expr() : Expr::parameter(offset, 8 * bytes), {}, {}});
      offset += bytes;
    }
  }

  void store(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    if (effects_ != nullptr && is_plain_access(s, ".global")) return change_memory(t, i, 0);
    if (!is_plain_access(s, ".shared") || components(m_, s.operands[1]).size() != 1)
      throw refused(i, "stands outside the loop");
    const SharedPlace place = shared_place(t, i, 0);
    const uint32_t bytes = ptx::type_bytes(type_of(s));
    const auto why_not = shared_.store(place, bytes, touch(t), read(t, i, 1, 8 * bytes));
    if (why_not) throw refused(i, *why_not);
  }

  [[nodiscard]] Touch touch(uint32_t t) const {
    return {t, t / kWarpLanes, block_barriers_, warp_barriers_[t / kWarpLanes]};
  }

  // A store or an atomic operation whose address is that operand.
  void change_memory(uint32_t t, uint32_t i, size_t address) {
    auto effect = instruction(t, i, address + 1);
    const auto where = described_address(t, i, address);
    if (!effect || !where || !m_.has_modifier(at(i), ".global")) throw refused(i, "writes what is not known");
    if (!add_operand(*effect, *where)) throw refused(i, "writes what is not known");
    const size_t found = effects_->write(t, *effect);
    if (address == 0) return;
    if (components(m_, at(i).operands[0]).size() != 1) throw refused(i, "has several results");
    write(t, i, {Expr(), {}, {}, found});
  }

  [[nodiscard]] bool is_result_used(uint32_t i) const {
    return std::ranges::any_of(v_.registers.accesses(i), [&](const Access& access) {
      return access.written && !v_.reaching.uses(i, access.reg).empty();
    });
  }

  void add_to_memory(uint32_t t, uint32_t i) {
    const Statement& s = at(i);
    const bool is_atom = m_.is(s.head, "atom");
    if (effects_ != nullptr) return change_memory(t, i, is_atom ? 1 : 0);
    static constexpr std::array kHarmless = {".global", ".relaxed", ".gpu"};
    const std::string operation = operation_of(s);
    size_t others = 0;
    for (uint32_t token = s.modifiers.first; token < s.modifiers.last; ++token)
      others +=
          std::ranges::count_if(kHarmless, [&](const char* word) { return m_.is(token, word); }) == 0 ? 1 : 0;
    if (operation.empty() || others != 2 || s.operands.size() != (is_atom ? 3U : 2U))
      throw refused(i, "is not known");
    if (is_result_used(i)) throw refused(i, "returns what memory held before");
    const HeldValue value = read(t, i, is_atom ? 2 : 1, bits_of(type_of(s)));
    const bool is_sum =
        value.sum && value.part == HeldValue::Part::Whole && sums_[*value.sum].operation == operation;
    if (!is_sum) throw refused(i, "adds something else than the sums of threads");
    const Expr where = address(t, i, is_atom ? 1 : 0);
    const auto known = std::ranges::find_if(
        added_, [&](const Added& a) { return a.address == where && a.operation == operation; });
    const std::vector<uint8_t>& times = sums_[*value.sum].times;
    if (known == added_.end()) {
      added_.push_back({where, operation, times});
    } else {
      known->times = both(known->times, times);
      ++known->count;
    }
  }

  // Each sum of the loop that is added somewhere must be there for every thread.
  [[nodiscard]] std::vector<BlockAddition> additions() const {
    if (added_.empty()) throw Refused{"it adds its sum to no memory"};
    std::vector<BlockAddition> out;
    for (const Added& added : added_) {
      auto sums = complete_sums(added.operation, added.times);
      if (!sums)
        throw Refused{
            fmt::format("blocks of {} threads do not add up all of their threads' sums", threads_.size())};
      out.push_back({added.address, added.operation, *std::move(sums)});
    }
    return out;
  }

  struct Added {
    Expr address;
    std::string operation;
    std::vector<uint8_t> times;
    uint32_t count = 1;  // of additions by threads
  };

  const RangeLoop& loop_;
  std::vector<uint32_t> warp_barriers_;  // passed, by warp
  uint32_t block_barriers_ = 0;
  uint64_t steps_ = 0;
  SharedCells shared_;
  std::vector<Added> added_;
};

}  // namespace

BlockSum run_block(const Values& child, const RangeLoop& loop, uint32_t threads) {
  if (threads == 0 || threads % kWarpLanes != 0) return {"its last warp is not full", {}};
  return Block(child, loop, threads).run();
}

EndOfBlock run_block_to_end(const Values& child, const RangeLoop& loop, const EndRun& run,
                            OpaqueValues& values) {
  if (run.threads == 0 || run.threads % kWarpLanes != 0) return {"its last warp is not full"};
  BlockEffects effects(values, run.threads);
  return Block(child, loop, run, &effects).run_to_end();
}

std::string print_range_sum(const Values& child) {
  constexpr uint32_t kLargestBlock = 1024;
  const RangeLoop loop = find_range_loop(child);
  std::string text = to_string(loop) + "\n";
  for (uint32_t threads = kWarpLanes; loop.yes() && threads <= kLargestBlock; threads *= 2) {
    const BlockSum block = run_block(child, loop, threads);
    std::vector<std::string> parts;
    for (const BlockAddition& addition : block.additions) {
      parts.push_back(fmt::format("{} of sum {} to {}", addition.operation, fmt::join(addition.sums, " and "),
                                  to_string(addition.address)));
    }
    text += fmt::format(
        "{} threads: {}\n", threads,
        block.why_not.empty() ? fmt::format("{}", fmt::join(parts, "; ")) : "no: " + block.why_not);
  }
  return text;
}

}  // namespace klap::analysis
