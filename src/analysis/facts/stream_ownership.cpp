#include "analysis/facts/stream_ownership.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "analysis/effects/effects.h"
#include "analysis/facts/local_addresses.h"
#include "analysis/launches/pointer_arguments.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

bool is_stream_create(std::string_view function) {
  return idioms().is_device_runtime(function) && function.find("StreamCreate") != std::string_view::npos;
}

class Ownership {
 public:
  explicit Ownership(const FlowFacts& kernel) : k_(kernel), m_(kernel.module), local_(kernel) {
    for (const FlatInstruction& f : kernel.flow.instructions()) {
      const auto call = parse_call(m_, *f.statement, kernel.data.names());
      if (!call) continue;
      // Where a scope has two, it does not say which one an argument is for.
      const auto [known, is_first] = calls_.emplace(f.scope, *call);
      if (!is_first) known->second.direct = false;
      if (f.statement->predicated) predicated_.insert(f.scope);
    }
  }

  Finding run(std::string_view operand) {
    if (!k_.data.names().is_register(operand)) return {Answer::Unknown, "the stream is no register"};
    follow_back(operand);
    if (!trouble_ && places_.empty()) trouble({Answer::Unknown, "it comes from nowhere that is known"}, 0);
    if (!trouble_) find_filled_places();
    for (uint32_t i = 0; i < k_.flow.instructions().size() && !visible(); ++i) look_at_addresses(i);
    follow_values();
    if (trouble_) return *trouble_;
    return {Answer::Yes, "created by its thread, kept in local memory"};
  }

