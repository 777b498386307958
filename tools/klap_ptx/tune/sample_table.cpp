#include "klap_ptx/tune/sample_table.h"

#include <algorithm>
#include <cmath>

namespace klap::tool {

SampleTable settings_table(const std::vector<Sample>& samples, const std::vector<Candidate>& tried) {
  SampleTable table;
  for (const Candidate& candidate : tried) {
    table.names.push_back(candidate.text());
    table.subjects.emplace_back(candidate.subject());
  }
  for (const Sample& sample : samples) {
    table.rows.push_back(settings_row(sample.configuration, tried.size()));
    table.times.push_back(sample.ms);
  }
  return table;
}

std::vector<double> settings_row(const Configuration& configuration, size_t candidates) {
  std::vector<double> row(candidates);
  for (const size_t i : configuration) row.at(i) = 1;
  return row;
}

SampleTable counters_table(const std::vector<Sample>& samples, const std::vector<CounterValues>& counters) {
  SampleTable table;
  if (samples.empty()) return table;
  const auto is_everywhere = [&](const std::string& metric) {
    return std::ranges::all_of(counters, [&](const CounterValues& some) { return some.contains(metric); });
  };
  for (const auto& [metric, value] : counters.front())
    if (is_everywhere(metric)) table.names.push_back(metric);
  table.subjects = table.names;
  for (size_t i = 0; i < samples.size(); ++i) {
    std::vector<double>& row = table.rows.emplace_back();
    for (const std::string& metric : table.names) row.push_back(counters[i].at(metric));
    table.times.push_back(samples[i].ms);
  }
  return table;
}

SampleTable standardised(const SampleTable& table) {
  constexpr double kRounding = 1e-9;  // a smaller part of the mean is not a change
  SampleTable out;
  out.rows.resize(table.rows.size());
  out.times = table.times;
  const auto count = static_cast<double>(table.rows.size());
  for (size_t column = 0; column < table.names.size(); ++column) {
    double sum = 0, squares = 0;
    for (const auto& row : table.rows) sum += row[column];
    const double mean = sum / count;
    for (const auto& row : table.rows) squares += (row[column] - mean) * (row[column] - mean);
    const double deviation = std::sqrt(squares / count);
    if (!std::isfinite(deviation) || deviation <= kRounding * std::abs(mean)) continue;
    out.names.push_back(table.names[column]);
    for (size_t i = 0; i < table.rows.size(); ++i)
      out.rows[i].push_back((table.rows[i][column] - mean) / deviation);
  }
  return out;
}

}  // namespace klap::tool
