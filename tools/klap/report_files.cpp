#include "klap/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "klap/statistics.h"
#include "klap_ptx/input.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string as_text(const nlohmann::json& statistics) {
  return statistics.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<ProcessReport> collect_reports(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<ProcessReport> out;
  for (const fs::path& file : files) {
    try {
      out.push_back({file.stem().string(), file.extension().string().substr(1),
                     read_statistics(file.string()).front()});
    } catch (const Error& error) {
      fmt::print(stderr, "{}: warning: {}\n", program_name(), error.what());
    }
  }
  return out;
}

void keep_reports(const std::vector<ProcessReport>& reports, const std::string& file) {
  std::map<std::string, nlohmann::json> files;
  for (const ProcessReport& report : reports) {
    const std::string name = replaced(replaced(file, "%p", report.process), "%r", report.rank);
    files.try_emplace(name, nlohmann::json::array()).first->second.push_back(report.statistics);
  }
  for (const auto& [name, all] : files) {
    const std::string text = as_text(all.size() == 1 ? all.front() : all);
    if (name == "-") {
      fmt::print(stderr, "{}", text);
    } else {
      write_file(name, text);
    }
  }
}

}  // namespace klap::tool
