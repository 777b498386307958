// Fuzz target: PTX text, from the lexer to the launch sites.
//
// A text that is not PTX is an Error(Parse) with its place. One that is gives a tree whose parts fit together
// and whose print is the text, and every analysis of its functions ends with an answer or an Error;
// Error(Internal), a broken invariant of klap_jit's own, counts as a finding.
#include <cstdint>
#include <memory>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/synchronisation/exits.h"
#include "ptx/edit.h"
#include "ptx/tree.h"
#include "require.h"
#include "support/error.h"

namespace klap {
namespace {

using fuzz::require;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenRange;

void require_inside(TokenRange inner, TokenRange outer, const char* what) {
  require(inner.first <= inner.last && outer.first <= inner.first && inner.last <= outer.last, what);
}

void check_instruction(const Module& module, const Statement& s) {
  require_inside({s.head, s.head + 1}, s.tokens, "an opcode lies in its instruction");
  require_inside(s.modifiers, s.tokens, "modifiers lie in their instruction");
  uint32_t at = s.modifiers.last;
  for (const TokenRange operand : s.operands) {
    require_inside(operand, {at, s.tokens.last}, "operands lie in their instruction, one after the other");
    at = operand.last;
  }
  require(module.is(s.tokens.last - 1, ";"), "an instruction ends with a semicolon");
  require(module.full_opcode(s).starts_with(module.text(s.head)), "a full opcode begins with the opcode");
}

// The statements of a scope fill it without gaps, so nothing of the text is lost in the tree.
void check_scope(const Module& module, const Statement& scope) {
  uint32_t at = scope.tokens.first + 1;
  for (const Statement& s : scope.body) {
    require(s.tokens.first == at && s.tokens.last > at, "a statement follows the one before it");
    at = s.tokens.last;
    if (s.kind == StatementKind::Block) check_scope(module, s);
    if (s.kind == StatementKind::Instruction) check_instruction(module, s);
  }
  require(at + 1 == scope.tokens.last && module.is(at, "}"), "statements fill their scope");
}

void check_tree(const Module& module) {
  const auto end = static_cast<uint32_t>(module.tokens.size() - 1);
  uint32_t at = 0;
  for (const ptx::Item& item : module.items) {
    require(item.tokens.first == at && item.tokens.last > at, "an item follows the one before it");
    at = item.tokens.last;
  }
  require(at == end, "items fill their module");
  for (const ptx::Function& f : module.functions) {
    require_inside(f.tokens, {0, end}, "a function lies in its module");
    require_inside(f.header, f.tokens, "a header lies in its function");
    require_inside(f.attributes, f.header, "attributes lie in their header");
    require(module.find_function(f.name) != nullptr, "a function is found by its name");
    for (const ptx::Parameter& p : f.parameters)
      require_inside(p.tokens, f.header, "parameters lie in the header");
    if (f.is_definition) check_scope(module, f.body);
  }
}

// Replacing every token by its own text changes nothing.
void check_edits(const Module& module) {
  const auto end = static_cast<uint32_t>(module.tokens.size() - 1);
  if (end == 0) return;
  ptx::Edits edits(module);
  for (uint32_t token = 0; token < end; ++token) {
    edits.insert_before(token, "");
    edits.replace({token, token + 1}, std::string(module.text(token)));
  }
  require(edits.apply({0, end}) == module.text(TokenRange{0, end}),
          "edits that change nothing change nothing");
}

template <class Act>
void survive(Act act) {
  try {
    act();
  } catch (const Error& e) {
    require(e.code() != ErrorCode::Internal, "no invariant of the library is broken");
  }
}

// The analyses that every kernel goes through, with the printers, which ask for everything there is to know.
void analyse_flow(const analysis::ControlFlow& flow) {
  const analysis::Dominance dominance(flow);
  const analysis::Loops loops(flow);
  const analysis::VirtualRegisters registers(flow);
  const analysis::Liveness liveness(flow, registers);
  const analysis::ReachingDefinitions reaching(flow, registers, liveness);
  static_cast<void>(print_flow(flow));
  static_cast<void>(print_flow_dot(flow));
  static_cast<void>(print_dominance(flow, dominance));
  static_cast<void>(print_loops(flow, loops));
  static_cast<void>(print_liveness(flow, registers, liveness));
  static_cast<void>(print_reaching(flow, registers, reaching));
}

void analyse(const Module& module, const ptx::Function& function) {
  const analysis::FunctionFacts facts(module, function);
  analyse_flow(facts.flow);
  static_cast<void>(analysis::call_closure(module, function));
  static_cast<void>(analysis::check_exits(facts));
  for (const analysis::Site& site : facts.sites) {
    if (!site.understood() || analysis::check_parent(facts, site)) continue;
    static_cast<void>(analysis::stream_kind(site));
    static_cast<void>(analysis::constant_block(site, facts));
    const ptx::Function* child = module.find_function(site.callee);
    if (child == nullptr || !child->is_definition) continue;
    survive([&] { static_cast<void>(analysis::check_child(module, *child, facts, site)); });
  }
}

void read(const std::string& text) {
  const Module module = ptx::parse(text, "input.ptx");
  require(ptx::print(module) == text, "an untouched module prints as it was read");
  check_tree(module);
  check_edits(module);
  for (const ptx::Function& function : module.functions) {
    if (function.is_definition) survive([&] { analyse(module, function); });
  }
}

}  // namespace
}  // namespace klap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    klap::read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const klap::Error& e) {
    klap::fuzz::require(e.code() == klap::ErrorCode::Parse, "a text that is not PTX is a parse error");
    klap::fuzz::require(e.line() >= 1 && e.column() >= 1, "a parse error has its place");
  }
  return 0;
}
