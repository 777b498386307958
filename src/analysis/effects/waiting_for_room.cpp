#include "analysis/effects/waiting_for_room.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "analysis/effects/ending_calls.h"
#include "analysis/effects/polling.h"
#include "analysis/effects/waiting.h"
#include "analysis/graph/dominance.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"
#include "analysis/suspension/suspension.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// Sets of address spaces. A generic address may be in any of them. The words by which a kernel that stops
// keeps its threads together are a space of their own.
enum : uint8_t { kNoSpace = 0, kGlobal = 1, kShared = 2, kLocal = 4, kGeneric = 7, kSuspension = 8 };

uint8_t spaces_of(std::string_view space) {
  if (space.empty()) return kGeneric;
  return space == ".global" ? kGlobal : space == ".shared" ? kShared : space == ".local" ? kLocal : kNoSpace;
}

bool may_be_refused(std::string_view function) {
  return idioms().is_get_buffer(function) || idioms().by_launch(function) != nullptr ||
         idioms().is_kind(function, "copy") || idioms().is_kind(function, "fill") ||
         idioms().is_kind(function, "event") || idioms().is_kind(function, "stream-wait") ||
         idioms().is_kind(function, "stream-create");
}

bool tells_of_refusals(std::string_view function) {
  return may_be_refused(function) || idioms().is_last_error(function) ||
         idioms().is_peek_last_error(function);
}

struct Step {
  Registers registers;
  uint8_t reads = kNoSpace, writes = kNoSpace;
  // Parameters of calls belong to the scope of the call.
  bool reads_parameters = false, writes_parameters = false;
  bool is_uncertain = false;
};

class RoomWait {
 public:
  explicit RoomWait(const OriginQuery& query) : q_(query), dominance_(query.flow) {
    for (const FlatInstruction& f : q_.flow.instructions()) steps_.push_back(step_of(*f.statement));
    is_between_.resize(q_.flow.blocks().size());
  }

  // The first branch in a loop with the instruction `call` that may lead to another launch.
  std::string find(uint32_t call) {
    while (spread() || spread_over_branches(call)) {
    }
    for (const BasicBlock& block : q_.flow.blocks()) {
      for (uint32_t i = block.first; i < block.last; ++i) {
        if (ends_threads_uncertainly(i, call)) return q_.module.place(at(i).head);
      }
      if (is_uncertain_choice(block, call) && !ways_between(block) && !ends_loop_on_error(block, call))
        return q_.module.place(at(block.last - 1).head);
    }
    return {};
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *q_.flow.instructions()[i].statement; }

  // ---- what an instruction does ----

  [[nodiscard]] Step step_of(const Statement& s) const {
    Step step;
    if (keeps_register(s)) return step;
    step.registers = registers_of(q_.module, s, q_.data.names());
    const std::string_view opcode = q_.module.text(s.head), space = memory_space(q_.module, s);
    step.is_uncertain = std::ranges::any_of(
        step.registers.written, [&](std::string_view reg) { return is_told_of_refusals(s, reg); });
    if (opcode == "ld") {
      step.reads = spaces_of(space);
      step.reads_parameters = space == ".param";
    } else if (opcode == "st") {
      step.writes = is_argument_store(s) ? uint8_t{kNoSpace} : spaces_of(space);
      step.writes_parameters = space == ".param";
    } else if (opcode == "atom") {
      step.reads = step.writes = spaces_of(space);
    } else if (opcode == "red") {
      step.writes = spaces_of(space);
    } else if (opcode == "call" && takes_frame(q_.module, s, q_.data.names())) {
      return step;  // whether there is memory has nothing to do with launches
    } else if (opcode == "call") {
      step.reads_parameters = step.writes_parameters = true;
      if (!is_known_call(s)) step.reads = step.writes = kGeneric;
    } else if (may_access_memory(s)) {
      step.reads = step.writes = kGeneric;
    }
    if (names_suspension_words(s)) {
      if (step.reads != kNoSpace) step.reads = kSuspension;
      if (step.writes != kNoSpace) step.writes = kSuspension;
    }
    return step;
  }

