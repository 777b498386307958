#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "klap/report/numbers.h"
#include "klap/report/views.h"

namespace klap::tool {

namespace {

using Part = nlohmann::json;

Part modules_view(const Statistics& all) {
  Part rows = Part::array();
  const auto add = [&](const std::string& what, const std::string& value, const std::string& note = "") {
    rows.push_back({{"what", what}, {"value", value}, {"note", note}});
  };
  add("Modules with launches from kernels", grouped(all.modules));
  add("Modules without", grouped(all.passed_through), "they are passed through as they are");
  if (all.modules != 0)
    add("Modules compiled in this run", grouped(all.compiled),
        all.compiled == 0 ? "everything came from the cache" : "later runs take them from the cache");
  if (all.compile_ms > 0) {
    std::string steps;
    for (const char* const step : {"parse", "analyse", "templates", "transform", "link"})
      if (const auto found = all.compile_steps_ms.find(step); found != all.compile_steps_ms.end())
        steps += fmt::format("{}{} {}", steps.empty() ? "" : ", ", step, duration(found->second));
    add("Time for that", duration(all.compile_ms), steps);
  }
  add("Loading took longer by", duration(all.load_ms), "all processes together");
  return rows;
}

Part memory_view(const Statistics& all) {
  Part rows = Part::array();
  const auto add = [&](const std::string& what, const std::string& value, const std::string& note) {
    rows.push_back({{"what", what}, {"value", value}, {"note", note}});
  };
  if (all.queue_bytes)
    add("Queues of recorded launches", bytes_text(*all.queue_bytes),
        "at most, of the CUDA context that had the most");
  if (all.frames) {
    add("Blocks that wait for children: taken", bytes_text(all.frames->taken),
        "from the device's heap, over time");
    add("Blocks that wait for children: returned", bytes_text(all.frames->returned), "");
    add("Blocks that found no memory", grouped(all.frames->refused), "");
  }
  return rows;
}

// Ranks that should do the same work, side by side.
Part processes_view(const Statistics& all) {
  if (all.processes < 2) return Part();
  double most = 0;
  for (const ProcessRecord& process : all.all_processes)
    most = std::max(most, process.parent_ms + process.children_ms);
  Part rows = Part::array();
  for (const ProcessRecord& process : all.all_processes)
    rows.push_back({{"label", process.label},
                    {"pid", fmt::format("{}", process.id)},
                    {"rewritten", grouped(process.rewritten)},
                    {"left", grouped(process.left)},
                    {"children", process.children ? grouped(*process.children) : "not counted"},
                    {"has_time", most > 0},
                    {"sum", duration(process.parent_ms + process.children_ms)},
                    {"parents_width", svg_percent(most > 0 ? process.parent_ms / most : 0)},
                    {"children_width", svg_percent(most > 0 ? process.children_ms / most : 0)}});
  return {{"rows", rows}, {"has_times", most > 0}};
}

// Kernels that could be rewritten and that nobody launched.
Part idle_view(const Statistics& all, const std::vector<std::string>& listed) {
  Part names = Part::array();
  for (const auto& [mangled, kernel] : all.kernels)
    if (std::ranges::find(listed, mangled) == listed.end()) names.push_back({{"idle_kernel", kernel.name}});
  if (names.empty()) return Part();
  return {{"count", amount(names.size(), "kernel")}, {"names", names}};
}

}  // namespace

Part program_view(const Statistics& all) {
  const Part memory = memory_view(all);
  return {{"modules", modules_view(all)},
          {"has_memory", !memory.empty()},
          {"memory", memory},
          {"processes", processes_view(all)},
          {"idle", idle_view(all, listed_kernels(all))}};
}

}  // namespace klap::tool