  // Checks all streams that the kernel creates; `addresses` are the operands that say where their handles are
  // written.
  Finding run_all(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      if (!local_.of(address)) return {Answer::No, "its handle is written to memory that is not local"};
    }
    find_filled_places();
    for (uint32_t i = 0; i < k_.flow.instructions().size() && !trouble_; ++i) look_at_addresses(i);
    follow_values();
    for (uint32_t i : comparisons_) {
      if (!is_null_test(at(i))) trouble({Answer::Unknown, "compared by " + m_.full_opcode(at(i))}, i);
    }
    if (trouble_) return *trouble_;
    return {Answer::Yes, "created by its thread, kept in local memory"};
  }

  // True if a stream that is used after instruction `from` is sure to be one that was created after that
  // instruction, too: every path to the use fills the place of the handle anew, and then reads it.
  bool is_created_after(uint32_t from, const StreamUse& use) {
    find_filled_places();
    const auto place = read_place(use.stream);
    if (!place) return false;
    const auto& definitions = k_.data.definitions(use.stream);
    const std::set<uint32_t> reads(definitions.begin(), definitions.end());
    // Behind a creation there is the load, and then the use.
    const std::set<uint32_t> creations = creations_in(*place);
    return !reaches(from, use.instruction, creations) &&
           std::ranges::all_of(creations,
                               [&](uint32_t creation) { return !reaches(creation, use.instruction, reads); });
  }

  // True if different calls created the streams behind the two handles: every call creates another stream.
  bool are_different(std::string_view a, std::string_view b) {
    find_filled_places();
    const auto one = creations_of(a), other = creations_of(b);
    return one && other && std::ranges::none_of(*one, [&](uint32_t i) { return other->contains(i); });
  }

  // True if a use may come after the stream's end.
  bool may_outlive(const StreamUse& end, const StreamUse& use) {
    return reaches(end.instruction, use.instruction, {}) && !are_different(end.stream, use.stream) &&
           !is_created_after(end.instruction, use);
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] bool visible() const { return trouble_ && trouble_->answer == Answer::No; }
  void trouble(Finding finding, uint32_t instruction) {
    if (visible() || (trouble_ && finding.answer == Answer::Unknown)) return;
    finding.detail += fmt::format(" ({})", m_.place(at(instruction).head));
    trouble_ = std::move(finding);
  }

  // ---- where the value comes from ----

  void follow_back(std::string_view reg) {
    if (!handles_.insert(reg).second) return;
    const auto& writers = k_.data.definitions(reg);
    if (writers.empty()) trouble_ = Finding{Answer::Unknown, "the register is never written"};
    for (uint32_t d : writers) origin(d);
  }

  void origin(uint32_t i) {
    const Statement& s = at(i);
    const bool copies = m_.is(s.head, "mov") || m_.is(s.head, "selp");
    if (m_.is(s.head, "ld") && s.operands.size() == 2) {
      loaded(i);
    } else if (!copies) {
      trouble({Answer::Unknown, "computed by " + m_.full_opcode(s)}, i);
    } else {
      for (size_t operand = 1; operand < std::min<size_t>(s.operands.size(), 3); ++operand) {
        const std::string_view name = m_.text(s.operands[operand]);
        if (s.operands[operand].size() == 1 && k_.data.names().is_register(name)) {
          follow_back(name);
        } else {
          trouble({Answer::Unknown, "it may be the constant " + m_.compact(s.operands[operand])}, i);
        }
      }
    }
  }

  void loaded(uint32_t i) {
    const Statement& s = at(i);
    if (const auto place = local_.of_memory(s, 1)) {
      places_.push_back(*place);
      return;
    }
    bool shared_by_threads = false;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view space = m_.text(t);
      shared_by_threads = shared_by_threads || space == ".global" || space == ".const" || space == ".param" ||
                          space.starts_with(".shared");
    }
    trouble({shared_by_threads ? Answer::No : Answer::Unknown, "read by " + m_.full_opcode(s)}, i);
  }

  // Handles stand where the runtime was told to put them, and all of the operand's sources must be such.
  void find_filled_places() {
    filled_.clear(), fills_.clear(), creations_.clear();
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Statement& s = at(i);
      if (!is_call_argument(s) || !is_stream_create(callee_of(i))) continue;
      const auto place = local_.of(m_.text(s.operands[1]));
      if (!place) continue;
      filled_.push_back(*place);
      fills_.emplace_back(i, *place);
      if (!predicated_.contains(k_.flow.instructions()[i].scope)) creations_.emplace_back(i, *place);
    }
    for (const LocalPlace& place : places_) {
      const bool created = std::any_of(filled_.begin(), filled_.end(),
                                       [&](const LocalPlace& filled) { return overlap(filled, place); });
      if (!created) trouble_ = Finding{Answer::Unknown, "no stream is created where it is read"};
    }
  }

  // ---- where addresses of local variables go ----

  [[nodiscard]] bool is_call_argument(const Statement& s) const {
    return m_.is(s.head, "st") && m_.has_modifier(s, ".param") && s.operands.size() == 2;
  }
  [[nodiscard]] std::string_view callee_of(uint32_t i) const {
    const auto call = calls_.find(k_.flow.instructions()[i].scope);
    return call == calls_.end() || !call->second.direct ? std::string_view() : call->second.callee;
  }
  [[nodiscard]] bool holds_handle(const LocalPlace& place) const {
    return std::any_of(filled_.begin(), filled_.end(),
                       [&](const LocalPlace& filled) { return overlap(filled, place); });
  }
  // Two objects of one variable (compilers put all locals into one) are not told apart by their addresses,
  // only by what is done with these.
  [[nodiscard]] bool is_handle_variable(std::string_view name) {
    const auto place = local_.of(name);
    return place && std::any_of(filled_.begin(), filled_.end(),
                                [&](const LocalPlace& filled) { return filled.variable == place->variable; });
  }

  void look_at_addresses(uint32_t i) {
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    for (size_t n = 0; n < s.operands.size(); ++n) {
      if (m_.is(s.operands[n].first, "[")) {
        memory_operand(i, n);
        continue;
      }
      for (uint32_t t = s.operands[n].first; t < s.operands[n].last; ++t) {
        if (m_.tokens[t].kind != ptx::TokenKind::Identifier || !is_handle_variable(m_.text(t))) continue;
        if (is_call_argument(s)) {
          const std::string_view callee = callee_of(i);
          if (!is_stream_create(callee) && !is_known_external(callee) && !stays_beside_handles(i))
            trouble({Answer::Unknown, fmt::format("its address is passed to {}", callee)}, i);
        } else if (opcode == "st" || !is_address_step(s)) {
          trouble({Answer::Unknown, "its address goes through " + m_.full_opcode(s)}, i);
        }
      }
    }
  }

  // True if the call that this argument is for does nothing with the address but touch other objects.
  bool stays_beside_handles(uint32_t i) {
    const Statement& s = at(i);
    const auto parameter = parse_address(m_, s.operands[0]);
    const auto place = s.operands[1].size() == 1 ? local_.of(m_.text(s.operands[1])) : std::nullopt;
    const auto call = calls_.find(k_.flow.instructions()[i].scope);
    if (!parameter || parameter->offset != 0 || !place || !place->offset || call == calls_.end())
      return false;
    const auto& parameters = call->second.parameters;
    const auto number = std::ranges::find(parameters, parameter->base) - parameters.begin();
    const auto reached = call->second.direct
                             ? reach_of_argument(m_, call->second.callee, static_cast<size_t>(number))
                             : std::nullopt;
    return reached && std::ranges::none_of(*reached, [&](const Reach& reach) {
             return holds_handle({place->variable, *place->offset + reach.first, reach.last - reach.first});
           });
  }

  // Instructions whose result LocalAddresses knows, or that have none.
  bool is_address_step(const Statement& s) {
    if (m_.is(s.head, "setp")) return true;
    return !s.operands.empty() && s.operands[0].size() == 1 && local_.of(m_.text(s.operands[0]));
  }

  // Memory that may hold handles: plain loads give handles, plain stores put values there.
  void memory_operand(uint32_t i, size_t n) {
    const Statement& s = at(i);
    const auto place = local_.of_memory(s, n);
    if (!place || !holds_handle(*place)) return;
    if (s.operands.size() != 2) {
      trouble({Answer::Unknown, "its memory is accessed by " + m_.full_opcode(s)}, i);
    } else if (m_.is(s.head, "ld") && s.operands[0].size() == 1) {
      pending_.push_back(m_.text(s.operands[0]));
    } else if (m_.is(s.head, "st") && stores_constants(s)) {
      if (may_be_read(i, *place))
        trouble({Answer::Unknown, "it may be the constant " + m_.compact(s.operands[1])}, i);
    } else if (m_.is(s.head, "st") && s.operands[1].size() == 1 &&
               k_.data.names().is_register(m_.text(s.operands[1]))) {
      follow_back(m_.text(s.operands[1]));
    } else {
      trouble({Answer::Unknown, "its memory is accessed by " + m_.full_opcode(s)}, i);
    }
  }

  // `cudaStream_t s = nullptr;` in front of the creation.
  bool stores_constants(const Statement& s) const {
    return std::ranges::all_of(components(m_, s.operands[1]),
                               [&](const std::string& c) { return k_.data.constant(c).has_value(); });
  }

  // True if a value that this instruction stores to the place may still be there where a handle is read.
  bool may_be_read(uint32_t store, const LocalPlace& place) {
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Statement& s = at(i);
      if (!m_.is(s.head, "ld") || s.operands.size() != 2) continue;
      const auto read = local_.of_memory(s, 1);
      if (read && overlap(*read, place) && reaches(store, i, creations_in(*read))) return true;
    }
    return false;
  }

  // The creations that fill exactly this place.
  [[nodiscard]] std::set<uint32_t> creations_in(const LocalPlace& place) const {
    std::set<uint32_t> out;
    for (const auto& [creation, filled] : creations_) {
      const bool same = filled.variable == place.variable && filled.offset && filled.offset == place.offset;
      if (same && filled.bytes == place.bytes) out.insert(creation);
    }
    return out;
  }

  // The place that the stream is read from, if all loads read one place and only creations put handles there.
  std::optional<LocalPlace> read_place(std::string_view stream) {
    if (k_.flow.has_unknown_branch() || k_.data.is_ambiguous(stream)) return std::nullopt;
    std::optional<LocalPlace> out;
    for (uint32_t read : k_.data.definitions(stream)) {
      const Statement& load = at(read);
      const bool is_load = m_.is(load.head, "ld") && !load.predicated && load.operands.size() == 2;
      const auto place = is_load ? local_.of_memory(load, 1) : std::nullopt;
      const bool same = place && (!out || (out->variable == place->variable && out->offset &&
                                           out->offset == place->offset && out->bytes == place->bytes));
      if (!same || is_stored_to(*place)) return std::nullopt;
      out = place;
    }
    return out;
  }

  // The creations whose stream may be read for the use; nothing if they are not known.
  std::optional<std::set<uint32_t>> creations_of(std::string_view stream) {
    const auto place = read_place(stream);
    if (!place) return std::nullopt;
    const std::set<uint32_t> anew = creations_in(*place);
    const auto& reads = k_.data.definitions(stream);
    std::set<uint32_t> out;
    for (const auto& [creation, filled] : fills_) {
      if (!overlap(filled, *place)) continue;
      if (filled.offset != place->offset || filled.bytes != place->bytes) return std::nullopt;
      if (std::ranges::any_of(reads, [&](uint32_t read) { return reaches(creation, read, anew); }))
        out.insert(creation);
    }
    return out;
  }

  // True if a plain store puts anything but a constant into the place.
  bool is_stored_to(const LocalPlace& place) {
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Statement& s = at(i);
      if (!m_.is(s.head, "st") || s.operands.size() != 2 || is_call_argument(s) || stores_constants(s))
        continue;
      const auto stored = local_.of_memory(s, 0);
      if (stored && overlap(*stored, place)) return true;
    }
    return false;
  }

  // True if there is a path of at least one step that runs none of `without` in between.
  [[nodiscard]] bool reaches(uint32_t from, uint32_t to, const std::set<uint32_t>& without) const {
    if (k_.flow.has_unknown_branch()) return true;
    std::vector<bool> seen(k_.flow.blocks().size());
    std::vector<std::pair<uint32_t, uint32_t>> work = {{k_.flow.instructions()[from].block, from + 1}};
    while (!work.empty()) {
      auto [block, i] = work.back();
      work.pop_back();
      const BasicBlock& b = k_.flow.blocks()[block];
      for (; i < b.last && !without.contains(i); ++i) {
        if (i == to) return true;
      }
      if (i < b.last) continue;
      for (uint32_t next : b.successors) {
        if (!seen[next]) work.emplace_back(next, k_.flow.blocks()[next].first);
        seen[next] = true;
      }
    }
    return false;
  }

  // ---- where the value goes ----

  void follow_values() {
    pending_.insert(pending_.end(), handles_.begin(), handles_.end());
    std::set<std::string_view> seen;
    while (!pending_.empty() && !visible()) {
      const std::string_view reg = pending_.back();
      pending_.pop_back();
      if (!seen.insert(reg).second) continue;
      for (uint32_t use : k_.data.uses(reg)) used(use, reg);
    }
  }

  void used(uint32_t i, std::string_view reg) {
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "setp") {
      comparisons_.push_back(i);
    } else if ((opcode == "mov" || opcode == "selp") && s.operands.size() > 1) {
      if (s.operands[0].size() == 1) pending_.push_back(m_.text(s.operands[0]));
      if (s.operands[0].size() != 1) trouble({Answer::Unknown, "taken apart"}, i);
    } else if (is_call_argument(s)) {
      if (!idioms().is_device_runtime(callee_of(i)) && !is_known_external(callee_of(i)))
        trouble({Answer::Unknown, fmt::format("passed to {}", callee_of(i))}, i);
    } else if (opcode == "st") {
      stored(i);
    } else if (opcode == "shfl" || opcode == "atom" || opcode == "red" || opcode == "match") {
      trouble({Answer::No, "given to other threads by " + m_.full_opcode(s)}, i);
    } else {
      trouble({Answer::Unknown, fmt::format("{} is used by {}", reg, m_.full_opcode(s))}, i);
    }
  }

  void stored(uint32_t i) {
    const Statement& s = at(i);
    if (const auto place = local_.of_memory(s, 0)) {
      if (!holds_handle(*place)) trouble({Answer::Unknown, "copied to another variable"}, i);
      return;
    }
    const auto address = parse_address(m_, s.operands[0]);
    const bool argument = address && std::any_of(k_.sites.begin(), k_.sites.end(), [&](const Site& site) {
                            return site.buffer == address->base;
                          });
    const bool others = argument || m_.has_modifier(s, ".global") || m_.has_modifier(s, ".shared") ||
                        m_.has_modifier(s, ".shared::cta");
    trouble({others ? Answer::No : Answer::Unknown,
             argument ? "passed to a child" : "stored by " + m_.full_opcode(s)},
            i);
  }

  // True for a comparison with null: its result is the same for every handle.
  bool is_null_test(const Statement& s) const {
    const bool equality =
        !s.modifiers.empty() && (m_.is(s.modifiers.first, ".eq") || m_.is(s.modifiers.first, ".ne"));
    return equality && s.operands.size() == 3 && k_.data.constant(m_.compact(s.operands[2])) == 0;
  }

  const FlowFacts& k_;
  const Module& m_;
  LocalAddresses local_;
  std::map<const Statement*, Call> calls_;                  // by scope
  std::set<const Statement*> predicated_;                   // scopes of calls that not all threads make
  std::vector<std::pair<uint32_t, LocalPlace>> fills_;      // the instruction that passes the place
  std::vector<std::pair<uint32_t, LocalPlace>> creations_;  // the fills by calls that all threads make
  std::vector<uint32_t> comparisons_;
  std::set<std::string_view> handles_;  // registers the operand's value comes through
  std::vector<LocalPlace> places_;      // where it is loaded from
  std::vector<LocalPlace> filled_;      // where streams are created
  std::vector<std::string_view> pending_;
  std::optional<Finding> trouble_;
};

}  // namespace

