#include "analysis/facts/memory_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::TokenRange;

using Uses = std::map<MemoryRoot, MemoryUse>;
using Roots = std::set<MemoryRoot>;
using Kind = MemoryRoot::Kind;

// More roots than this are as good as unknown.
constexpr size_t kMostRoots = 16;

MemoryRoot unknown(std::string space = "") { return {Kind::Unknown, 0, 0, "", std::move(space)}; }

constexpr MemoryUse kAnyUse = {true, false, true, true};

// The effects of functions that others call, each computed once.
class Callees {
 public:
  // Null while the function's own effects are being computed: it is recursive.
  const Uses* of(const Module& module, const Function& callee);

 private:
  std::map<const Function*, std::unique_ptr<Uses>> uses_;
};

}  // namespace

// Follows the addresses of one function.
class MemoryTracer {
 public:
  MemoryTracer(const FunctionFacts& function, Callees& callees)
      : f_(function), m_(function.module), callees_(callees) {
    index_calls();
    find_spaces();
  }

  Uses run() {
    propagate();
    find_numbers();
    for (const FlatInstruction& f : f_.flow.instructions()) {
      instruction(*f.statement);
      keep(*f.statement);
    }
    for (const auto& [statement, scope] : calls_) {
      call(*statement, *scope);
      keep(*statement);
    }
    return std::move(all_);
  }

  // After run().
  std::map<const Statement*, Uses> take_by_instruction() { return std::move(by_instruction_); }

  // The roots of every register, and of the names of variables that stand for their addresses. Valid after
  // run().
  [[nodiscard]] std::map<std::string, Roots, std::less<>> names() const {
    std::map<std::string, Roots, std::less<>> out;
    for (const auto& [name, roots] : roots_)
      out.emplace(name, f_.data.is_ambiguous(name) ? Roots{unknown()} : roots);
    for (const ptx::Variable& v : m_.variables) {
      if (const auto root = root_of_name(v.name)) out.emplace(v.name, Roots{*root});
    }
    return out;
  }

 private:
  // ---- names ----

  void index_calls() {
    for (const FlatInstruction& f : f_.flow.instructions()) {
      if (m_.is(f.statement->head, "call")) calls_.emplace_back(f.statement, f.scope);
      if (m_.is(f.statement->head, "call")) call_in_scope_[f.scope] = f.statement;
      scope_of_[f.statement] = f.scope;
    }
  }