  // True where a register's own value is put aside or taken back. Nothing else is written to these places.
  [[nodiscard]] bool keeps_register(const Statement& s) const {
    return std::ranges::any_of(s.operands, [this](ptx::TokenRange operand) {
      const auto address = parse_address(q_.module, operand);
      return q_.module.is(operand.first, "[") && address &&
             (address->base == kSuspensionRow || address->base == kSuspensionFrame);
    });
  }

  [[nodiscard]] bool names_suspension_words(const Statement& s) const {
    return std::ranges::any_of(s.operands, [this](ptx::TokenRange operand) {
      const auto address = parse_address(q_.module, operand);
      return address && (address->base == kSuspensionWords ||
                         (address->base == kSuspensionControl && address->offset == 0));
    });
  }

  // True for an instruction that names an address, or whose row in the table of opcodes promises too little.
  [[nodiscard]] bool may_access_memory(const Statement& s) const {
    const ptx::Opcode& opcode = ptx::opcode_of(q_.module, s);
    return !opcode.is_known() || opcode.result == ptx::OpcodeResult::Memory ||
           opcode.writes_global != ptx::GlobalWrite::Never ||
           std::ranges::any_of(s.operands, [&](ptx::TokenRange operand) {
             return operand.first < operand.last && q_.module.is(operand.first, "[");
           });
  }

  // True for a call whose result is uncertain and that changes no memory of the program.
  [[nodiscard]] bool is_known_call(const Statement& s) const {
    const auto call = parse_call(q_.module, s, q_.data.names());
    if (!call || !call->direct) return false;
    const std::string_view function = runtime_function(q_.module, call->callee);
    return idioms().is_get_buffer(function) || idioms().by_launch(function) != nullptr ||
           idioms().is_last_error(function) || idioms().is_peek_last_error(function);
  }

  // True for a result of a call. Copies of it are found by their registers.
  [[nodiscard]] bool is_told_of_refusals(const Statement& s, std::string_view reg) const {
    if (!q_.module.is(s.head, "ld") && !q_.module.is(s.head, "call")) return false;
    return std::ranges::any_of(origins_of(q_, reg), [&](const Origin& origin) {
      return origin.kind == OriginKind::CallResult &&
             tells_of_refusals(runtime_function(q_.module, origin.name));
    });
  }

  // True for a store into the argument buffer of a launch, which the program does not read.
  [[nodiscard]] bool is_argument_store(const Statement& s) const {
    const auto address = s.operands.empty() ? std::nullopt : parse_address(q_.module, s.operands[0]);
    return address &&
           holds_only(address->base, [](std::string_view name) { return idioms().is_get_buffer(name); });
  }

  // ---- uncertain values ----

  [[nodiscard]] bool reads_uncertain(uint32_t i) const {
    const Step& step = steps_[i];
    return (step.reads & uncertain_spaces_) != 0 ||
           (step.reads_parameters && uncertain_scopes_.contains(q_.flow.instructions()[i].scope)) ||
           std::ranges::any_of(step.registers.read,
                               [&](std::string_view reg) { return uncertain_.contains(reg); });
  }

