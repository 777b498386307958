// The samples of a search as a table of numbers, for statistics that ask for no more.
#pragma once

#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"
#include "klap_ptx/tune/time_model.h"

namespace klap::tool {

struct SampleTable {
  std::vector<std::string> names;         // of the variables
  std::vector<std::vector<double>> rows;  // the values of all variables, one row a sample
  std::vector<double> times;              // milliseconds, one a sample
};

// Each candidate is a variable: 1 in samples where it is in force, else 0.
SampleTable settings_table(const std::vector<Sample>& samples, const std::vector<Candidate>& tried);

// Scales each variable to a mean of 0 and a variance of 1, so that units do not matter. A variable that never
// changes, or that is not finite somewhere, is left out.
SampleTable standardised(const SampleTable& table);

}  // namespace klap::tool
