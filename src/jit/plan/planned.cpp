#include "jit/plan/planned.h"

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

void leave(Plan& plan, std::span<const PlannedSite> sites, Reason reason, const std::string& detail) {
  for (const PlannedSite& site : sites) {
    SiteRemark& remark = plan.remarks[site.remark];
    if (site.is_second) {
      remark.notes.push_back(fmt::format("no variant keeps the order: {}: {}", to_string(reason), detail));
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
