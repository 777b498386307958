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

// Line of a branch in a loop with the launch that one of these errors decides, through any computation but
// not through memory; empty if there is none. Such a loop may launch until there is room.
std::string error_branch_place(const OriginQuery& query, const Site& site);
// Answers that for any call that may find no room.
std::string error_branch_place(const OriginQuery& query, const ptx::Statement& call);

// "a retry loop on the pending limit (line 130:2)", or nothing.
std::string print_retry(const std::string& place);

}  // namespace klap::analysis
