#include "analysis/order/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/effects/effects.h"
#include "analysis/order/guarded_updates.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using Kind = MemoryAccess::Kind;

// Memory that only the grid's own threads can reach, or that the runtime owns.
bool is_hidden(const MemoryRoot& root) {
  return root.kind == MemoryRoot::Kind::Local || root.kind == MemoryRoot::Kind::LaunchBuffer ||
         root.space == "local" || root.space == "shared";
}

bool is_parameter_access(const Module& m, const Statement& s) {
  return std::ranges::any_of(std::array{".param", ".param::entry", ".param::func"},
                             [&](const char* space) { return m.has_modifier(s, space); });
}

uint32_t accessed_bytes(const Module& m, const Statement& s) {
  const uint32_t lanes = m.has_modifier(s, ".v8")   ? 8
                         : m.has_modifier(s, ".v4") ? 4
                         : m.has_modifier(s, ".v2") ? 2
                                                    : 1;
  if (s.modifiers.empty()) return 0;
  return lanes * ptx::type_bytes(m.text(s.modifiers.last - 1));
}

// "add.u32": the operation and its type, without space and order. A scope that other blocks are not in stays:
// "cta.add.u32" of two blocks is a race where they run at a time, and so commutes with nothing.
std::string atomic_operation(const Module& m, const Statement& s) {
  static constexpr std::array kIrrelevant = {".global",  ".relaxed", ".acquire", ".release",
                                             ".acq_rel", ".gpu",     ".sys",     ".weak"};
  std::string out;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    if (std::ranges::find(kIrrelevant, modifier) == kIrrelevant.end()) out += modifier;
  }
  return out.empty() ? out : out.substr(1);
}

constexpr std::array kStrong = {EffectKind::StrongLoad, EffectKind::StrongStore, EffectKind::Atomic,
                                EffectKind::Reduction};

class Finder {
 public:
  Finder(const FunctionFacts& kernel, const MemoryEffects& effects)
      : k_(kernel), m_(kernel.module), effects_(effects) {}

  Footprint run() {
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) instruction(i);
    find_visible();
    return std::move(out_);
  }

 private:
  void instruction(uint32_t i) {
    const Statement& s = *k_.flow.instructions()[i].statement;
    const std::string_view opcode = m_.text(s.head);
    std::set<MemoryRoot> roots;
    MemoryUse use;
    for (const auto& [root, how] : effects_.uses_of(s)) {
      if (is_hidden(root)) continue;
      roots.insert(root);
      use.add(how);
    }
    if (roots.empty()) return;
    MemoryAccess access;
    access.instruction = i;
    access.place = fmt::format("{} ({})", m_.full_opcode(s), m_.place(s.head));
    access.roots = std::move(roots);
    if (opcode == "ld" && !is_parameter_access(m_, s) && s.operands.size() >= 2) {
      add(access, Kind::Read, 1, std::nullopt);
    } else if (opcode == "st" && !is_parameter_access(m_, s) && s.operands.size() >= 2) {
      add(access, Kind::Write, 0, 1);
    } else if ((opcode == "red" && s.operands.size() >= 2) || (opcode == "atom" && s.operands.size() >= 3)) {
      atomic(access, s);
    } else {
      unknown_form(access, use);
    }
  }

  void add(MemoryAccess access, Kind kind, std::optional<uint32_t> address, std::optional<uint32_t> value) {
    const Statement& s = *k_.flow.instructions()[access.instruction].statement;
    access.kind = kind;
    access.is_strong = kind == Kind::Atomic || is_strong(s);
    access.bytes = accessed_bytes(m_, s);
    access.address = address;
    access.value = value;
    out_.accesses.push_back(std::move(access));
  }

  void atomic(MemoryAccess& access, const Statement& s) {
    const bool reduces = m_.is(s.head, "red");
    access.operation = atomic_operation(m_, s);
    access.returns = !reduces && is_used(s);
    // Compare-and-swap has one operand more, and the value it writes depends on the value it finds.
    const bool is_plain = s.operands.size() == (reduces ? 2u : 3u);
    add(access, Kind::Atomic, reduces ? 0 : 1,
        is_plain ? std::optional<uint32_t>(reduces ? 1 : 2) : std::nullopt);
  }

  [[nodiscard]] bool is_used(const Statement& s) const {
    return std::ranges::any_of(components(m_, s.operands[0]), [&](const std::string& target) {
      return target != "_" && (k_.data.is_ambiguous(target) || !k_.data.uses(target).empty());
    });
  }

  [[nodiscard]] bool is_strong(const Statement& s) const {
    const auto effects = instruction_effects(m_, s);
    return std::ranges::any_of(
        kStrong, [&](EffectKind kind) { return std::ranges::find(effects, kind) != effects.end(); });
  }

  // Handles the accesses of a callee, and of instructions whose operands are not known here.
  void unknown_form(const MemoryAccess& access, const MemoryUse& use) {
    const Effects& called = k_.calls().closure(k_.function);
    MemoryAccess found = access;
    found.is_strong = std::ranges::any_of(kStrong, [&](EffectKind kind) { return called.has(kind); });
    if (use.read || use.read_nc) {
      found.kind = Kind::Read;
      out_.accesses.push_back(found);
    }
    if (use.written || use.updated) {
      found.kind = use.written ? Kind::Write : Kind::Atomic;
      found.returns = true;
      out_.accesses.push_back(found);
    }
  }

  // Output is seen in the order in which it was made. Freed memory may be allocated again at once.
  void find_visible() {
    for (const Effect& effect : k_.calls().closure(k_.function).all()) {
      const bool prints = effect.kind == EffectKind::Printing;
      const bool frees = effect.kind == EffectKind::Allocation &&
                         (effect.what == "free" || effect.what.find("Free") != std::string::npos);
      if (!prints && !frees) continue;
      out_.visible = fmt::format("{} ({})", effect.what, m_.place(effect.token));
      return;
    }
  }

  const FunctionFacts& k_;
  const Module& m_;
  const MemoryEffects& effects_;
  Footprint out_;
};

