#include "transform/suspension/split_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/effects/effects.h"
#include "analysis/effects/idle_waits.h"
#include "analysis/inline/inlining.h"
#include "analysis/launches/idioms.h"
#include "analysis/suspension/suspension.h"
#include "ptx/edit.h"
#include "ptx/source_lines.h"
#include "transform/suspension/split_kernel.h"
#include "transform/suspension/unreached_code.h"
#include "transform/text/inliner.h"
#include "transform/text/parts.h"

namespace klap::transform {

namespace {

using analysis::FlowFacts;
using analysis::Suspension;
using ptx::Function;
using ptx::Module;

// nvcc declares this register in each scope of a call and never uses it.
bool is_unused_register(const Module& unit, const ptx::Statement& s) {
  return s.kind == ptx::StatementKind::Directive && unit.is(s.head, ".reg") &&
         unit.is(s.tokens.last - 2, "temp_param_reg");
}

// True for the scope of an inlined body: all that it declares has the inliner's prefix. Scopes of calls,
// which hold no others, stay.
bool is_inlined_body(const Module& unit, const ptx::Statement& scope) {
  bool has_scopes = false, has_prefixes = true;
  for (const ptx::Statement& each : scope.body) {
    has_scopes = has_scopes || each.kind == ptx::StatementKind::Block;
    if (each.kind == ptx::StatementKind::Label)
      has_prefixes = has_prefixes && unit.text(each.head).find("klap_i") == 1;
    if (each.kind != ptx::StatementKind::Directive || unit.is(each.head, ".loc") ||
        unit.is(each.head, ".pragma") || is_unused_register(unit, each))
      continue;
    for (uint32_t t = each.head + 1; t < each.tokens.last; ++t) {
      if (unit.tokens[t].kind == ptx::TokenKind::Identifier)
        has_prefixes = has_prefixes && unit.text(t).substr(0, 8).find("klap_i") != std::string_view::npos;
    }
  }
  return has_scopes && has_prefixes;
}

void open_scopes(const Module& unit, const Function& kernel, ptx::Edits& edits) {
  for (const ptx::Statement& each : kernel.body.body) {
    if (each.kind != ptx::StatementKind::Block || !is_inlined_body(unit, each)) continue;
    edits.replace({each.tokens.first, each.tokens.first + 1}, "");
    edits.replace({each.tokens.last - 1, each.tokens.last}, "");
    for (const ptx::Statement& inner : each.body)
      if (is_unused_register(unit, inner)) edits.replace(inner.tokens, "");
  }
}

bool calls_any_of(const analysis::Effects& effects, std::string_view kind) {
  return std::ranges::any_of(effects.all(), [&](const analysis::Effect& e) {
    return e.kind == analysis::EffectKind::DeviceRuntime && analysis::idioms().is_kind(e.what, kind);
  });
}

// Kernels that wait go on in grids of one block, where a called function would ask for its place in vain. So
// they inline such functions, as kernels that are launched do.
void add_waiting(const Module& unit, analysis::KernelNames& kernels) {
  for (const Function& function : unit.functions) {
    if (!function.is_definition || function.kind != ptx::FunctionKind::Entry) continue;
    if (calls_any_of(analysis::CallGraph(unit, function).closure(function), "wait"))
      kernels.emplace(function.name);
  }
}

// Kernels with their calls inlined, since a called function cannot stop. Inlined bodies are scopes. Their
// names have prefixes of their own, so they can do without: a thread can go on at labels of the body alone.
Module inlined(const Module& unit) {
  analysis::KernelNames launched;
  analysis::add_launched(unit, launched);
  add_waiting(unit, launched);
  const auto kernels = analysis::kernels_to_inline(unit, launched);
  if (kernels.empty()) return ptx::parse(unit.source, unit.name);
  Module module = with_inlined_calls(unit, kernels);
  for (;;) {
    ptx::Edits edits(module);
    for (const Function& kernel : module.functions)
      if (kernel.is_definition && kernel.kind == ptx::FunctionKind::Entry) open_scopes(module, kernel, edits);
    if (edits.empty()) return module;
    module = ptx::parse(edits.apply(), unit.name);
  }
}

bool names_any(const Module& unit, ptx::TokenRange tokens, const std::vector<std::string>& names) {
  for (uint32_t t = tokens.first; t < tokens.last; ++t)
    if (std::ranges::find(names, unit.text(t)) != names.end()) return true;
  return false;
}

// Functions that no kernel comes to and that call ones that wait.
void add_callers(const Module& unit, const std::set<std::string_view>& of_kernels,
                 std::vector<std::string>& waiting) {
  for (bool adds = true; adds;) {
    adds = false;
    for (const Function& function : unit.functions) {
      const bool is_known = std::ranges::find(waiting, function.name) != waiting.end();
      if (!function.is_definition || function.kind == ptx::FunctionKind::Entry || is_known) continue;
      if (of_kernels.contains(function.name) || !names_any(unit, function.body.tokens, waiting)) continue;
      waiting.push_back(function.name);
      adds = true;
    }
  }
}

void remove_waiting_functions(const Module& unit, const std::vector<std::string>& names, ptx::Edits& edits) {
  for (const Function& function : unit.functions)
    if (std::ranges::find(names, function.name) != names.end()) edits.replace(function.tokens, "");
}

// Functions other than kernels that wait. One that a kernel still comes to is a problem. Those that launch
// go as well where all kernels of the original unit have them inlined, since nobody would rewrite their
// launches.
void find_waiting_functions(const Module& original, const Module& unit, SplitUnit& out) {
  const std::set<std::string_view> of_kernels = analysis::functions_of_kernels(unit),
                                   once_of_kernels = analysis::functions_of_kernels(original);
  for (const Function& function : unit.functions) {
    if (function.kind == ptx::FunctionKind::Entry || !function.is_definition) continue;
    const auto waits = analysis::waits_that_matter(FlowFacts(unit, function));
    if (waits.empty() && !of_kernels.contains(function.name) && once_of_kernels.contains(function.name) &&
        calls_any_of(analysis::CallGraph(unit, function).own(function), "launch"))
      out.waiting_functions.push_back(function.name);
    if (waits.empty()) continue;
    out.waiting_functions.push_back(function.name);
    if (of_kernels.contains(function.name))
      out.problem = fmt::format("{} waits and cannot be made part of a kernel ({})", function.name,
                                unit.place(waits.front()->head));
  }
  add_callers(unit, of_kernels, out.waiting_functions);
}

}  // namespace

std::optional<SplitUnit> split_at_waits(const Module& original) {
  if (!analysis::wait_that_matters(original)) return std::nullopt;
  const Module unit = inlined(original);
  const ptx::SourceLines lines(unit);
  SplitUnit out;
  std::vector<std::string> resumed;
  find_waiting_functions(original, unit, out);
  ptx::Edits edits(unit);
  for (const Function& kernel : unit.functions) {
    if (!kernel.is_definition || kernel.kind != ptx::FunctionKind::Entry || !out.problem.empty()) continue;
    const FlowFacts facts(unit, kernel);
    const auto waits = analysis::waits_that_matter(facts);
    if (waits.empty()) continue;
    const Suspension suspension = analysis::find_suspension(facts, waits);
    if (!suspension.problem.empty()) {
      out.problem = kernel.name + ": " + suspension.problem;
      break;
    }
    const SplitKernel split = split_kernel(facts, suspension);
    resumed.push_back(split.resumed);
    for (const ptx::Statement* const wait : waits) {
      const auto place = lines.of(unit.position(wait->head));
      out.waits.push_back(
          {place ? ptx::short_text(*place) : unit.place(wait->head), kernel.name, split.bytes_per_thread});
    }
    edits.replace(kernel.tokens, split.text);
  }
  if (!out.problem.empty()) return out;
  remove_waiting_functions(unit, out.waiting_functions, edits);
  edits.insert_before(behind_header(unit), split_declarations(unit));
  out.text = without_unreached(edits.apply(), resumed, unit.name);
  return out;
}

}  // namespace klap::transform
