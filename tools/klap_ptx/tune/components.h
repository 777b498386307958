// Principal components: the directions in which samples differ the most.
//
// Variables that change together make one component, so few components with large shares mean that the
// samples differ in few ways. Zhang et al. (Adaptive kernel aggregation, CF 2018, section 5) show samples
// this way.
#pragma once

#include <string>
#include <vector>

#include "klap_ptx/tune/sample_table.h"

namespace klap::tool {

struct Component {
  double share = 0;             // of the variance of all variables
  std::vector<double> weights;  // one a variable; their squares add up to 1, and the largest is positive
  std::vector<double> scores;   // where each sample lies along it
};

struct Components {
  std::vector<std::string> names;     // the variables that change
  std::vector<Component> components;  // the largest share first; those without a share are left out
};

// All components of the table's variables, each scaled to the same variance. None where nothing changes.
Components principal_components(const SampleTable& table);

// The variables that weigh the most in a component, with their signed weights: "threshold = 64 (+0.71)".
// A variable that weighs less than half as much as the first is left out, and so are all after the third.
std::vector<std::string> heaviest(const Components& all, const Component& component);

}  // namespace klap::tool
