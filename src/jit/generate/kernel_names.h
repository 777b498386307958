// The names of generated kernels.
//
// A name says what the kernel is and holds a tag of its unit. Two kernels that differ must not have the same
// name, and equal consumers of several sites shall have one, so that the code is there once. That is why
// every option that changes a consumer has its part in the name.
#pragma once

#include <string>

#include "jit/planned/planned.h"

namespace klap::jit {

std::string unit_tag(const Plan& plan, size_t unit);
std::string family_name(const Plan& plan, const PlannedSite& site);
std::string consumer_name(const Plan& plan, const PlannedSite& site);
std::string variant_name(const Plan& plan, const PlannedSite& site);

}  // namespace klap::jit
