#include "klap/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace klap::tool {

namespace {

std::string counted(uint64_t number, const std::string& what, const std::string& plural = "") {
  return fmt::format("{} {}", number, number == 1 ? what : plural.empty() ? what + "s" : plural);
}

uint64_t sum_of(const Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [name, number] : counts) sum += number;
  return sum;
}

// "site-in-loop" for one reason, "3 site-in-loop, 1 runtime-call" for several.
std::string reasons_of(const Counts& counts) {
  if (counts.size() == 1) return counts.begin()->first;
  std::string text;
  for (const auto& [reason, number] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, reason);
  return text;
}

void append(std::string& text, const std::string& part) { text += (text.empty() ? "" : ", ") + part; }

std::string launches_line(const Statistics& all) {
  std::string text;
  if (all.rewritten() != 0) {
    text = fmt::format("{} of {} rewritten", counted(all.rewritten(), "launch", "launches"),
                       counted(all.kernels_rewritten(), "kernel"));
  } else if (all.modules != 0) {
    text = "no launch of a kernel was rewritten";
  } else {
    text = "none of the program's modules launches kernels from kernels";
  }
  return all.processes == 1 ? text : text + fmt::format(", in {} processes", all.processes);
}

// The times are those of timed launches only, which may be fewer than all.
std::string gpu_time(const Statistics& all) {
  uint64_t timed = 0;
  double parents = 0, children = 0;
  for (const auto& [mangled, kernel] : all.kernels) {
    timed += kernel.timed;
    parents += kernel.parent_ms;
    children += kernel.children_ms;
  }
  if (timed == 0) return "";
  return fmt::format("GPU time of {}: {:.3f} ms for parents, {:.3f} ms for children",
                     counted(timed, "launch", "launches"), parents, children);
}

std::string children_line(const Statistics& all) {
  std::string text = "children were not counted";
  if (all.children) text = fmt::format("{} run together", counted(*all.children, "child", "children"));
  if (all.chain_links.value_or(0) != 0)
    append(text, fmt::format("{} run as one kernel",
                             counted(*all.chain_links, "link of a chain", "links of chains")));
  if (all.native_children.value_or(0) != 0)
    append(text, fmt::format("{} launched by the device as written", *all.native_children));
  if (const std::string times = gpu_time(all); !times.empty()) append(text, times);
  return text;
}

std::string left_line(const Statistics& all) {
  const Counts sites = all.left_sites(), launches = all.left_launches();
  std::string text;
  if (!sites.empty())
    append(text, fmt::format("{} ({})", counted(sum_of(sites), "launch site"), reasons_of(sites)));
  if (!launches.empty())
    append(text,
           fmt::format("{} ({})", counted(sum_of(launches), "launch of a parent", "launches of parents"),
                       reasons_of(launches)));
  if (!all.failed.empty())
    append(text, fmt::format("{} ({})", counted(sum_of(all.failed), "module"), reasons_of(all.failed)));
  text = text.empty() ? "nothing was left as it is"
                      : fmt::format("left as they are: {}; klap reasons explains why", text);
  uint64_t ordered = 0;
  for (const auto& [mangled, kernel] : all.kernels) ordered += kernel.launches_in_order();
  if (ordered != 0)
    text += fmt::format("; the children of {} kept CUDA's order, which ordering=relaxed gives up",
                        counted(ordered, "launch", "launches"));
  return text;
}

bool is_idle(const KernelRecord& kernel) {
  return kernel.rewritten == 0 && kernel.left.empty() &&
         std::ranges::all_of(kernel.sites, [](const auto& site) { return site.second.is_rewritten; });
}

void print_launches(std::string& out, const KernelRecord& kernel) {
  const bool has_variant =
      std::ranges::any_of(kernel.sites, [](const auto& site) { return site.second.is_rewritten; });
  if (kernel.rewritten != 0)
    out += fmt::format("  launches: {} rewritten, {}\n", kernel.rewritten, kernel.engine);
  if (const uint64_t ordered = kernel.launches_in_order(); ordered != 0)
    out += fmt::format("  launches: {} of them with the children in CUDA's order\n", ordered);
  for (const auto& [reason, launches] : kernel.left)
    out += fmt::format("  launches: {} as written: {}\n", launches, reason);
  if (kernel.rewritten == 0 && kernel.left.empty())
    out += has_variant ? "  launches: none\n" : "  launches: not counted, as no launch site is rewritten\n";
}

void print_kernel(std::string& out, const KernelRecord& kernel, std::optional<uint64_t> children) {
  out += "\n" + kernel.name + "\n";
  print_launches(out, kernel);
  if (children) out += fmt::format("  children: {}\n", *children);
  if (kernel.timed != 0)
    out += fmt::format("  GPU time: {:.3f} ms for parents, {:.3f} ms for children, in {}\n", kernel.parent_ms,
                       kernel.children_ms, counted(kernel.timed, "launch", "launches"));
  for (const auto& [place, site] : kernel.sites) {
    const std::string child = site.child.empty() ? "an unknown kernel" : site.child;
    out += site.is_rewritten ? fmt::format("  site: {}: {}\n", child, site.how)
                             : fmt::format("  site: {}: left, {}: {}\n", child, site.reason, site.detail);
  }
}

}  // namespace

std::array<std::string, 3> summary_lines(const Statistics& statistics) {
  return {launches_line(statistics), children_line(statistics), left_line(statistics)};
}

std::string full_summary(const Statistics& statistics) {
  std::string out;
  for (const std::string& line : summary_lines(statistics)) out += line + "\n";
  if (statistics.compiled != 0)
    out += fmt::format("{} compiled in {:.0f} ms, which later runs take from the cache\n",
                       counted(statistics.compiled, "module"), statistics.compile_ms);
  const bool is_only_one = statistics.kernels_rewritten() == 1;
  size_t idle = 0;
  for (const auto& [mangled, kernel] : statistics.kernels) {
    if (is_idle(kernel)) {
      ++idle;
      continue;
    }
    const bool ran_all = is_only_one && kernel.rewritten != 0;
    print_kernel(out, kernel, ran_all && !kernel.children ? statistics.children : kernel.children);
  }
  if (idle != 0)
    out += fmt::format("\n{} that could be rewritten {} not launched\n", counted(idle, "kernel"),
                       idle == 1 ? "was" : "were");
  return out;
}

}  // namespace klap::tool
