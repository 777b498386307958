// Results of the pipeline's passes as text, for people: klap-ptx, the log and the dumps print the same.
#pragma once

#include <string>

#include "jit/data/remark.h"
#include "jit/data/site_info.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// A launch site as klap-ptx shows it.
SiteInfo site_info(const analysis::FunctionFacts& facts, const analysis::Site& site);

// "launch at line 119:2: child(int*) [_Z5childPi] from ..." and a line for everything that is known about it.
std::string describe(const SiteInfo& site);

// One line for the verdict on a site and one for each note, in the manner of compiler optimisation remarks:
// "PLACE:LINE: remark: ...".
std::string describe(const SiteRemark& remark, const std::string& place);

// How a site will be rewritten.
std::string describe(const PlannedSite& site);

// A module as the parser understood it.
std::string describe(const ptx::Module& module);

}  // namespace klap::jit
