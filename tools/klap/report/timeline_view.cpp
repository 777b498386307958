#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "klap/report/numbers.h"
#include "klap/report/time_scale.h"
#include "klap/report/views.h"

namespace klap::tool {

namespace {

using Chart = nlohmann::json;

constexpr size_t kMostTimelines = 8;
constexpr size_t kMostLanes = 12;
constexpr size_t kMostSlowest = 12;

PageKernel kernel_on_page(const PageKernels& kernels, const std::string& mangled) {
  const auto found = kernels.find(mangled);
  return found == kernels.end() ? PageKernel{"", mangled} : found->second;
}

double all_ms(const TimedLaunch& launch) { return launch.parent_ms + launch.children_ms; }

std::string tooltip(const std::string& kernel, const TimedLaunch& launch, double origin) {
  return fmt::format("{}{}: begins at {}, parent {}, children {}", kernel, launch.is_slice ? ", a slice" : "",
                     duration(launch.begin_ms - origin), duration(launch.parent_ms),
                     duration(launch.children_ms));
}

void add_bar(Chart& bars, const TimeScale& scale, double begin, double ms, const char* style,
             const std::string& title) {
  if (ms <= 0) return;
  const double from = scale.at(begin);
  bars.push_back({{"x", svg_percent(from)},
                  {"width", svg_percent(scale.at(begin + ms) - from)},
                  {"style", style},
                  {"title", title}});
}

Chart ticks(const TimeScale& scale, double origin) {
  Chart out = Chart::array();
  constexpr int kParts = 4;
  for (int i = 0; i <= kParts; ++i) {
    const double place = static_cast<double>(i) / kParts;
    out.push_back({{"x", svg_percent(place)},
                   {"anchor", i == 0        ? "start"
                              : i == kParts ? "end"
                                            : "middle"},
                   {"label", duration(scale.time_at(place) - origin)},
                   {"minor", i % 2 == 1}});
  }
  return out;
}

Chart pauses(const TimeScale& scale) {
  Chart out = Chart::array();
  for (const TimeScale::Pause& pause : scale.pauses())
    out.push_back({{"x", svg_percent(pause.from)},
                   {"width", svg_percent(pause.to - pause.from)},
                   {"title", fmt::format("a pause of {}, drawn shorter", duration(pause.length))}});
  return out;
}

// The launches of one CUDA context, a lane for each kernel.
Chart chart(const std::vector<TimedLaunch>& launches, const PageKernels& kernels, const std::string& label) {
  std::vector<TimeScale::Interval> busy;
  for (const TimedLaunch& launch : launches)
    busy.emplace_back(launch.begin_ms, launch.begin_ms + all_ms(launch));
  const TimeScale scale(busy);
  const double origin = scale.time_at(0);
  std::vector<std::string> lanes;
  for (const TimedLaunch& launch : launches)
    if (std::ranges::find(lanes, launch.kernel) == lanes.end()) lanes.push_back(launch.kernel);
  Chart lane_views = Chart::array();
  for (size_t i = 0; i < std::min(lanes.size(), kMostLanes); ++i) {
    const PageKernel kernel = kernel_on_page(kernels, lanes[i]);
    Chart bars = Chart::array();
    for (const TimedLaunch& launch : launches) {
      if (launch.kernel != lanes[i]) continue;
      const std::string title = tooltip(kernel.short_name, launch, origin);
      add_bar(bars, scale, launch.begin_ms, launch.parent_ms, "parents", title);
      add_bar(bars, scale, launch.begin_ms + launch.parent_ms, launch.children_ms, "children", title);
    }
    lane_views.push_back(
        {{"lane", kernel.short_name}, {"id", kernel.id}, {"bars", bars}, {"pauses", pauses(scale)}});
  }
  const size_t missing = lanes.size() - lane_views.size();
  return {{"label", label},
          {"count", amount(launches.size(), "launch", "launches")},
          {"lanes", lane_views},
          {"ticks", ticks(scale, origin)},
          {"has_pauses", !scale.pauses().empty()},
          {"missing", missing == 0 ? Chart() : Chart(amount(missing, "more kernel"))}};
}

// Each CUDA context counts its time from its own first launch.
void add_charts(Chart& out, const ProcessRecord& process, const PageKernels& kernels, bool is_only_one,
                size_t& left_out) {
  std::map<uint64_t, std::vector<TimedLaunch>> by_context;
  for (const TimedLaunch& launch : process.first) by_context[launch.context].push_back(launch);
  size_t number = 0;
  for (auto& [context, launches] : by_context) {
    ++number;
    if (out.size() == kMostTimelines) {
      ++left_out;
      continue;
    }
    std::string label = is_only_one ? "" : process.label;
    if (by_context.size() > 1) label += fmt::format("{}CUDA context {}", label.empty() ? "" : ", ", number);
    std::ranges::stable_sort(launches, {}, &TimedLaunch::begin_ms);
    out.push_back(chart(launches, kernels, label));
  }
}

// The first launch that is known of the context that this one is in.
double origin_of(const ProcessRecord& process, const TimedLaunch& launch) {
  double origin = launch.begin_ms;
  for (const std::vector<TimedLaunch>* const launches : {&process.first, &process.slowest})
    for (const TimedLaunch& other : *launches)
      if (other.context == launch.context) origin = std::min(origin, other.begin_ms);
  return origin;
}

Chart slowest_view(const Statistics& all, const PageKernels& kernels) {
  struct Row {
    const TimedLaunch* launch;
    const ProcessRecord* process;
  };
  std::vector<Row> rows;
  for (const ProcessRecord& process : all.all_processes)
    for (const TimedLaunch& launch : process.slowest) rows.push_back({&launch, &process});
  std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return all_ms(*row.launch); });
  rows.resize(std::min(rows.size(), kMostSlowest));
  Chart out = Chart::array();
  for (const Row& row : rows) {
    const PageKernel kernel = kernel_on_page(kernels, row.launch->kernel);
    const double most = all_ms(*rows.front().launch) > 0 ? all_ms(*rows.front().launch) : 1;
    out.push_back({{"number", fmt::format("{}", out.size() + 1)},
                   {"short", kernel.short_name},
                   {"id", kernel.id},
                   {"process", all.processes > 1 ? Chart(row.process->label) : Chart()},
                   {"begin", duration(row.launch->begin_ms - origin_of(*row.process, *row.launch))},
                   {"slice", row.launch->is_slice},
                   {"parent", duration(row.launch->parent_ms)},
                   {"children", duration(row.launch->children_ms)},
                   {"sum", duration(all_ms(*row.launch))},
                   {"parents_width", svg_percent(row.launch->parent_ms / most)},
                   {"children_width", svg_percent(row.launch->children_ms / most)}});
  }
  return out;
}

}  // namespace

Chart timeline_view(const Statistics& all, const PageKernels& kernels) {
  Chart charts = Chart::array();
  size_t left_out = 0;
  for (const ProcessRecord& process : all.all_processes)
    add_charts(charts, process, kernels, all.processes == 1, left_out);
  if (charts.empty()) return Chart();
  return {{"charts", charts},
          {"left_out", left_out == 0 ? Chart() : Chart(amount(left_out, "more CUDA context"))},
          {"slowest", slowest_view(all, kernels)},
          {"has_processes", all.processes > 1}};
}

}  // namespace klap::tool
