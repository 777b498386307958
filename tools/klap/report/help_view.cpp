#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "klap/report/advice.h"
#include "klap/report/numbers.h"
#include "klap/report/views.h"

namespace klap::tool {

namespace {

using Item = nlohmann::json;

// In the order in which they are shown. Fine: nothing can be done about it, or need be.
enum class Kind : uint8_t { Left, Slow, Fine };

// Something that was left or is slow, in some of the kernels.
struct Finding {
  Kind kind = Kind::Left;
  std::string title;
  Advice advice;
  std::string unit, units;  // what is counted
  uint64_t count = 0;
  std::set<std::string> kernels;  // mangled
};

using Findings = std::map<std::string, Finding>;  // by title

Finding& finding(Findings& all, Kind kind, const std::string& title, const Advice& advice,
                 const std::string& unit, const std::string& units = "") {
  Finding& out = all[title];
  out.kind = kind == Kind::Left && advice.is_fine() ? Kind::Fine : kind;
  out.title = title;
  out.advice = advice;
  out.unit = unit;
  out.units = units;
  return out;
}

void count(Finding& found, uint64_t times, const std::string& kernel) {
  found.count += times;
  found.kernels.insert(kernel);
}

// Launch sites that nothing calls are no loss.
void find_left(Findings& out, const std::string& mangled, const KernelRecord& kernel) {
  for (const auto& [place, site] : kernel.sites)
    if (!site.is_rewritten && site.reason != "never-called")
      count(finding(out, Kind::Left, site.reason, site_advice(site.reason), "launch site"), 1, mangled);
  for (const auto& [reason, launches] : kernel.left)
    count(
        finding(out, Kind::Left, reason, launch_advice(reason), "launch of a parent", "launches of parents"),
        launches, mangled);
}

void find_slow(Findings& out, const std::string& mangled, const KernelRecord& kernel) {
  if (kernel.rewritten == 0) return;
  const Advice order = {
      "children may conflict in memory, so they run in CUDA's order",
      "If children never conflict, say so: --set ordering=relaxed, or a hint in the source."};
  if (const uint64_t kept = kernel.launches_in_order(); kept != 0)
    count(finding(out, Kind::Slow, "order kept", order, "launch", "launches"), kept, mangled);
  const Advice slices = {"the records of a whole launch have no room, so it runs in parts",
                         "Give the queues more memory: --set pool_bytes=4G, and total_bytes if that is set."};
  if (kernel.sliced != 0)
    count(finding(out, Kind::Slow, "slices", slices, "launch", "launches"), kernel.sliced, mangled);
}

void find_in_program(Findings& out, const Statistics& all) {
  for (const auto& [problem, modules] : all.failed)
    finding(out, Kind::Left, problem, {"the module stays as it is", "Run klap doctor, which names the fix."},
            "module")
        .count += modules;
  if (all.native_children.value_or(0) != 0)
    finding(out, Kind::Slow, "full queue",
            {"a queue of recursive children had no room, so the device launched them as written",
             "Give the queue more memory: --set pool_bytes=4G."},
            "child", "children")
        .count = *all.native_children;
  if (all.frames && all.frames->refused != 0)
    finding(out, Kind::Slow, "no memory for a block that waits",
            {"the heap of the device had no room for what a block keeps while it waits for its children",
             "Leave more device memory free, or raise total_bytes if that is set."},
            "time")
        .count = all.frames->refused;
}

const char* style_of(Kind kind) { return kind == Kind::Left ? "left" : kind == Kind::Slow ? "slow" : "fine"; }

std::string as_sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

Item as_view(const Finding& found, const PageKernels& kernels) {
  Item names = Item::array();
  for (const std::string& mangled : found.kernels)
    if (const auto on_page = kernels.find(mangled); on_page != kernels.end())
      names.push_back({{"kernel_id", on_page->second.id}, {"kernel", on_page->second.short_name}});
  return {{"title", found.title},
          {"style", style_of(found.kind)},
          {"meaning", as_sentence(found.advice.meaning)},
          {"help", found.advice.help},
          {"count", amount(found.count, found.unit, found.units)},
          {"is_left", found.kind != Kind::Slow},
          {"has_kernels", !names.empty()},
          {"kernels", names}};
}

}  // namespace

Item help_view(const Statistics& all, const PageKernels& kernels) {
  Findings found;
  for (const auto& [mangled, kernel] : all.kernels) {
    find_left(found, mangled, kernel);
    find_slow(found, mangled, kernel);
  }
  find_in_program(found, all);
  std::vector<const Finding*> sorted;
  for (const auto& [title, one] : found) sorted.push_back(&one);
  std::ranges::stable_sort(sorted, [](const Finding* a, const Finding* b) {
    return std::pair(a->kind, b->count) < std::pair(b->kind, a->count);
  });
  Item out = Item::array();
  for (const Finding* const one : sorted) out.push_back(as_view(*one, kernels));
  return out;
}

}  // namespace klap::tool
