// Looking at units without running them: what klap-ptx prints.
#include <fmt/format.h>

#include "jit/build.h"
#include "jit/module.h"
#include "jit/options.h"
#include "jit/plan.h"
#include "transform/unit.h"

namespace klap::jit {
namespace {

using analysis::FunctionFacts;
using analysis::Site;

std::string three(const std::array<std::string, 3>& operands) {
  return fmt::format("{}, {}, {}", operands[0], operands[1], operands[2]);
}

// "NULL", "tail launch" for a single literal stream; what it can be otherwise.
std::string stream_text(const Site& site) {
  if (site.streams.size() != 1) return site.streams.empty() ? site.stream : analysis::print(site.streams);
  switch (site.streams[0].kind) {
    case analysis::StreamClass::Null:
      return "NULL";
    case analysis::StreamClass::PerThread:
      return "per-thread";
    case analysis::StreamClass::FireAndForget:
      return "fire-and-forget";
    case analysis::StreamClass::TailLaunch:
      return "tail launch";
    default:
      return site.streams[0].text;
  }
}

// "immediate 5", "kernel parameter 2", "register %rd3".
std::string source_text(const FunctionFacts& facts, const std::string& operand) {
  if (const auto value = facts.data.constant(operand)) return fmt::format("immediate {}", *value);
  const auto& writers = facts.data.definitions(operand);
  if (writers.size() == 1) {
    const ptx::Statement& s = *facts.flow.instructions()[writers[0]].statement;
    if (facts.module.is(s.head, "ld") && facts.module.has_modifier(s, ".param") && s.operands.size() == 2) {
      const auto address = analysis::parse_address(facts.module, s.operands[1]);
      for (size_t i = 0; address && i < facts.function.parameters.size(); ++i) {
        if (facts.function.parameters[i].name == address->base) return fmt::format("kernel parameter {}", i);
      }
    }
  }
  return "register " + operand;
}

SiteInfo site_info(const FunctionFacts& facts, const Site& site) {
  SiteInfo info;
  info.parent = facts.function.name;
  info.child = site.callee;
  info.idiom = analysis::form_name(site);
  info.line = static_cast<int>(site.line);
  info.grid = three(site.grid);
  info.block = three(site.block);
  info.shared_bytes = site.shared;
  info.stream = stream_text(site);
  const uint32_t at =
      site.get_call == nullptr ? analysis::ControlFlow::npos : facts.flow.index_of(site.get_call);
  info.in_loop = at != analysis::ControlFlow::npos && facts.flow.in_loop(at);
  for (const analysis::Argument& argument : site.arguments) {
    info.arguments.push_back({argument.offset, argument.bytes, source_text(facts, argument.source)});
  }
  return info;
}

}  // namespace

UnitInfo inspect_unit(const Unit& unit) {
  UnitInfo info;
  ParsedUnit parsed(unit);
  const ptx::Module* module = parsed.module();
  if (module == nullptr) return info;
  for (const ptx::Function& f : module->functions) {
    if (!f.is_definition) continue;
    if (f.kind == ptx::FunctionKind::Entry) info.kernels.push_back(f.name);
    if (!unit.launches) continue;
    const FunctionFacts facts(*module, f);
    for (const Site& site : facts.sites) info.sites.push_back(site_info(facts, site));
  }
  return info;
}

std::string rewrite_ptx(const Unit& unit, const Request& request, std::vector<SiteRemark>* remarks) {
  Program program;
  program.units.push_back(unit);
  Timings timings;
  Plan plan = make_plan(program, request, &timings);
  GeneratedUnits generated = generate(plan, plan.sites, timings);
  if (remarks != nullptr) *remarks = plan.remarks;
  if (generated.variants.empty()) return unit.ptx;
  return transform::in_place_unit(*plan.units[0]->module(), generated.kernels[0],
                                  parse_options(unit.options).register_cap);
}

}  // namespace klap::jit
