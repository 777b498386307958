// klap report adds up the statistics in files and prints them as text.
#include <fmt/format.h>

#include "klap/commands.h"
#include "klap/statistics.h"
#include "klap/summary.h"

namespace klap::tool {

void report(const ReportOptions& options) {
  Statistics all;
  for (const std::string& file : options.files)
    for (const nlohmann::json& process : read_statistics(file)) all.add(process);
  fmt::print("{}", full_summary(all));
}

}  // namespace klap::tool
