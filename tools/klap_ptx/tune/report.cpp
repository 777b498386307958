#include "klap_ptx/tune/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/demangle.h"

namespace klap::tool {
namespace {

using nlohmann::json;

// How far the model's choice is from the fastest of all that were measured.
struct Comparison {
  Search::Coverage coverage;
  Sample model, best;
  [[nodiscard]] double distance() const { return model.ms / best.ms - 1; }
};

std::optional<Comparison> compare(const TuneReport& report, const std::string& parent) {
  const auto choice = report.model_choices.find(parent);
  if (choice == report.model_choices.end()) return std::nullopt;
  const Search& search = report.searches.at(parent);
  const auto model_ms = search.middle_ms(choice->second.configuration);
  const std::vector<Sample> all = search.samples();
  if (!model_ms || all.empty()) return std::nullopt;
  return Comparison{search.coverage(), {choice->second.configuration, *model_ms}, all.front()};
}

void print_comparison(const TuneReport& report, const std::string& parent) {
  const auto found = compare(report, parent);
  if (!found) return;
  fmt::print(
      "  {} of {} combinations were tried. After {} proposals the model would have chosen {}: {:.4f} ms, "
      "{:.1f} % more than the best of all, which takes {:.4f} with {}\n",
      found->coverage.tried, found->coverage.all, report.model_choices.at(parent).proposals,
      text(found->model.configuration, report.tried), found->model.ms, 100 * found->distance(),
      found->best.ms, text(found->best.configuration, report.tried));
}

void print_choice(const TuneReport& report, const Choice& choice) {
  fmt::print("{}: {:.4f} ms a launch", demangle(choice.parent), choice.default_ms);
  if (choice.best.empty()) {
    fmt::print(", which no setting makes {:.0f} % shorter\n", 100 * kLeastGain);
  } else {
    fmt::print(", {:.4f} with {} ({:.0f} % less)\n", choice.best_ms, text(choice.best, report.tried),
               100 * (1 - choice.best_ms / choice.default_ms));
  }
  for (const ChildSizes& sizes : report.sizes)
    if (sizes.parent == choice.parent) fmt::print("  {}\n", to_string(sizes));
  print_comparison(report, choice.parent);
  print_findings(report.findings.at(choice.parent));
  const auto counted = report.counter_findings.find(choice.parent);
  if (counted != report.counter_findings.end()) print_findings(counted->second);
}

// Says which performance counters are missing, and why.
void print_counters(const TuneReport& report) {
  if (report.options->counters.empty())
    return fmt::print(
        "Models know times and settings; performance counters are not read (--counters none)\n");
  if (report.counter_findings.empty())
    fmt::print(
        "Models know times and settings only, as performance counters cannot be read. Nsight Compute "
        "cannot stand in for CUPTI, because it sees the program as it is natively\n");
  for (const std::string& problem : report.counter_problems) fmt::print("Counters: {}\n", problem);
}

json counters_json(const TuneReport& report, const std::string& parent) {
  const auto found = report.counter_findings.find(parent);
  return found == report.counter_findings.end() ? json() : to_json(found->second, report.tried);
}

json sizes_json(const TuneReport& report, const std::string& parent) {
  json out = json::array();
  for (const ChildSizes& sizes : report.sizes) {
    if (sizes.parent != parent) continue;
    json bins = json::array();
    for (const ChildSizes::Bin& bin : sizes.bins)
      bins.push_back({{"up_to", bin.up_to ? json(*bin.up_to) : json()}, {"children", bin.children}});
    out.push_back({{"child", sizes.child}, {"counted", sizes.counted}, {"sizes", std::move(bins)}});
  }
  return out;
}

json comparison_json(const TuneReport& report, const std::string& parent) {
  const auto found = compare(report, parent);
  if (!found) return nullptr;
  const auto as_json = [&](const Sample& sample) {
    return json{{"settings", values(sample.configuration, report.tried)}, {"ms", sample.ms}};
  };
  return {{"tried", found->coverage.tried},
          {"all", found->coverage.all},
          {"proposals", report.model_choices.at(parent).proposals},
          {"model", as_json(found->model)},
          {"best", as_json(found->best)},
          {"distance", found->distance()}};
}

json kernel_json(const TuneReport& report, const Choice& choice) {
  const auto pictures = report.pictures.find(choice.parent);
  return {{"name", choice.parent},
          {"default_ms", choice.default_ms},
          {"best_ms", choice.best_ms},
          {"settings", values(choice.best, report.tried)},
          {"child_sizes", sizes_json(report, choice.parent)},
          {"model", to_json(report.findings.at(choice.parent), report.tried)},
          {"counters", counters_json(report, choice.parent)},
          {"exhaustive", comparison_json(report, choice.parent)},
          {"pictures", pictures != report.pictures.end() ? json(pictures->second) : json::array()}};
}

}  // namespace

bool TuneReport::has_choice() const {
  return std::ranges::any_of(choices, [](const Choice& choice) { return !choice.best.empty(); });
}

bool TuneReport::slows_program() const {
  constexpr double kNoise = 1.02;
  return !tuned_seconds.empty() && !default_seconds.empty() &&
         *std::ranges::min_element(tuned_seconds) > kNoise * *std::ranges::max_element(default_seconds);
}

void print_report(const TuneReport& report) {
  for (const Choice& choice : report.choices) print_choice(report, choice);
  print_counters(report);
  if (!report.pictures.empty()) fmt::print("Pictures of this are in {}\n", report.options->pictures);
  if (!report.has_choice()) return fmt::print("No setting is better, so nothing is written\n");
  fmt::print("The program takes {:.3f} s with these settings, {:.3f} without, {:.3f} natively\n",
             middle(report.tuned_seconds), middle(report.default_seconds), report.native_seconds);
  if (report.slows_program()) {
    fmt::print("Its launches gain less than that costs, so later runs do not use them\n");
  } else if (!report.kept_in.empty()) {
    fmt::print("Later runs of the program use them, but for KLAP_TUNE=off. They are kept in {}\n",
               fmt::join(report.kept_in, ", "));
  } else if (report.options->out.empty()) {
    fmt::print("Later runs do not find them. Option -o writes them to a config file\n");
  }
  if (!report.options->out.empty())
    fmt::print("Written to {}; use it with KLAP_CONFIG={}\n", report.options->out, report.options->out);
}

json to_json(const TuneReport& report) {
  json settings = json::array(), kernels = json::array();
  for (size_t i = 0; i < report.tried.size(); ++i)
    settings.push_back({{"key", report.tried[i].key},
                        {"value", report.tried[i].value},
                        {"problem", report.measured[i].problem},
                        {"runs", report.measured[i].times}});
  for (const Choice& choice : report.choices) kernels.push_back(kernel_json(report, choice));
  const bool is_written = report.has_choice() && !report.options->out.empty();
  return {{"command", report.options->command},
          {"config", is_written ? json(report.options->out) : json()},
          {"kept_in", report.kept_in},
          {"slows_program", report.slows_program()},
          {"seconds",
           {{"all", report.seconds},
            {"native", report.native_seconds},
            {"default", report.default_seconds},
            {"tuned", report.tuned_seconds}}},
          {"default_runs", report.default_runs},
          {"settings", std::move(settings)},
          {"not_tried", report.not_tried},
          {"samples", report.samples},
          {"counters", {{"metrics", report.options->counters}, {"problems", report.counter_problems}}},
          {"kernels", std::move(kernels)}};
}

}  // namespace klap::tool
