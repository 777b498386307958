// Results of the pipeline's passes as text, for people: klap-ptx, the log and the dumps print the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/data/remark.h"
#include "jit/data/site_info.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// A launch site as klap-ptx shows it.
SiteInfo site_info(const analysis::FunctionFacts& facts, const analysis::Site& site);

// "launch at line 119:2: child(int*) [_Z5childPi] from ..." and a line for everything that is known about it.
std::string describe(const SiteInfo& site);

enum class Verbosity : uint8_t { Brief, Facts };

// One line for the verdict on a site and one for each note, as clang writes remarks:
// "FILE:LINE:COLUMN: remark: ... [-Rklap=grid]". The place is one of the source where the PTX tells it, and
// else one of the PTX, whose file is given. In the brackets stands how the site is rewritten, or the reason
// for which it is left. With Facts, a note has what else is known, as `key=value`.
std::string describe(const SiteRemark& remark, const std::string& ptx_file,
                     Verbosity verbosity = Verbosity::Brief);

// "FILE:LINE:COLUMN" of a remark, as above.
std::string place_of(const SiteRemark& remark, const std::string& ptx_file);

// All that is known of a site as facts, those of the verdict before SiteRemark::facts.
std::vector<Fact> facts_of(const SiteRemark& remark);

// How a site will be rewritten.
std::string describe(const PlannedSite& site);

// A module as the parser understood it.
std::string describe(const ptx::Module& module);

}  // namespace klap::jit
