#include "jit/planned/planned.h"

#include <fmt/format.h>

namespace klap::jit {

using analysis::Reason;

std::vector<std::span<const PlannedSite>> by_parent(std::span<const PlannedSite> sites) {
  std::vector<std::span<const PlannedSite>> out;
  for (size_t begin = 0; begin < sites.size();) {
    size_t end = begin + 1;
    while (end < sites.size() && sites[end].parent == sites[begin].parent) ++end;
    out.push_back(sites.subspan(begin, end - begin));
    begin = end;
  }
  return out;
}

namespace {

// Tells what a parent does without if this variant of it is not made; null for its first one.
const char* what_is_missing(const PlannedSite& site) {
  if (site.in_blocks) return "children do not run in blocks";
  if (site.fused) return "children do not run in the parent's kernel";
  return site.is_second ? "no variant keeps the order" : nullptr;
}

}  // namespace

ChildPlace find_child(Plan& plan, const std::string& kernel, size_t parent_unit) {
  std::vector<size_t> order = {parent_unit};
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (u != parent_unit) order.push_back(u);
  }
  for (size_t u : order) {
    const Unit& unit = plan.units[u]->unit();
    if (unit.is_device_runtime || unit.ptx.find(kernel) == std::string::npos) continue;
    const ptx::Module* module = plan.units[u]->module();
    const ptx::Function* f = module == nullptr ? nullptr : module->find_function(kernel);
    const bool visible = f != nullptr && (u == parent_unit || f->linkage != ptx::Linkage::Internal);
    if (visible && f->is_definition) return {u, f};
  }
  return {};
}

bool has_grid_of_one_row(const analysis::Site& site, const analysis::DataFlow& parent) {
  return parent.constant(site.grid[1]) == 1 && parent.constant(site.grid[2]) == 1;
}

bool have_grids_of_one_row(std::span<const PlannedSite> sites) {
  return std::ranges::all_of(
      sites, [](const PlannedSite& s) { return has_grid_of_one_row(*s.site, s.parent->data); });
}

void add_note(SiteRemark& remark, const std::string& text) {
  if (std::ranges::find(remark.notes, text) == remark.notes.end()) remark.notes.push_back(text);
}

void reject(Plan& plan, std::span<const PlannedSite> sites, Reason reason, const std::string& detail) {
  for (const PlannedSite& site : sites) {
    SiteRemark& remark = plan.remarks[site.remark];
    if (const char* const missing = what_is_missing(site)) {
      if (remark.rewritten)
        remark.notes.push_back(fmt::format("{}: {}: {}", missing, to_string(reason), detail));
      continue;
    }
    remark.rewritten = false;
    remark.granularity.clear();
    remark.launcher.clear();
    remark.group_blocks = 0;
    remark.notes.clear();
    remark.reason = to_string(reason);
    remark.detail = detail;
  }
}

}  // namespace klap::jit
