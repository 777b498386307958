// klap report adds up the statistics in files, and prints them as text or writes them as a page of HTML.
#include <fmt/format.h>

#include <filesystem>

#include "klap/commands.h"
#include "klap/report/baseline.h"
#include "klap/report/page.h"
#include "klap/statistics.h"
#include "klap/summary.h"
#include "support/file.h"

namespace klap::tool {

namespace {

// A process is known by its file, and by its id where a file has several.
std::string label_of(const std::string& file, const nlohmann::json& process, bool is_only_one) {
  const std::string name = std::filesystem::path(file).stem().string();
  const auto id = process.find("process");
  return is_only_one || id == process.end() ? name : fmt::format("{}, process {}", name, id->dump());
}

Statistics sum_of_files(const std::vector<std::string>& files) {
  Statistics sum;
  for (const std::string& file : files) {
    const std::vector<nlohmann::json> processes = read_statistics(file);
    for (const nlohmann::json& process : processes)
      sum.add(process, label_of(file, process, processes.size() == 1));
  }
  return sum;
}

std::string gain_line(const std::string& what, const Gain& gain, const std::string& before) {
  return fmt::format("{}: {:.3f} ms {}, {:.3f} ms now, {:.2f} times as fast\n", what, gain.before_ms, before,
                     gain.now_ms, gain.times());
}

// Empty if there is nothing to compare with.
std::string gain_lines(const Statistics& all, const Baseline& baseline) {
  std::string out;
  if (const auto gain = baseline.program()) out += gain_line("whole program", *gain, baseline.name());
  if (const auto gain = baseline.gpu()) out += gain_line("GPU time", *gain, baseline.name());
  for (const auto& [mangled, kernel] : all.kernels)
    if (const auto gain = baseline.launch(mangled))
      out += gain_line("one launch of " + kernel.name, *gain, baseline.name());
  if (const std::string warning = baseline.warning(); !out.empty() && !warning.empty()) out += warning + "\n";
  return out.empty() ? out : "\n" + out;
}

}  // namespace

void report(const ReportOptions& options) {
  const Statistics all = sum_of_files(options.files);
  std::optional<Statistics> before;
  if (!options.baseline.empty()) before = sum_of_files({options.baseline});
  const Baseline baseline(all, std::move(before));
  const bool is_page_printed = options.html == "-";
  if (!options.html.empty()) {
    const std::string page = html_page(all, baseline);
    is_page_printed ? fmt::print("{}", page) : write_file(options.html, page);
  }
  if (!is_page_printed) fmt::print("{}{}", full_summary(all), gain_lines(all, baseline));
}

}  // namespace klap::tool
