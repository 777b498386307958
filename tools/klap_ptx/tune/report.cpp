#include "klap_ptx/tune/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/demangle.h"

namespace klap::tool {
namespace {

using nlohmann::json;

// The model of one kernel, and how good it is.
struct Findings {
  std::vector<Sample> samples;
  HeldOut held_out;
  std::map<std::string, double> importance;
};

Findings findings(const TuneReport& report, const std::string& parent) {
  Findings out;
  if (const auto search = report.searches.find(parent); search != report.searches.end())
    out.samples = search->second.samples();
  // Settings alone tell nothing about each other.
  if (report.samples == 0) return out;
  out.held_out = test_model(out.samples, report.tried);
  if (!out.held_out.pairs.empty()) out.importance = importance(out.samples, report.tried);
  return out;
}

void print_findings(const Findings& found) {
  if (found.held_out.pairs.empty()) return;
  fmt::print(
      "  {} configurations were measured. A model of four in five predicts the others with an error of "
      "{:.1f} % in the middle, and of {:.1f} % or less for nine in ten\n",
      found.samples.size(), 100 * found.held_out.median_error, 100 * found.held_out.error_of_nine_in_ten);
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [subject, share] : found.importance)
    if (share >= 0.01) ranked.emplace_back(share, subject);
  std::ranges::sort(ranked, std::greater());
  std::vector<std::string> parts;
  for (const auto& [share, subject] : ranked)
    parts.push_back(fmt::format("{} {:.0f} %", subject, 100 * share));
  if (!parts.empty()) fmt::print("  Its time depends on: {}\n", fmt::join(parts, ", "));
}

void print_choice(const TuneReport& report, const Choice& choice) {
  fmt::print("{}: {:.4f} ms a launch", demangle(choice.parent), choice.default_ms);
  if (choice.best.empty()) {
    fmt::print(", which no setting makes {:.0f} % shorter\n", 100 * kLeastGain);
  } else {
    fmt::print(", {:.4f} with {} ({:.0f} % less)\n", choice.best_ms, text(choice.best, report.tried),
               100 * (1 - choice.best_ms / choice.default_ms));
  }
  print_findings(findings(report, choice.parent));
}

json to_json(const Findings& found, const std::vector<Candidate>& tried) {
  json samples = json::array(), pairs = json::array();
  for (const Sample& sample : found.samples)
    samples.push_back({{"settings", values(sample.configuration, tried)}, {"ms", sample.ms}});
  for (const HeldOut::Pair& pair : found.held_out.pairs)
    pairs.push_back({{"settings", values(pair.configuration, tried)},
                     {"measured_ms", pair.measured_ms},
                     {"predicted_ms", pair.predicted_ms}});
  return {{"samples", std::move(samples)},
          {"held_out", std::move(pairs)},
          {"median_error", found.held_out.median_error},
          {"error_of_nine_in_ten", found.held_out.error_of_nine_in_ten},
          {"importance", found.importance}};
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
  if (report.samples != 0) fmt::print("Models know times and settings; performance counters are not read\n");
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
  for (const Choice& choice : report.choices)
    kernels.push_back({{"name", choice.parent},
                       {"default_ms", choice.default_ms},
                       {"best_ms", choice.best_ms},
                       {"settings", values(choice.best, report.tried)},
                       {"model", to_json(findings(report, choice.parent), report.tried)}});
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
          {"kernels", std::move(kernels)}};
}

}  // namespace klap::tool