  // Spaces of variables that the body declares, and of pointers that the parameter list does.
  void find_spaces() {
    ptx::for_each_statement(f_.function.body, [&](const Statement& s) {
      if (s.kind != ptx::StatementKind::Directive) return;
      std::string space;
      for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
        const std::string_view text = m_.text(t);
        if (text == ".local" || text == ".shared" || text == ".param" || text == ".global" ||
            text == ".const")
          space = text.substr(1);
        if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
        if (!space.empty()) local_spaces_[std::string(text)] = space;
        return;
      }
    });
    for (const ptx::Parameter& p : f_.function.parameters) {
      std::string space;
      for (uint32_t t = p.tokens.first; t + 1 < p.tokens.last; ++t) {
        const std::string_view next = m_.text(t + 1);
        if (m_.is(t, ".ptr") &&
            (next == ".global" || next == ".shared" || next == ".const" || next == ".local"))
          space = next.substr(1);
      }
      parameter_spaces_.push_back(space);
    }
  }

  // The root of a variable's address; nothing for names that are no memory.
  [[nodiscard]] std::optional<MemoryRoot> root_of_name(std::string_view name) const {
    const auto local = local_spaces_.find(name);
    if (local != local_spaces_.end()) {
      if (local->second == "local" || local->second == "param")
        return MemoryRoot{Kind::Local, 0, 0, "", "local"};
      return MemoryRoot{Kind::Symbol, 0, 0, std::string(name), local->second};
    }
    if (parameter_index(name)) return MemoryRoot{Kind::Local, 0, 0, "", "local"};
    const ptx::Variable* v = m_.find_variable(name);
    if (v == nullptr) return std::nullopt;
    const bool dynamic = v->space == ".shared" && v->linkage == ptx::Linkage::Extern;
    return MemoryRoot{Kind::Symbol, 0, 0, dynamic ? "dynamic shared memory" : v->name, v->space.substr(1)};
  }
  [[nodiscard]] std::optional<uint32_t> parameter_index(std::string_view name) const {
    const auto& parameters = f_.function.parameters;
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == name) return i;
    }
    return std::nullopt;
  }

  // ---- roots of registers ----

  // A register's roots only grow, and only up to a few, so each instruction is looked at a few times.
  void propagate() {
    std::vector<uint32_t> work(f_.flow.instructions().size());
    for (uint32_t i = 0; i < work.size(); ++i) work[i] = i;
    while (!work.empty()) {
      const Statement& s = *f_.flow.instructions()[work.back()].statement;
      work.pop_back();
      for (std::string_view r : registers_of(m_, s, f_.data.names()).written) {
        Roots& roots = roots_[r];
        const size_t before = roots.size();
        const Roots more = result_roots(s, r);
        roots.insert(more.begin(), more.end());
        if (roots.size() > kMostRoots) roots = {unknown()};
        // A register once unknown stays so.
        if (saturated_.contains(r)) roots = {unknown()};
        if (roots.size() == before || saturated_.contains(r)) continue;
        if (roots.size() < before) saturated_.insert(r);
        const auto& uses = f_.data.uses(r);
        work.insert(work.end(), uses.begin(), uses.end());
      }
    }
  }

  Roots result_roots(const Statement& s, std::string_view reg) const {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "setp" || opcode == "call") return {};
    if (ptx::opcode_of(opcode).result == ptx::OpcodeResult::Memory) return loaded_roots(s, reg);
    const bool copies = opcode == "mov" || opcode == "cvta" || opcode == "shfl";
    if (!copies && !instruction_effects(m_, s).empty()) return {unknown()};
    Roots out;
    for (size_t n = 1; n < s.operands.size(); ++n) {
      const Roots more = operand_roots(s.operands[n]);
      out.insert(more.begin(), more.end());
    }
    return out;
  }

  // ---- numbers ----

  // Values that are computed from loaded ones narrower than an address. Added to a pointer, such a number is
  // an index. But a register that has a pointer on one way and a number on another holds an address in both:
  // programs pass pointers in two words.
  void find_numbers() {
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (const FlatInstruction& f : f_.flow.instructions()) {
        if (!is_number(*f.statement)) continue;
        for (std::string_view r : registers_of(m_, *f.statement, f_.data.names()).written)
          is_new = numbers_.insert(r).second || is_new;
      }
    }
    bool is_any_address = false;
    for (uint32_t i = 0; i < f_.flow.instructions().size(); ++i) {
      const Statement& s = *f_.flow.instructions()[i].statement;
      if (!is_number(s)) continue;
      for (std::string_view r : registers_of(m_, s, f_.data.names()).written) {
        const auto roots = roots_.find(r);
        const bool is_pointer_too = roots != roots_.end() && !roots->second.empty();
        if (!is_pointer_too || is_replaced(i, r)) continue;
        is_any_address = roots->second.insert(unknown()).second || is_any_address;
      }
    }
    if (is_any_address) propagate();
  }

  // True if nothing but the next instruction of the block that writes the register reads what this one wrote.
  bool is_replaced(uint32_t i, std::string_view reg) const {
    const auto& all = f_.flow.instructions();
    for (uint32_t next = i + 1; next < all.size() && all[next].block == all[i].block; ++next) {
      const Registers names = registers_of(m_, *all[next].statement, f_.data.names());
      if (std::ranges::find(names.written, reg) != names.written.end())
        return !all[next].statement->predicated;
      if (std::ranges::find(names.read, reg) != names.read.end()) return false;
    }
    return false;
  }

  bool is_number(const Statement& s) const {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "setp" || opcode == "call") return false;
    if (ptx::opcode_of(opcode).result == ptx::OpcodeResult::Memory) return loads_number(s);
    static constexpr std::array kHandOn = {"mov", "cvta", "shfl", "selp", "slct", "min", "max"};
    const bool hands_on = std::ranges::find(kHandOn, opcode) != kHandOn.end();
    bool has_number = false, has_pointer = false;
    for (size_t n = 1; n < s.operands.size(); ++n) {
      if (opcode == "shfl" && n > 1) break;  // the lane
      has_pointer = has_pointer || (!hands_on && !operand_roots(s.operands[n]).empty());
      for (uint32_t t = s.operands[n].first; t < s.operands[n].last; ++t)
        has_number = has_number || numbers_.contains(m_.text(t));
    }
    return has_number && !has_pointer;
  }

  bool loads_number(const Statement& s) const {
    const uint32_t bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    return bytes != 0 && bytes < (m_.address_size == 32 ? 4U : 8U);
  }

  Roots operand_roots(TokenRange operand) const {
    Roots out;
    for (uint32_t t = operand.first; t < operand.last; ++t) {
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      const std::string_view text = m_.text(t);
      const auto known = roots_.find(text);
      if (known != roots_.end()) {
        out.insert(known->second.begin(), known->second.end());
      } else if (const auto root = f_.data.names().is_register(text) ? std::nullopt : root_of_name(text)) {
        out.insert(*root);
      }
    }
    return out;
  }

  // A value narrower than an address is no pointer; a wider one from memory may be any.
  Roots loaded_roots(const Statement& s, std::string_view reg) const {
    if (loads_number(s)) return {};
    const uint32_t bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    const bool parameter = m_.is(s.head, "ld") && is_param(s) && s.operands.size() == 2;
    return parameter ? parameter_roots(s, reg, bytes) : Roots{unknown()};
  }

  [[nodiscard]] bool is_param(const Statement& s) const {
    return m_.has_modifier(s, ".param") || m_.has_modifier(s, ".param::entry") ||
           m_.has_modifier(s, ".param::func");
  }

  Roots parameter_roots(const Statement& s, std::string_view reg, uint32_t bytes) const {
    const auto address = parse_address(m_, s.operands[1]);
    if (!address) return {unknown()};
    if (const auto index = parameter_index(address->base)) {
      const auto parts = components(m_, s.operands[0]);
      const auto part = std::find(parts.begin(), parts.end(), reg);
      const auto at = static_cast<uint32_t>(address->offset + (part - parts.begin()) * bytes);
      return {MemoryRoot{Kind::Parameter, *index, at, "", parameter_spaces_[*index]}};
    }
    const auto scope = scope_of_.find(&s);
    const auto call = call_in_scope_.find(scope == scope_of_.end() ? nullptr : scope->second);
    if (call == call_in_scope_.end()) return {unknown()};
    const auto parsed = parse_call(m_, *call->second, f_.data.names());
    const bool buffer = parsed->direct && idioms().is_get_buffer(parsed->callee);
    return {buffer ? MemoryRoot{Kind::LaunchBuffer, 0, 0, "", ""} : unknown()};
  }

  // ---- accesses ----

  // Assigns the uses found since the last call to this instruction.
  void keep(const Statement& s) {
    if (uses_.empty()) return;
    Uses& own = by_instruction_[&s];
    for (const auto& [root, how] : uses_) {
      own[root].add(how);
      all_[root].add(how);
    }
    uses_.clear();
  }

  void use(const Roots& roots, const std::string& space, const MemoryUse& how) {
    if (roots.empty()) uses_[unknown(space)].add(how);
    for (MemoryRoot root : roots) {
      if (root.space.empty() && root.kind != Kind::LaunchBuffer) root.space = space;
      uses_[root].add(how);
    }
  }

  void instruction(const Statement& s) {
    const std::string_view opcode = m_.text(s.head);
    using enum EffectKind;
    for (EffectKind kind : instruction_effects(m_, s)) {
      // Operations of a warp that touch memory, such as loads of matrices, are unlisted, too.
      if (kind == UnlistedInstruction || kind == AsyncCopy || kind == BarrierObject ||
          kind == ClusterAccess) {
        uses_[unknown()].add(kAnyUse);
      }
    }
    if (instruction_effects(m_, s) == std::vector{Texture}) {
      const bool store = opcode == "sust" || opcode == "sured";
      uses_[unknown("texture")].add(store ? MemoryUse{false, false, true, opcode == "sured"}
                                          : MemoryUse{true, false, false, false});
    } else if (opcode == "ld" && !is_param(s)) {
      const bool nc = m_.has_modifier(s, ".nc");
      access(s, 1, {!nc, nc, false, false});
    } else if (opcode == "st" && !is_param(s)) {
      access(s, 0, {false, false, true, false});
    } else if (opcode == "atom") {
      access(s, 1, {false, false, false, true});
    } else if (opcode == "red") {
      access(s, 0, {false, false, false, true});
    }
  }

  void access(const Statement& s, size_t operand, const MemoryUse& how) {
    std::string space;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view text = m_.text(t);
      if (text == ".global" || text == ".const" || text == ".local") space = text.substr(1);
      if (text.starts_with(".shared")) space = "shared";
    }
    if (operand >= s.operands.size()) {
      uses_[unknown(space)].add(how);
      return;
    }
    use(operand_roots(s.operands[operand]), space, how);
  }

  // ---- calls ----

  void call(const Statement& statement, const Statement& scope) {
    const auto call = parse_call(m_, statement, f_.data.names());
    if (!call->direct) {
      uses_[unknown()].add(kAnyUse);
      return;
    }
    const Function* callee = m_.find_function(call->callee);
    if (callee != nullptr && callee->is_definition) {
      defined(*call, *callee, scope);
    } else if (idioms().is_device_runtime(call->callee)) {
      runtime(*call, scope);
    } else if (!is_known_external(call->callee)) {
      uses_[unknown()].add(kAnyUse);
    }
  }

  void defined(const Call& call, const Function& callee, const Statement& scope) {
    const Uses* effects = callees_.of(m_, callee);
    if (effects == nullptr) {
      uses_[unknown()].add(kAnyUse);
      return;
    }
    for (const auto& [root, how] : *effects) {
      if (root.kind == Kind::Local) continue;  // the callee's own
      if (root.kind != Kind::Parameter) {
        uses_[root].add(how);
        continue;
      }
      const bool passed = root.parameter < call.parameters.size();
      use(passed ? argument_roots(scope, call.parameters[root.parameter], root.offset) : Roots(), root.space,
          how);
    }
  }

  // The roots of what the call's scope stores at an offset of one of its parameters.
  Roots argument_roots(const Statement& scope, std::string_view parameter,
                       std::optional<uint32_t> offset) const {
    Roots out;
    for (const Statement& s : scope.body) {
      if (s.kind != ptx::StatementKind::Instruction || !m_.is(s.head, "st") || !is_param(s)) continue;
      const auto address = parse_address(m_, s.operands[0]);
      if (!address || address->base != parameter) continue;
      // A vector store covers several offsets; all its values may be meant.
      const bool vector = components(m_, s.operands[1]).size() > 1;
      if (offset && !vector && address->offset != *offset) continue;
      const Roots more = operand_roots(s.operands[1]);
      out.insert(more.begin(), more.end());
    }
    return out;
  }

  // Copies, sets and queries work on what they are given pointers to; a launch only on its buffer, and some
  // calls get nothing but handles.
  void runtime(const Call& call, const Statement& scope) {
    if (idioms().is_get_buffer(call.callee) || idioms().by_launch(call.callee) != nullptr) return;
    for (const char* on_handles : {"Destroy", "EventRecord", "WaitEvent"}) {
      if (call.callee.find(on_handles) != std::string_view::npos) return;
    }
    for (std::string_view parameter : call.parameters) {
      const Roots roots = argument_roots(scope, parameter, std::nullopt);
      if (!roots.empty()) use(roots, "", {true, false, true, false});
    }
  }

  const FunctionFacts& f_;
  const Module& m_;
  Callees& callees_;
  std::vector<std::pair<const Statement*, const Statement*>> calls_;  // with their scopes
  std::map<const Statement*, const Statement*> call_in_scope_, scope_of_;
  std::map<std::string, std::string, std::less<>> local_spaces_;
  std::vector<std::string> parameter_spaces_;
  std::map<std::string_view, Roots> roots_;
  std::set<std::string_view> numbers_;  // registers that may hold one
  std::set<std::string_view> saturated_;
  Uses uses_;  // of the instruction at hand
  Uses all_;
  std::map<const Statement*, Uses> by_instruction_;
};