// Follows an address back to every value that it depends on as data.
class SourceFinder {
 public:
  explicit SourceFinder(const FunctionFacts& kernel) : k_(kernel), m_(kernel.module) {}

  AddressSources run(uint32_t instruction, uint32_t operand) {
    names_in(k_.flow.instructions()[instruction].statement->operands[operand]);
    follow_all();
    in_load_ = true;
    seen_.clear();
    while (!in_loads_.empty()) {
      work_ = std::move(in_loads_);
      in_loads_.clear();
      follow_all();
    }
    return std::move(out_);
  }

 private:
  void follow_all() {
    while (!work_.empty()) {
      const std::string_view name = work_.back();
      work_.pop_back();
      if (seen_.insert(name).second) follow(name);
    }
  }

  void names_in(ptx::TokenRange range) {
    for (uint32_t t = range.first; t < range.last; ++t) name_at(t);
  }
  void name_at(uint32_t token) {
    if (m_.tokens[token].kind != ptx::TokenKind::Identifier) return;
    const std::string_view text = m_.text(token);
    if (k_.data.names().is_register(text)) work_.push_back(text);
  }

  void follow(std::string_view name) {
    const auto& definitions = k_.data.definitions(name);
    if (k_.data.is_ambiguous(name) || definitions.empty()) out_.unknown = true;
    for (const uint32_t d : definitions) definition(d);
  }

  void definition(uint32_t i) {
    const Statement& s = *k_.flow.instructions()[i].statement;
    const std::string_view opcode = m_.text(s.head);
    if (s.predicated) name_at(s.predicate);
    if (opcode == "ld") {
      load(i, s);
    } else if (opcode == "atom") {
      out_.atomics.insert(i);
    } else if (ptx::opcode_of(opcode).is_computation()) {
      for (size_t n = 1; n < s.operands.size(); ++n) names_in(s.operands[n]);
    } else {
      out_.unknown = true;
    }
  }

  void load(uint32_t i, const Statement& s) {
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view text = m_.text(t);
      if (text == ".local" || text.starts_with(".shared")) out_.unknown = true;
    }
    if (is_parameter_access(m_, s)) {
      // The result of a call is loaded like a parameter of the kernel.
      const auto address = s.operands.size() == 2 ? parse_address(m_, s.operands[1]) : std::nullopt;
      const bool is_own =
          address && std::ranges::any_of(k_.function.parameters,
                                         [&](const ptx::Parameter& p) { return p.name == address->base; });
      if (!is_own) out_.unknown = true;
      if (!in_load_) out_.parameters.insert(i);
      return;
    }
    out_.loads.insert(i);
    if (s.operands.size() < 2) return;
    for (uint32_t t = s.operands[1].first; t < s.operands[1].last; ++t) {
      const std::string_view text = m_.text(t);
      if (k_.data.names().is_register(text)) in_loads_.push_back(text);
    }
  }

  const FunctionFacts& k_;
  const Module& m_;
  AddressSources out_;
  std::set<std::string_view> seen_;
  std::vector<std::string_view> work_, in_loads_;
  bool in_load_ = false;  // the address of a load is being followed now
};

}  // namespace

Footprint footprint_of(const FunctionFacts& kernel, const MemoryEffects& effects) {
  Footprint footprint = Finder(kernel, effects).run();
  join_guards(footprint, kernel);
  return footprint;
}

AddressSources address_sources(const FunctionFacts& kernel, uint32_t instruction, uint32_t operand) {
  return SourceFinder(kernel).run(instruction, operand);
}

}  // namespace klap::analysis
