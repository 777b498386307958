// klap-ptx inspect lists the contents of a file: images, units, kernels, and every launch site with the
// origin of its configuration and its arguments. On request, it prints the results of an analysis for each
// kernel instead, or of a pass of the pipeline.
#include "jit/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "jit/plan/describe.h"
#include "klap_ptx/input.h"
#include "klap_ptx/kernel_names.h"
#include "ptx/tree.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/generated_name.h"

namespace klap::tool {

namespace {

using nlohmann::json;

json site_json(const jit::SiteInfo& site) {
  json arguments = json::array();
  for (const jit::ArgumentInfo& argument : site.arguments) {
    arguments.push_back(
        {{"offset", argument.offset}, {"bytes", argument.bytes}, {"source", argument.source}});
  }
  return {{"line", site.line},
          {"column", site.column},
          {"idiom", site.idiom},
          {"parent", site.parent},
          {"parent_demangled", demangle(site.parent)},
          {"child", site.child},
          {"child_demangled", demangle(site.child)},
          {"grid", site.grid},
          {"block", site.block},
          {"shared_bytes", site.shared_bytes},
          {"stream", site.stream},
          {"in_loop", site.in_loop},
          {"arguments", std::move(arguments)}};
}

json unit_json(const jit::Unit& unit, const jit::UnitInfo& info) {
  json kernels = json::array(), sites = json::array();
  for (const std::string& kernel : info.kernels) {
    kernels.push_back({{"name", kernel}, {"demangled", demangle(kernel)}});
  }
  for (const jit::SiteInfo& site : info.sites) sites.push_back(site_json(site));
  return {{"name", unit.name},
          {"has_ptx", !unit.ptx.empty()},
          {"has_machine_code", !unit.cubin.empty()},
          {"options", unit.options},
          {"device_runtime", unit.is_device_runtime},
          {"launches", unit.launches},
          {"kernels", std::move(kernels)},
          {"sites", std::move(sites)}};
}

void print_indented(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) fmt::print("    {}\n", line);
}

std::vector<std::string> describe(const jit::Unit& unit, uint32_t sm) {
  if (!unit.without_code.empty()) return {unit.without_code};
  std::vector<std::string> facts;
  if (unit.is_device_runtime) facts.emplace_back("the CUDA device runtime");
  if (!unit.ptx.empty()) facts.emplace_back("PTX");
  if (!unit.cubin.empty()) facts.emplace_back("machine code");
  if (unit.ptx.empty() && unit.cubin.empty()) facts.push_back(fmt::format("nothing for sm_{}", sm));
  if (unit.launches) facts.emplace_back("launches kernels");
  if (!unit.options.empty()) facts.push_back("options " + unit.options);
  return facts;
}

// Whether a kernel, or one that was made from it, is asked for.
bool wanted(const InspectOptions& options, const std::string& kernel) {
  const std::string made_from = name_made_from(kernel);
  const std::string& origin = made_from.empty() ? kernel : made_from;
  return options.kernel.empty() || settings::glob_match(options.kernel, origin) ||
         settings::glob_match(options.kernel, demangle(origin));
}

// Fails if there is nothing to show: the kernel that is asked for does not exist, or no unit has PTX.
void require_something(const InspectOptions& options, const container::File& file) {
  std::set<std::string> names;
  bool has_ptx = false;
  for_each_image(file, options.policy.sm, [&](const Image& image) {
    for (const jit::Unit& unit : image.program.units) {
      if (unit.is_device_runtime || unit.ptx.empty()) continue;
      has_ptx = true;
      for (const ptx::Function& f : ptx::parse(unit.ptx, unit.name).functions)
        if (f.is_definition) names.insert(f.name);
    }
  });
  if (!has_ptx)
    throw Error(ErrorCode::Unsupported,
                fmt::format("no unit has PTX for sm_{} to look into", options.policy.sm))
        .at(options.file);
  if (std::ranges::any_of(names, [&](const std::string& name) { return wanted(options, name); })) return;
  throw Error(ErrorCode::Unsupported, fmt::format("there is no kernel '{}'", options.kernel))
      .at(options.file)
      .fix(names_near(options.kernel, names));
}

// Prints `text` under a heading, or adds it to the list for JSON.
void show(const InspectOptions& options, json& shown, json what, const std::string& heading,
          std::string_view text) {
  if (!options.json) {
    fmt::print("{}\n{}{}", heading, text, text.ends_with('\n') ? "" : "\n");
    return;
  }
  what["text"] = text;
  shown.push_back(std::move(what));
}

// Runs the pipeline and shows the result of the pass. Passes up to the plan need neither NVRTC nor nvJitLink.
void show_stages(const InspectOptions& options, const Image& image, json& shown) {
  const jit::Pass pass = *jit::pass_by_name(options.dump_after);
  jit::Request request = make_request(load_policy(options.policy), options.policy);
  request.dump = [&](const jit::Stage& stage) {
    if (stage.pass != pass || (!stage.kernel.empty() && !wanted(options, stage.kernel))) return;
    const std::string text = stage.is_text() ? std::string(stage.bytes)
                                             : fmt::format("{} bytes of machine code\n", stage.bytes.size());
    const std::string about = stage.kernel.empty() ? "" : ", " + both_names(stage.kernel);
    show(options, shown, {{"pass", options.dump_after}, {"stage", stage.file}, {"kernel", stage.kernel}},
         fmt::format("// {}: {}{}", image.label, stage.file, about), text);
  };
  if (pass <= jit::Pass::Plan) {
    jit::explain_module(image.program, request);
  } else {
    jit::rewrite_module(image.program, request);
  }
}

// Shows the results of the analyses for each function that has a body.
void show_analyses(const InspectOptions& options, const Image& image, json& shown) {
  for (const jit::Unit& unit : image.program.units) {
    if (unit.is_device_runtime || unit.ptx.empty()) continue;
    for (const std::string& name : options.analyses) {
      for (const jit::AnalysisText& result : jit::analyse_unit(unit, name)) {
        if (!wanted(options, result.function)) continue;
        show(options, shown, {{"analysis", name}, {"unit", unit.name}, {"function", result.function}},
             fmt::format("// {}: {}, {}", name, unit.name, both_names(result.function)), result.text);
      }
    }
  }
}

void inspect_image(const InspectOptions& options, const Image& image, json& images) {
  json units = json::array();
  if (!options.json) fmt::print("{}: {}, {}\n", options.file, container::to_string(image.kind), image.where);
  for (const jit::Unit& unit : image.program.units) {
    // The device runtime's own kernels are not listed here.
    jit::UnitInfo info = unit.is_device_runtime ? jit::UnitInfo{} : jit::inspect_unit(unit);
    std::erase_if(info.kernels, [&](const std::string& kernel) { return !wanted(options, kernel); });
    std::erase_if(info.sites, [&](const jit::SiteInfo& site) { return !wanted(options, site.parent); });
    units.push_back(unit_json(unit, info));
    if (options.json) continue;
    fmt::print("  {}: {}\n", unit.name, fmt::join(describe(unit, options.policy.sm), ", "));
    for (const std::string& kernel : info.kernels) fmt::print("    kernel {}\n", both_names(kernel));
    for (const jit::SiteInfo& site : info.sites) print_indented(jit::describe(site));
  }
  images.push_back(
      {{"kind", container::to_string(image.kind)}, {"where", image.where}, {"units", std::move(units)}});
}

}  // namespace

void inspect(const InspectOptions& options) {
  const container::File file = open_device_code(options.file);
  const bool stages = !options.dump_after.empty(), analyses = !options.analyses.empty();
  if (stages || analyses || !options.kernel.empty()) require_something(options, file);
  json found = json::array();
  for_each_image(file, options.policy.sm, [&](const Image& image) {
    if (stages) show_stages(options, image, found);
    if (analyses) show_analyses(options, image, found);
    if (!stages && !analyses) inspect_image(options, image, found);
  });
  if (!options.json) return;
  const char* const key = stages || analyses ? "results" : "images";
  print_json({{"file", options.file}, {"sm", options.policy.sm}, {key, std::move(found)}});
}

}  // namespace klap::tool