namespace {

const Uses* Callees::of(const Module& module, const Function& callee) {
  const auto [entry, is_new] = uses_.emplace(&callee, nullptr);
  if (!is_new) return entry->second.get();
  const FunctionFacts facts(module, callee);
  auto uses = std::make_unique<Uses>(MemoryTracer(facts, *this).run());
  return (uses_[&callee] = std::move(uses)).get();
}

}  // namespace

void MemoryUse::add(const MemoryUse& other) {
  read = read || other.read;
  read_nc = read_nc || other.read_nc;
  written = written || other.written;
  updated = updated || other.updated;
}

MemoryEffects::MemoryEffects(const FunctionFacts& function) {
  Callees callees;
  MemoryTracer tracer(function, callees);
  uses_ = tracer.run();
  by_instruction_ = tracer.take_by_instruction();
  by_name_ = tracer.names();
}

std::set<MemoryRoot> MemoryEffects::roots_of(std::string_view operand) const {
  const auto found = by_name_.find(operand);
  return found == by_name_.end() ? Roots{} : found->second;
}

const std::map<MemoryRoot, MemoryUse>& MemoryEffects::uses_of(const Statement& instruction) const {
  static const Uses kNone;
  const auto found = by_instruction_.find(&instruction);
  return found == by_instruction_.end() ? kNone : found->second;
}