Finding owns_stream(const FlowFacts& kernel, std::string_view operand) {
  return Ownership(kernel).run(operand);
}

Finding owns_all_streams(const FlowFacts& kernel, const std::vector<std::string>& addresses) {
  return Ownership(kernel).run_all(addresses);
}

bool is_created_after(const FlowFacts& kernel, uint32_t from, const Site& second) {
  return Ownership(kernel).is_created_after(from, {second.stream, kernel.flow.index_of(second.launch_call)});
}

bool are_different_streams(const FlowFacts& kernel, const Site& a, const Site& b) {
  return Ownership(kernel).are_different(a.stream, b.stream);
}

std::optional<StreamUse> used_after_end(const FlowFacts& kernel, const std::vector<StreamUse>& ends,
                                        const std::vector<StreamUse>& launches) {
  Ownership ownership(kernel);
  for (const StreamUse& end : ends) {
    for (const auto* uses : {&ends, &launches}) {
      const auto late =
          std::ranges::find_if(*uses, [&](const StreamUse& use) { return ownership.may_outlive(end, use); });
      if (late != uses->end()) return *late;
    }
  }
  return std::nullopt;
}

std::string print_stream_ownership(const FlowFacts& kernel) {
  std::string out;
  for (const Site& site : kernel.sites) {
    if (!kernel.data.names().is_register(site.stream) || kernel.data.constant(site.stream)) continue;
    out += fmt::format("stream {} of the launch at {} is private: {}\n", site.stream,
                       ptx::place(site.position), to_text(owns_stream(kernel, site.stream)));
  }
  return out;
}

}  // namespace klap::analysis
