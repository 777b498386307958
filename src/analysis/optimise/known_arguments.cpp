#include "analysis/optimise/known_arguments.h"

#include <algorithm>

#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

// True if the register that the parent stores has the stored value already where the buffer is asked for.
bool is_known_before(const FunctionFacts& parent, const Site& site, const Argument& argument) {
  const Values& values = parent.values();
  const uint32_t store = values.flow.index_of(argument.store);
  const uint32_t ask = values.flow.index_of(site.get_call);
  if (store == ControlFlow::npos || ask == ControlFlow::npos) return false;
  const uint32_t reg = values.registers.find(store, argument.source);
  if (reg == VirtualRegisters::kNone) return false;
  const VirtualRegister& found = values.registers[reg];
  // Its name must mean the same there.
  if (std::ranges::count(values.registers.all(), found.name, &VirtualRegister::name) != 1) return false;
  const ptx::Statement* scope = values.flow.enclosing(site.get_scope);
  while (scope != nullptr && scope != found.scope) scope = values.flow.enclosing(scope);
  if (scope == nullptr) return false;
  for (uint32_t i = 0; i < values.flow.instructions().size(); ++i) {
    for (const Access& access : values.registers.accesses(i)) {
      if (access.reg == reg && access.written && values.flow.can_follow(ask, i)) return false;
    }
  }
  return true;
}

bool writes(const FunctionFacts& parent, const ptx::Statement& s, const std::string& name) {
  const Registers registers = registers_of(parent.module, s, parent.data.names());
  return std::ranges::find(registers.written, name) != registers.written.end();
}

// True if the record may be made at the launch call. In the described form there must be one way between the
// two calls.
bool could_wait(const FunctionFacts& parent, const Site& site) {
  const ControlFlow& flow = parent.flow;
  const ptx::Statement* const scope = flow.enclosing(site.launch_scope);
  const uint32_t ask = flow.index_of(site.get_call), launch = flow.index_of(site.launch_call);
  if (flow.enclosing(site.get_scope) != scope || flow.has_unknown_branch() || flow.in_loop(ask)) return false;
  for (const Argument& argument : site.arguments) {
    const uint32_t store = flow.index_of(argument.store);
    if (store == ControlFlow::npos || flow.instructions()[store].scope != scope) return false;
  }
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (!flow.can_follow(ask, i) || !flow.can_follow(i, launch)) continue;
    const ptx::Statement& s = *flow.instructions()[i].statement;
    for (const std::string& extent : site.grid) {
      if (writes(parent, s, extent)) return false;
    }
    for (const Argument& argument : site.arguments) {
      if (flow.can_follow(flow.index_of(argument.store), i) && writes(parent, s, argument.source))
        return false;
    }
  }
  return true;
}

}  // namespace

const Argument* passed_argument(const Site& site, uint32_t offset, uint32_t bytes) {
  const Argument* found = nullptr;
  for (const Argument& argument : site.arguments) {
    if (argument.offset >= offset + bytes || offset >= argument.offset + argument.bytes) continue;
    if (found != nullptr || argument.offset != offset || argument.bytes != bytes) return nullptr;
    found = &argument;
  }
  return found;
}

bool is_known_argument(const FunctionFacts& parent, const Site& site, const Argument& argument, bool may_wait,
                       bool& at_launch) {
  if (ptx::integer_value(argument.source)) return true;
  // A store takes a register that is wider than what it stores, a move does not.
  const Values& values = parent.values();
  const uint32_t store = values.flow.index_of(argument.store);
  if (store == ControlFlow::npos) return false;
  const uint32_t reg = values.registers.find(store, argument.source);
  if (reg == VirtualRegisters::kNone || values.registers[reg].lanes != 1 ||
      ptx::type_bytes(values.registers[reg].type) != argument.bytes)
    return false;
  if (site.idiom->form != LaunchForm::Described || is_known_before(parent, site, argument)) return true;
  at_launch = true;
  return may_wait && could_wait(parent, site);
}

bool could_record_at_launch(const FunctionFacts& parent, const Site& site) {
  return site.idiom->form == LaunchForm::Documented || could_wait(parent, site);
}

}  // namespace klap::analysis