  // Marks what uncertain instructions write. True if there was anything new.
  bool spread() {
    bool grew = false;
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      const FlatInstruction& f = q_.flow.instructions()[i];
      Step& step = steps_[i];
      step.is_uncertain = step.is_uncertain || is_between_[f.block] || reads_uncertain(i);
      if (!step.is_uncertain) continue;
      for (const std::string_view reg : step.registers.written) grew = uncertain_.insert(reg).second || grew;
      if (step.writes_parameters) grew = uncertain_scopes_.insert(f.scope).second || grew;
      if ((step.writes & ~uncertain_spaces_) == 0) continue;
      uncertain_spaces_ |= step.writes;
      grew = true;
    }
    return grew;
  }

  // ---- branches ----

  // True for a block in a loop with the call whose way out is uncertain.
  [[nodiscard]] bool is_uncertain_choice(const BasicBlock& block, uint32_t call) const {
    const uint32_t last = block.last - 1;
    const bool has_choice =
        block.end == BlockEnd::IndexedBranch || block.successors.size() + (block.exits_function ? 1 : 0) > 1;
    return has_choice && reads_uncertain(last) && is_in_loop_with(last, call);
  }

  [[nodiscard]] bool is_in_loop_with(uint32_t i, uint32_t call) const {
    return q_.flow.can_follow(call, i) && q_.flow.can_follow(i, call);
  }

  // True for a call in a loop with `call` that may end the thread because of an uncertain value.
  [[nodiscard]] bool ends_threads_uncertainly(uint32_t i, uint32_t call) const {
    return steps_[i].is_uncertain && is_in_loop_with(i, call) &&
           may_end_threads(q_.module, at(i), q_.data.names());
  }

  // True for a branch by which a thread with an error, or without a buffer, does not come back to the call.
  [[nodiscard]] bool ends_loop_on_error(const BasicBlock& block, uint32_t call) const {
    const Statement& branch = at(block.last - 1);
    if (!branch.predicated || !q_.module.is(branch.head, "bra") || block.successors.size() != 2) return false;
    const std::optional<bool> when_error = value_on_error(q_.module.text(branch.predicate));
    if (!when_error) return false;
    const bool jumps_on_error = *when_error != branch.predicate_negated;
    const uint32_t to = q_.flow.blocks()[block.successors[jumps_on_error ? 0 : 1]].first;
    return to != call && !q_.flow.can_follow(to, call);
  }

  // The value that a predicate has after an error, or where a buffer is null. Nothing if it says something
  // else, or if anything else about it is uncertain.
  [[nodiscard]] std::optional<bool> value_on_error(std::string_view predicate,
                                                   uint32_t most_steps = 8) const {
    const auto& writers = q_.data.definitions(predicate);
    if (most_steps == 0 || writers.size() != 1 || q_.data.is_ambiguous(predicate)) return std::nullopt;
    const Statement& s = at(writers.front());
    if (s.predicated || s.operands.size() != 3) return std::nullopt;
    const std::string_view opcode = q_.module.text(s.head);
    if (opcode == "setp") return compared_on_error(s);
    if (opcode != "and" && opcode != "or") return std::nullopt;
    const bool decides = opcode == "or";  // the value of one operand that decides
    for (size_t i = 1; i < 3; ++i) {
      const std::string_view operand = q_.module.text(s.operands[i]);
      if (uncertain_.contains(operand) && value_on_error(operand, most_steps - 1) != decides)
        return std::nullopt;
    }
    return decides;
  }

  [[nodiscard]] std::optional<bool> compared_on_error(const Statement& s) const {
    const bool equal = q_.module.has_modifier(s, ".eq");
    if ((!equal && !q_.module.has_modifier(s, ".ne")) || s.modifiers.last - s.modifiers.first != 2 ||
        q_.data.constant(q_.module.text(s.operands[2])) != 0)
      return std::nullopt;
    const std::string_view compared = q_.module.text(s.operands[1]);
    if (holds_only(compared, [](std::string_view name) { return idioms().is_get_buffer(name); }))
      return equal;
    return is_error(compared, q_.flow.index_of(&s)) ? std::optional(!equal) : std::nullopt;
  }

  // True for an error code, or one of several, as the instruction `reader` reads it. Which one it is does not
  // matter: as long as the value is 0 the thread goes on as if nothing had been refused.
  [[nodiscard]] bool is_error(std::string_view reg, uint32_t reader, uint32_t most_steps = 8) const {
    const auto returns_error = [](std::string_view name) {
      return tells_of_refusals(name) && !idioms().is_get_buffer(name);
    };
    if (holds_only(reg, returns_error)) return true;
    const std::optional<uint32_t> writer = most_steps == 0 ? std::nullopt : writer_before(reg, reader);
    if (!writer) return false;
    const Statement& s = at(*writer);
    if (q_.module.is(s.head, "selp") && s.operands.size() == 4)
      return is_error(q_.module.text(s.operands[1]), *writer, most_steps - 1) &&
             is_error(q_.module.text(s.operands[2]), *writer, most_steps - 1);
    const auto callee = function_of_result(*writer);
    return callee && returns_error(*callee);
  }

  // The instruction of the same basic block that always gives the register its value for `reader`.
  [[nodiscard]] std::optional<uint32_t> writer_before(std::string_view reg, uint32_t reader) const {
    for (uint32_t i = reader; i-- > q_.flow.blocks()[q_.flow.instructions()[reader].block].first;) {
      const auto& written = steps_[i].registers.written;
      if (std::ranges::find(written, reg) == written.end()) continue;
      return at(i).predicated || q_.data.is_ambiguous(reg) ? std::nullopt : std::optional(i);
    }
    return std::nullopt;
  }

  // The device runtime's function whose result an instruction behind the call loads.
  [[nodiscard]] std::optional<std::string_view> function_of_result(uint32_t load) const {
    const FlatInstruction& f = q_.flow.instructions()[load];
    if (!q_.module.is(at(load).head, "ld") || memory_space(q_.module, at(load)) != ".param" ||
        f.scope == nullptr)
      return std::nullopt;
    for (uint32_t i = load; i-- > 0 && q_.flow.instructions()[i].scope == f.scope;) {
      const auto call = parse_call(q_.module, at(i), q_.data.names());
      if (!call) continue;
      const bool is_result = call->direct && call->results.size() == 1 && at(load).operands.size() == 2 &&
                             parse_address(q_.module, at(load).operands[1]) &&
                             parse_address(q_.module, at(load).operands[1])->base == call->results[0];
      return is_result ? std::optional(runtime_function(q_.module, call->callee)) : std::nullopt;
    }
    return std::nullopt;
  }

  // True for a register that holds nothing but results of such functions.
  template <class Is>
  [[nodiscard]] bool holds_only(std::string_view reg, Is is) const {
    const std::vector<Origin> origins = origins_of(q_, reg);
    return !q_.data.is_ambiguous(reg) && !origins.empty() &&
           std::ranges::all_of(origins, [&](const Origin& origin) {
             return origin.kind == OriginKind::CallResult && is(runtime_function(q_.module, origin.name));
           });
  }

  // Marks the blocks between a harmless branch and the place where its ways meet. True if any was new.
  bool spread_over_branches(uint32_t call) {
    bool grew = false;
    for (const BasicBlock& block : q_.flow.blocks()) {
      if (!is_uncertain_choice(block, call)) continue;
      const auto between = ways_between(block);
      if (!between) continue;
      for (const uint32_t b : *between) {
        grew = grew || !is_between_[b];
        is_between_[b] = true;
      }
    }
    return grew;
  }

  // The blocks on the ways from a branch to where they meet. Nothing if a way may come back, or end.
  [[nodiscard]] std::optional<std::set<uint32_t>> ways_between(const BasicBlock& from) const {
    const uint32_t branch = q_.flow.instructions()[from.first].block;
    const uint32_t meeting = dominance_.immediate_post_dominator(branch);
    if (meeting == Dominance::kNone || meeting == dominance_.exit() || from.exits_function)
      return std::nullopt;
    std::set<uint32_t> between;
    std::vector<uint32_t> work = {branch};
    while (!work.empty()) {
      const uint32_t block = work.back();
      work.pop_back();
      for (const uint32_t next : q_.flow.blocks()[block].successors) {
        if (next == meeting || !between.insert(next).second) continue;
        if (next == branch || q_.flow.blocks()[next].exits_function) return std::nullopt;
        work.push_back(next);
      }
    }
    return has_cycle(between) ? std::nullopt : std::optional(std::move(between));
  }

  // True if control can come back to one of the blocks without a way through others.
  [[nodiscard]] bool has_cycle(std::set<uint32_t> blocks) const {
    const auto ends = [&](uint32_t block) {
      return std::ranges::none_of(q_.flow.blocks()[block].successors,
                                  [&](uint32_t next) { return blocks.contains(next); });
    };
    while (!blocks.empty()) {
      const auto last = std::ranges::find_if(blocks, ends);
      if (last == blocks.end()) return true;
      blocks.erase(last);
    }
    return false;
  }

  const OriginQuery& q_;
  const Dominance dominance_;
  std::vector<Step> steps_;
  std::vector<bool> is_between_;  // by block: an uncertain branch decides whether it runs
  RegisterSet uncertain_;
  uint8_t uncertain_spaces_ = kNoSpace;
  std::set<const Statement*> uncertain_scopes_;  // where parameters of calls are uncertain
};

}  // namespace

std::string waits_for_room_at(const OriginQuery& query, const Statement& call) {
  const uint32_t at = query.flow.index_of(&call);
  return query.flow.in_loop(at) ? RoomWait(query).find(at) : std::string{};
}

}  // namespace klap::analysis
