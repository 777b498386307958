#include <fmt/format.h>

#include <algorithm>

#include "klap/report/advice.h"
#include "klap/report/numbers.h"
#include "klap/report/views.h"

namespace klap::tool {

namespace {

using View = nlohmann::json;

uint64_t left_of(const KernelRecord& kernel) {
  uint64_t sum = 0;
  for (const auto& [reason, launches] : kernel.left) sum += launches;
  return sum;
}

bool has_left_site(const KernelRecord& kernel) {
  return std::ranges::any_of(kernel.sites, [](const auto& site) {
    return !site.second.is_rewritten && site.second.reason != "never-called";
  });
}

// The text on a badge, its colour, and what it means.
struct OrderText {
  const char *name, *style, *meaning;
};
OrderText order_text(SiteOrder order) {
  switch (order) {
    case SiteOrder::Proven:
      return {"proven", "good", "no conflict between children is possible, so they overlap"};
    case SiteOrder::Tolerated:
      return {
          "tolerated", "fair",
          "blocks of the parent have the same conflict, where CUDA promises no order, so children overlap"};
    case SiteOrder::Kept:
      return {"kept", "slow", "children may conflict, so they run in CUDA's order, which takes longer"};
    case SiteOrder::Relaxed:
      return {"relaxed", "fair", "the user said that children never conflict, so they overlap"};
    case SiteOrder::Free:
      break;
  }
  return {"free", "good", "CUDA runs these children in no order"};
}

View order_view(SiteOrder order) {
  const OrderText text = order_text(order);
  return {{"name", text.name}, {"style", text.style}, {"meaning", text.meaning}};
}

// The orders of a kernel's rewritten sites, each once.
View orders_view(const KernelRecord& kernel) {
  View out = View::array();
  for (const SiteOrder order :
       {SiteOrder::Free, SiteOrder::Proven, SiteOrder::Tolerated, SiteOrder::Relaxed, SiteOrder::Kept}) {
    if (std::ranges::any_of(kernel.sites, [order](const auto& site) {
          return site.second.is_rewritten && site.second.order == order;
        }))
      out.push_back(order_view(order));
  }
  return out;
}

View sites_view(const KernelRecord& kernel) {
  View out = View::array();
  for (const auto& [place, site] : kernel.sites) {
    const Advice advice = site.is_rewritten ? Advice{} : site_advice(site.reason);
    out.push_back({{"child", site.child.empty() ? "an unknown kernel" : site.child},
                   {"place", site.place},
                   {"rewritten", site.is_rewritten},
                   {"how", site.how},
                   {"order", site.is_rewritten ? order_view(site.order) : View()},
                   {"reason", site.reason},
                   {"detail", site.detail},
                   {"help", advice.help},
                   {"notes", site.notes}});
  }
  return out;
}

View launches_view(const KernelRecord& kernel) {
  View out = View::array();
  const auto add = [&](uint64_t launches, const std::string& what, const std::string& meaning,
                       const std::string& help) {
    if (launches != 0)
      out.push_back({{"count", grouped(launches)}, {"what", what}, {"meaning", meaning}, {"help", help}});
  };
  add(kernel.rewritten, "rewritten", kernel.engine, "");
  add(kernel.fused, "of these as one kernel", "the parent's own kernel runs the children", "");
  add(kernel.ordered, "of these in CUDA's order", "here the children might have conflicted in memory",
      "If they never conflict, say so: --set ordering=relaxed, or a hint in the source.");
  add(kernel.sliced, "of these in slices",
      fmt::format("{} in all, as the records of a whole launch had no room", amount(kernel.slices, "slice")),
      "More memory for the queues (pool_bytes, total_bytes) makes fewer slices.");
  add(kernel.flat, "of these thread by thread", "children fill few lanes of their blocks", "");
  add(kernel.in_blocks, "of these block by block", "children fill their blocks", "");
  for (const auto& [reason, launches] : kernel.left) {
    const Advice advice = launch_advice(reason);
    add(launches, "as written: " + reason, advice.meaning, advice.help);
  }
  return out;
}

std::string bin_name(uint64_t below, uint64_t up_to) {
  if (up_to == SizeHistogram::kLargest) return "more";
  return below + 1 >= up_to ? grouped(up_to) : fmt::format("{} to {}", grouped(below + 1), grouped(up_to));
}

// Bins double in size; those without children between others are shown, too.
View histogram_view(const SizeHistogram& histogram) {
  uint64_t all = 0, most = 0;
  for (const auto& [up_to, children] : histogram.bins) {
    all += children;
    most = std::max(most, children);
  }
  if (all == 0) return View();
  View bins = View::array();
  const auto add = [&](uint64_t below, uint64_t up_to, uint64_t children) {
    const double share = static_cast<double>(children) / static_cast<double>(all);
    bins.push_back({{"size", bin_name(below, up_to)},
                    {"count", grouped(children)},
                    {"share", fmt::format("{:.1f} %", 100 * share)},
                    {"width", svg_percent(static_cast<double>(children) / static_cast<double>(most))}});
  };
  const uint64_t least = histogram.bins.begin()->first;
  uint64_t below = least / 2;
  for (const auto& [up_to, children] : histogram.bins) {
    for (; up_to != SizeHistogram::kLargest && 2 * below + 1 < up_to; below = 2 * below + 1)
      add(below, 2 * below + 1, 0);
    add(below, up_to, children);
    below = up_to;
  }
  return {{"child", histogram.child}, {"counted", histogram.counted}, {"all", grouped(all)}, {"bins", bins}};
}

View histograms_view(const KernelRecord& kernel) {
  View out = View::array();
  for (const SizeHistogram& histogram : kernel.sizes)
    if (View view = histogram_view(histogram); !view.is_null()) out.push_back(std::move(view));
  return out;
}

View guard_view(const KernelRecord& kernel) {
  View out = View::array();
  for (const GuardFinding& found : kernel.guard) {
    if (found.variant_ms <= 0 && found.original_ms <= 0) continue;
    const auto time = [](double ms) { return ms > 0 ? duration(ms) : "not measured"; };
    out.push_back({{"launches", grouped(found.launches)},
                   {"children", grouped(found.children)},
                   {"original", time(found.original_ms)},
                   {"variant", time(found.variant_ms)},
                   {"choice", found.choice == "original"  ? "as written"
                              : found.choice == "variant" ? "rewritten"
                                                          : "not decided"}});
  }
  return out;
}

View counters_view(const KernelRecord& kernel) {
  View out = View::array();
  for (const auto& [name, counted] : kernel.counters) {
    const double mean = counted.launches == 0 ? 0 : counted.sum / static_cast<double>(counted.launches);
    out.push_back({{"name", name}, {"mean", fmt::format("{:.6g}", mean)}});
  }
  return out;
}

View gain_view(const std::optional<Gain>& gain, const std::string& before) {
  if (!gain) return View();
  return {{"times", factor(gain->times())},
          {"is_slower", gain->times() < 1},
          {"before", duration(gain->before_ms)},
          {"now", duration(gain->now_ms)},
          {"name", before}};
}

View kernel_gain_view(const KernelRecord& kernel, const std::string& mangled, const Baseline& baseline) {
  if (const std::optional<Gain> gain = baseline.launch(mangled)) return gain_view(gain, baseline.name());
  return gain_view(guard_gain(kernel), "natively, as the guard measured");
}

View time_view(const Statistics& all, const KernelRecord& kernel) {
  if (kernel.timed == 0) return View();
  const double whole = all.timed_ms() > 0 ? all.timed_ms() : 1;
  const auto launches = static_cast<double>(kernel.timed);
  return {{"timed", amount(kernel.timed, "launch", "launches")},
          {"parents", duration(kernel.parent_ms)},
          {"children", duration(kernel.children_ms)},
          {"sum", duration(kernel.timed_ms())},
          {"ms", svg_number(kernel.timed_ms())},
          {"mean", duration(kernel.timed_ms() / launches)},
          {"parents_mean", duration(kernel.parent_ms / launches)},
          {"children_mean", duration(kernel.children_ms / launches)},
          {"parents_width", svg_percent(kernel.parent_ms / whole)},
          {"children_width", svg_percent(kernel.children_ms / whole)}};
}

// If one kernel was rewritten, all children are its own.
std::optional<uint64_t> children_of(const Statistics& all, const KernelRecord& kernel) {
  const bool ran_all = all.kernels_rewritten() == 1 && kernel.rewritten != 0;
  return ran_all && !kernel.children ? all.children : kernel.children;
}

}  // namespace

// The parameters are the last pair of parentheses on the outside; a return type ends before the name.
std::string short_name(const std::string& demangled) {
  std::string name = demangled;
  if (name.ends_with(')')) {
    int depth = 0;
    for (size_t at = name.size(); at-- > 0;) {
      if (name[at] == ')') ++depth;
      if (name[at] == '(' && --depth == 0) {
        if (at > 0) name.erase(at);
        break;
      }
    }
  }
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    if (name[at] == '>' || name[at] == ')') ++depth;
    if (name[at] == '<' || name[at] == '(') --depth;
    if (name[at] == ' ' && depth == 0) return name.substr(at + 1);
  }
  return name;
}

