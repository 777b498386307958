#include "klap_ptx/tune/sample_table.h"

#include <cmath>

namespace klap::tool {

SampleTable settings_table(const std::vector<Sample>& samples, const std::vector<Candidate>& tried) {
  SampleTable table;
  for (const Candidate& candidate : tried) table.names.push_back(candidate.text());
  for (const Sample& sample : samples) {
    std::vector<double>& row = table.rows.emplace_back(tried.size());
    for (const size_t i : sample.configuration) row.at(i) = 1;
    table.times.push_back(sample.ms);
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
