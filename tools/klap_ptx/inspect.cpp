// klap-ptx inspect: what is in a file, before any verdict: images, units, kernels, and every launch site with
// where its configuration and its arguments come from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "klap_ptx/input.h"
#include "support/demangle.h"

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

void print_site(const jit::SiteInfo& site) {
  const std::string child = site.child.empty() ? "a kernel held in a register" : both_names(site.child);
  fmt::print("    launch at line {}{}: {} from {}\n", site.line, site.in_loop ? ", in a loop" : "", child,
             both_names(site.parent));
  fmt::print("      idiom   {}\n      grid    {}\n      block   {}\n      shared  {}\n      stream  {}\n",
             site.idiom, site.grid, site.block, site.shared_bytes, site.stream);
  for (const jit::ArgumentInfo& argument : site.arguments) {
    fmt::print("      argument at {}, {} bytes: {}\n", argument.offset, argument.bytes, argument.source);
  }
}

std::vector<std::string> describe(const jit::Unit& unit) {
  std::vector<std::string> facts;
  if (unit.is_device_runtime) facts.emplace_back("the CUDA device runtime");
  if (!unit.ptx.empty()) facts.emplace_back("PTX");
  if (!unit.cubin.empty()) facts.emplace_back("machine code");
  if (unit.ptx.empty() && unit.cubin.empty()) facts.emplace_back("nothing for this compute capability");
  if (unit.launches) facts.emplace_back("launches kernels");
  if (!unit.options.empty()) facts.push_back("options " + unit.options);
  return facts;
}

}  // namespace

void inspect(const InspectOptions& options) {
  const container::File file = open_device_code(options.file);
  json images = json::array();
  for_each_image(file, options.sm, [&](const Image& image) {
    json units = json::array();
    if (!options.json)
      fmt::print("{}: {}, {}\n", options.file, container::to_string(image.kind), image.where);
    for (const jit::Unit& unit : image.program.units) {
      // The device runtime's own kernels are nobody's business here.
      const jit::UnitInfo info = unit.is_device_runtime ? jit::UnitInfo{} : jit::inspect_unit(unit);
      units.push_back(unit_json(unit, info));
      if (options.json) continue;
      fmt::print("  {}: {}\n", unit.name, fmt::join(describe(unit), ", "));
      for (const std::string& kernel : info.kernels) fmt::print("    kernel {}\n", both_names(kernel));
      for (const jit::SiteInfo& site : info.sites) print_site(site);
    }
    images.push_back(
        {{"kind", container::to_string(image.kind)}, {"where", image.where}, {"units", std::move(units)}});
  });
  if (options.json) print_json({{"file", options.file}, {"sm", options.sm}, {"images", std::move(images)}});
}

}  // namespace klap::tool