std::vector<std::string> listed_kernels(const Statistics& all) {
  std::vector<std::string> out;
  for (const auto& [mangled, kernel] : all.kernels)
    if (kernel.rewritten != 0 || !kernel.left.empty() || kernel.timed != 0 || has_left_site(kernel))
      out.push_back(mangled);
  const auto weight = [&](const std::string& mangled) {
    const KernelRecord& kernel = all.kernels.at(mangled);
    return std::pair(kernel.timed_ms(), kernel.rewritten + left_of(kernel));
  };
  std::ranges::stable_sort(out, [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  return out;
}

PageKernels page_kernels(const Statistics& all) {
  PageKernels out;
  for (const std::string& mangled : listed_kernels(all))
    out[mangled] = {fmt::format("k{}", out.size() + 1), short_name(all.kernels.at(mangled).name)};
  return out;
}

View kernel_view(const Statistics& all, const std::string& mangled, const PageKernel& page,
                 const Baseline& baseline) {
  const KernelRecord& kernel = all.kernels.at(mangled);
  const std::optional<uint64_t> children = children_of(all, kernel);
  const View histograms = histograms_view(kernel), guard = guard_view(kernel),
             counters = counters_view(kernel), launches = launches_view(kernel);
  return {{"id", page.id},
          {"short", page.short_name},
          {"name", kernel.name},
          {"mangled", mangled},
          {"rewritten", grouped(kernel.rewritten)},
          {"left", left_of(kernel) == 0 ? View() : View(grouped(left_of(kernel)))},
          {"children", children ? View(grouped(*children)) : View()},
          {"engine", kernel.engine},
          {"orders", orders_view(kernel)},
          {"has_left_site", has_left_site(kernel)},
          {"time", time_view(all, kernel)},
          {"gain", kernel_gain_view(kernel, mangled, baseline)},
          {"has_launches", !launches.empty()},
          {"launches", launches},
          {"sites", sites_view(kernel)},
          {"has_histograms", !histograms.empty()},
          {"histograms", histograms},
          {"has_guard", !guard.empty()},
          {"guard", guard},
          {"has_counters", !counters.empty()},
          {"counters", counters}};
}

}  // namespace klap::tool
