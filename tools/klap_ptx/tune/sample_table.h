// Samples of a kernel as a table of numbers, for models and statistics that ask for no more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"

namespace klap::tool {

struct Sample {
  Configuration configuration;
  double ms = 0;  // of a launch, with its children
};

// Means of performance counters over a kernel's launches, by the names of their metrics.
using CounterValues = std::map<std::string, double>;

struct SampleTable {
  std::vector<std::string> names;         // of the variables
  std::vector<std::vector<double>> rows;  // the values of all variables, one row a sample
  std::vector<double> times;              // milliseconds, one a sample
  // The subject of each variable. Variables of one subject exclude each other.
  std::vector<std::string> subjects = {};
};

// Each candidate is a variable: 1 in samples where it is in force, else 0.
SampleTable settings_table(const std::vector<Sample>& samples, const std::vector<Candidate>& tried);
std::vector<double> settings_row(const Configuration& configuration, size_t candidates);

// Each metric that all samples have is a variable. `counters` are those of each sample.
SampleTable counters_table(const std::vector<Sample>& samples, const std::vector<CounterValues>& counters);

// Scales each variable to a mean of 0 and a variance of 1, so that units do not matter. A variable that never
// changes, or that is not finite somewhere, is left out.
SampleTable standardised(const SampleTable& table);

}  // namespace klap::tool
