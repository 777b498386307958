// The statistics of the processes of one run: as they were left in a folder, and as they are kept.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace klap::tool {

struct ProcessReport {
  std::string process, rank;  // for %p and %r in a file's name
  nlohmann::json statistics;
};

// The files called PROCESS.RANK in a folder, in the order of their names. One that is damaged is left out,
// with a warning: its process may have been killed while it wrote.
std::vector<ProcessReport> collect_reports(const std::filesystem::path& folder);

// Writes them to a file, or to several if its name has %p or %r. If one file is for several processes, it
// holds an array. "-" is standard error. Throws Error(Io).
void keep_reports(const std::vector<ProcessReport>& reports, const std::string& file);

}  // namespace klap::tool
