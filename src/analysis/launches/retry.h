// Retry loops: a launch that is repeated while the pool of pending launches is full.
//
// CUDA drops a launch beyond the pending limit and reports error 69; careful programs ask for the error and
// launch again. The loop is then not one that launches many children.
#pragma once

#include <string>

#include "analysis/launches/origins.h"

namespace klap::analysis {

struct Site;

// cudaErrorLaunchPendingCountExceeded
inline constexpr uint64_t kPendingCountExceeded = 69;

// Line of the comparison with error 69 that stands in a loop with the launch and reads the launch's result or
// the thread's last error; 0 if there is none. The place serves messages only: it is not shown that the
// comparison alone decides about the loop.
std::string retry_place(const OriginQuery& query, const Site& site);

// "a retry loop on the pending limit (line 130:2)", or nothing.
std::string print_retry(const std::string& place);

}  // namespace klap::analysis
