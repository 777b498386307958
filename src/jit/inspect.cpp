// Looking at units without running them: what klap-ptx prints.
#include "jit/inspect.h"

#include <fmt/format.h>

#include "analysis/views.h"
#include "jit/data/stage.h"
#include "jit/generate/generate.h"
#include "jit/plan/describe.h"
#include "jit/plan/options.h"
#include "jit/plan/plan.h"
#include "transform/runtime_calls/no_runtime.h"

namespace klap::jit {
UnitInfo inspect_unit(const Unit& unit) {
  UnitInfo info;
  if (unit.ptx.empty()) return info;
  const ptx::Module parsed = ptx::parse(unit.ptx, unit.name);
  const ptx::Module* module = &parsed;
  for (const ptx::Function& f : module->functions) {
    if (!f.is_definition) continue;
    if (f.kind == ptx::FunctionKind::Entry) info.kernels.push_back(f.name);
    if (!unit.launches) continue;
    const analysis::FunctionFacts facts(*module, f);
    for (const analysis::Site& site : facts.sites) info.sites.push_back(site_info(facts, site));
  }
  return info;
}

std::vector<AnalysisText> analyse_unit(const Unit& unit, std::string_view view) {
  std::vector<AnalysisText> out;
  const analysis::View* const chosen = analysis::find_view(view);
  if (chosen == nullptr) throw Error(ErrorCode::Internal, fmt::format("there is no analysis '{}'", view));
  if (unit.ptx.empty()) return out;
  const ptx::Module module = ptx::parse(unit.ptx, unit.name);
  for (const ptx::Function& f : module.functions) {
    if (!f.is_definition) continue;
    std::string text = chosen->text(module, f);
    out.push_back({f.name, text.empty() ? "none\n" : std::move(text)});
  }
  return out;
}

std::string rewrite_ptx(const Unit& unit, const Request& request, std::vector<SiteRemark>* remarks) {
  Program program;
  program.units.push_back(unit);
  Timings timings;
  Plan plan = load_units(program, request, timings);
  plan_sites(plan, request, timings);
  GeneratedUnits generated = generate(plan, plan.sites, request.dump, timings);
  if (remarks != nullptr) *remarks = plan.remarks;
  if (generated.variants.empty()) return unit.ptx;
  std::string text = transform::in_place_unit(*generated.code[0], parse_options(unit.options).register_cap);
  if (!request.device_runtime) text = transform::without_device_runtime(ptx::parse(text, unit.name));
  if (request.dump) request.dump({Pass::Unit, "unit0.klap.ptx", "", text});
  return text;
}

}  // namespace klap::jit