bool may_overlap(const MemoryRoot& a, const MemoryRoot& b) {
  if (!a.space.empty() && !b.space.empty() && a.space != b.space) return false;
  if (a.kind == Kind::Unknown || b.kind == Kind::Unknown) return true;
  if ((a.kind == Kind::LaunchBuffer) != (b.kind == Kind::LaunchBuffer)) return false;
  if (a.kind == Kind::Symbol && b.kind == Kind::Symbol) return a.name == b.name;
  return true;
}

bool MemoryEffects::may_change(const MemoryRoot& root) const {
  const auto own = uses_.find(root);
  if (own != uses_.end() && own->second.read_nc && !own->second.read && !own->second.changes()) return false;
  return std::any_of(uses_.begin(), uses_.end(), [&](const auto& entry) {
    return entry.second.changes() && may_overlap(root, entry.first);
  });
}

std::string to_text(const MemoryRoot& root) {
  std::string text;
  switch (root.kind) {
    case Kind::Unknown:
      text = "unknown";
      break;
    case Kind::Parameter:
      text = fmt::format("parameter {}", root.parameter);
      if (root.offset != 0) text += fmt::format("+{}", root.offset);
      break;
    case Kind::Symbol:
      text = root.name;
      break;
    case Kind::Local:
      return "local memory";
    case Kind::LaunchBuffer:
      return "launch arguments";
  }
  return root.space.empty() ? text : fmt::format("{} ({})", text, root.space);
}

std::string print_memory_effects(const FunctionFacts& function) {
  const MemoryEffects effects(function);
  std::string out;
  for (const auto& [root, use] : effects.uses()) {
    std::string how;
    const auto add = [&](bool is, const char* text) {
      if (is) how += (how.empty() ? "" : ", ") + std::string(text);
    };
    add(use.read, "read");
    add(use.read_nc, "read by .nc");
    add(use.written, "written");
    add(use.updated, "updated");
    out += fmt::format("{}: {}\n", to_text(root), how);
  }
  return out;
}

}  // namespace klap::analysis
