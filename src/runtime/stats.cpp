#include "runtime/stats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "jit/compile/toolchain.h"
#include "runtime/remark_json.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/file.h"
#include "support/hash.h"

namespace klap::runtime {

namespace {

Json timings_json(const jit::Timings& timings) {
  return Json::Object{{"parse", timings.parse},
                      {"analyse", timings.analyse},
                      {"templates", timings.templates},
                      {"transform", timings.transform},
                      {"link", timings.link}};
}

Json numbers_json(const std::map<std::string, uint64_t>& numbers) {
  Json::Object out;
  for (const auto& [name, number] : numbers) out.emplace(name, number);
  return out;
}

// Counts that are zero are left out.
Json counts_json(const std::map<std::string, std::atomic<uint64_t>>& counts) {
  Json::Object out;
  for (const auto& [name, counted] : counts)
    if (const uint64_t count = counted.load(std::memory_order_relaxed)) out[name] = count;
  return out;
}

Json module_json(const ModuleRecord& module) {
  Json::Array sites;
  for (const jit::SiteRemark& remark : module.remarks) sites.push_back(remark_json(remark));
  return Json::Object{{"how", module.how},
                      {"load_path", module.load_path},
                      {"variants", module.variants},
                      {"sites", std::move(sites)},
                      {"cache", module.cache},
                      {"loads", module.loads},
                      {"compile_ms", timings_json(module.timings)},
                      {"load_ms", module.load_ms},
                      {"driver_ms", module.driver_ms},
                      {"tuned_file", module.tuned_file},
                      {"is_tuned", module.is_tuned}};
}

// It is equal for loads that only their times tell apart.
std::array<uint64_t, 2> identity_of(ModuleRecord module) {
  module.timings = {};
  module.load_ms = module.driver_ms = 0;
  return content_hash(module_json(module).text());
}

void add(jit::Timings& sum, const jit::Timings& timings) {
  sum.parse += timings.parse;
  sum.analyse += timings.analyse;
  sum.templates += timings.templates;
  sum.transform += timings.transform;
  sum.link += timings.link;
}

Json toolchain_json() {
  const jit::ToolchainCalls calls = jit::toolchain_calls();
  return Json::Object{{"nvrtc", calls.nvrtc}, {"nvjitlink", calls.nvjitlink}};
}

Json totals_of_sites(const std::vector<ModuleRecord>& modules) {
  uint64_t rewritten = 0;
  std::map<std::string, uint64_t> left;
  for (const ModuleRecord& module : modules) {
    for (const jit::SiteRemark& remark : module.remarks) {
      if (remark.rewritten) {
        rewritten += module.loads;
      } else {
        left[remark.reason] += module.loads;
      }
    }
  }
  return Json::Object{{"rewritten", rewritten}, {"left", numbers_json(left)}};
}

Json totals_of_time(const std::vector<ModuleRecord>& modules) {
  jit::Timings sum;
  double load = 0;
  for (const ModuleRecord& module : modules) {
    add(sum, module.timings);
    load += module.load_ms;
  }
  return Json::Object{{"compile_ms", timings_json(sum)}, {"load_ms", load}};
}

Json guard_json(const GuardRecord& guard) {
  const char* const choice = !guard.is_decided ? "open" : guard.is_original ? "original" : "variant";
  return Json::Object{{"launches", guard.launches},
                      {"children", guard.children},
                      {"choice", choice},
                      {"from", !guard.is_decided ? Json()
                               : guard.is_told   ? "earlier runs"
                                                 : "this run"},
                      {"earlier_runs", guard.earlier_runs},
                      {"variant_ms", guard.variant_ms},
                      {"original_ms", guard.original_ms},
                      {"trials", guard.trials},
                      {"lost_ms", guard.lost_ms}};
}

}  // namespace

Stats& Stats::instance() {
  // Leaked on purpose: launches may still come from other threads while the process runs its exit handlers.
  static Stats* const stats = new Stats;
  return *stats;
}

void Stats::module_seen(ModuleRecord record) {
  const std::array<uint64_t, 2> identity = identity_of(record);
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = module_places_.emplace(identity, modules_.size());
  if (is_new) {
    modules_.push_back(std::move(record));
    return;
  }
  ModuleRecord& known = modules_[place->second];
  known.loads += record.loads;
  add(known.timings, record.timings);
  known.load_ms += record.load_ms;
  known.driver_ms += record.driver_ms;
}

std::atomic<uint64_t>& Stats::redirections(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  return redirected_[parent];
}

std::atomic<uint64_t>& Stats::fused_launches(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  return fused_[parent];
}

std::atomic<uint64_t>& Stats::ordered_launches(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  return ordered_[parent];
}

FormCounts& Stats::forms(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  return forms_[parent];
}

void Stats::launch_sliced(const std::string& parent, uint64_t slices) {
  const std::lock_guard lock(mutex_);
  Sliced& sliced = sliced_[parent];
  ++sliced.launches;
  sliced.slices += slices;
}

void Stats::launch_left(const std::string& parent, const std::string& reason, uint64_t times) {
  const std::lock_guard lock(mutex_);
  left_[parent][reason] += times;
}

void Stats::engine_seen(const std::string& parent, const std::string& engine) {
  const std::lock_guard lock(mutex_);
  engines_.insert_or_assign(parent, engine);
}

void Stats::guard_found(const std::string& parent, const GuardRecord& record) {
  constexpr size_t kMost = 64;  // of a parent
  const std::lock_guard lock(mutex_);
  std::vector<GuardRecord>& guards = guards_[parent];
  if (guards.size() < kMost) guards.push_back(record);
}

void Stats::launch_timed(const TimedRecord& launch) {
  const std::lock_guard lock(mutex_);
  GpuTime& time = gpu_times_[launch.parent];
  if (!launch.is_slice) ++time.launches;
  time.parent_ms += launch.parent_ms;
  time.consumer_ms += launch.children_ms;
  timeline_.add(launch);
}

void Stats::launch_counted(const std::string& parent, const std::map<std::string, double>& values) {
  const std::lock_guard lock(mutex_);
  Counted& counted = counted_[parent];
  ++counted.launches;
  for (const auto& [name, value] : values) {
    Metric& metric = counted.metrics[name];
    metric.sum += value;
    ++metric.launches;
  }
}

void Stats::counting_failed(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  counting_problems_.push_back(problem);
}

// The means of all metrics.
Json Stats::counters_json() const {
  if (counted_.empty() && counting_problems_.empty()) return {};
  Json::Object launches, means;
  for (const auto& [parent, counted] : counted_) {
    launches[parent] = counted.launches;
    Json::Object of_parent;
    for (const auto& [name, metric] : counted.metrics)
      of_parent[name] = metric.sum / static_cast<double>(metric.launches);
    means[parent] = std::move(of_parent);
  }
  return Json::Object{
      {"launches", std::move(launches)}, {"means", std::move(means)}, {"problems", counting_problems_}};
}

Json Stats::gpu_times_json() const {
  Json::Object launches, parents, consumers;
  for (const auto& [parent, time] : gpu_times_) {
    launches[parent] = time.launches;
    parents[parent] = time.parent_ms;
    consumers[parent] = time.consumer_ms;
  }
  return Json::Object{{"launches", std::move(launches)},
                      {"parents", std::move(parents)},
                      {"consumers", std::move(consumers)}};
}

void Stats::sizes_found(const std::string& parent, const std::string& child, const std::string& counted,
                        const std::vector<uint64_t>& sizes) {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t>& sum = sizes_[{parent, child, counted}];
  sum.resize(std::max(sum.size(), sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) sum[i] += sizes[i];
}

// Bins without children are left out. The last one has no upper end.
Json Stats::sizes_json() const {
  Json::Array out;
  for (const auto& [children, sizes] : sizes_) {
    Json::Array bins;
    for (size_t bin = 0; bin < sizes.size(); ++bin) {
      if (sizes[bin] == 0) continue;
      const bool is_last = bin + 1 == sizes.size();
      bins.push_back(Json::Object{{"up_to", is_last ? Json() : Json((uint64_t{1} << bin) - 1)},
                                  {"children", sizes[bin]}});
    }
    out.push_back(Json::Object{{"parent", children.parent},
                               {"child", children.child},
                               {"counted", children.counted},
                               {"sizes", std::move(bins)}});
  }
  return out;
}

Json Stats::sliced_json() const {
  Json::Object out;
  for (const auto& [parent, sliced] : sliced_)
    out[parent] = Json::Object{{"launches", sliced.launches}, {"slices", sliced.slices}};
  return out;
}

Json Stats::forms_json() const {
  Json::Object out;
  for (const auto& [parent, counts] : forms_) {
    if (counts.flat + counts.in_blocks == 0) continue;
    const uint64_t lanes = counts.lanes;
    out[parent] = Json::Object{
        {"flat", counts.flat.load()},
        {"in_blocks", counts.in_blocks.load()},
        {"looks", counts.looks.load()},
        {"lanes_used",
         lanes == 0 ? Json() : static_cast<double>(counts.threads) / static_cast<double>(lanes)}};
  }
  return out;
}

void Stats::frames_found(const FrameCounts& counts) {
  const std::lock_guard lock(mutex_);
  frames_ = counts;
}

void Stats::queues_hold(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  most_queue_bytes_ = std::max(most_queue_bytes_, bytes);
}

void Stats::device_seen(const std::string& model) {
  const std::lock_guard lock(mutex_);
  devices_.insert(model);
}

Json Stats::frames_json() const {
  if (!frames_.is_counted) return {};
  return Json::Object{{"bytes_taken", frames_.bytes_taken},
                      {"bytes_returned", frames_.bytes_returned},
                      {"refused", frames_.refused}};
}

Json Stats::left_json() const {
  Json::Object out;
  for (const auto& [parent, reasons] : left_) out[parent] = numbers_json(reasons);
  return out;
}

// The parents that were launched at all.
Json Stats::parents_json() const {
  Json::Object out;
  for (const auto& [parent, engine] : engines_) {
    const auto redirected = redirected_.find(parent);
    const uint64_t variants = redirected == redirected_.end() ? 0 : redirected->second.load();
    uint64_t originals = 0;
    if (const auto left = left_.find(parent); left != left_.end())
      for (const auto& [reason, launches] : left->second) originals += launches;
    if (variants + originals == 0) continue;
    Json::Array guards;
    if (const auto found = guards_.find(parent); found != guards_.end())
      for (const GuardRecord& guard : found->second) guards.push_back(guard_json(guard));
    out[parent] = Json::Object{{"engine", engine},
                               {"variant_launches", variants},
                               {"original_launches", originals},
                               {"guard", std::move(guards)}};
  }
  return out;
}

Json Stats::report() const {
  const std::lock_guard lock(mutex_);
  Json::Array modules;
  for (const ModuleRecord& module : modules_) modules.push_back(module_json(module));
  const auto counted = [&](const std::atomic<uint64_t>& total) {
    return counts_children_ ? Json(total.load(std::memory_order_relaxed)) : Json();
  };
  return Json::Object{{"format", 1},
                      {"process", getpid()},
                      {"modules", std::move(modules)},
                      {"modules_passed_through", passed_through_.load(std::memory_order_relaxed)},
                      {"sites", totals_of_sites(modules_)},
                      {"launches", Json::Object{{"redirected", counts_json(redirected_)},
                                                {"fused", counts_json(fused_)},
                                                {"ordered", counts_json(ordered_)},
                                                {"left", left_json()},
                                                {"sliced", sliced_json()}}},
                      {"forms", forms_json()},
                      {"frames", frames_json()},
                      {"queues", Json::Object{{"most_bytes", most_queue_bytes_}}},
                      {"devices", Json::Array(devices_.begin(), devices_.end())},
                      {"parents", parents_json()},
                      {"counters", counters_json()},
                      {"gpu_ms", gpu_times_.empty() ? Json() : gpu_times_json()},
                      {"timeline", timeline_.json()},
                      {"child_sizes", looks_for_sizes_ ? sizes_json() : Json()},
                      {"toolchain_calls", toolchain_json()},
                      {"children_aggregated", counted(children_)},
                      {"children_launched_natively", counted(native_)},
                      {"links_promoted", counted(links_)},
                      {"totals", totals_of_time(modules_)}};
}

nlohmann::json Stats::to_json() const { return nlohmann::json::parse(report().text()); }

void Stats::write(const std::string& file) const noexcept {
  try_or_report("KLAP_STATS", "statistics not written", [&] {
    const std::string text = report().text() + "\n";
    if (file == "-") {
      (void)std::fputs(text.c_str(), stderr);
    } else {
      write_file(with_process(file), text);
    }
  });
}

}  // namespace klap::runtime
