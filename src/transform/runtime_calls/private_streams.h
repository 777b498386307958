// Kernels whose launches are deferred, without the streams that they create for them
// (analysis/facts/private_streams.h).
//
// The calls succeed and create nothing. A creation leaves only a handle that stands for a stream. It serves
// null tests and launches that the program makes after all. So creating a stream never fails, as it may
// natively when there are too many.
#pragma once

#include <string>

#include "analysis/facts/facts.h"
#include "transform/text/splice.h"

namespace klap::transform {

// The text that replaces the kernel's calls that create and destroy streams, in a body where every name gets
// `body_prefix`.
Surroundings without_private_streams(const analysis::FunctionFacts& kernel, const std::string& body_prefix);

}  // namespace klap::transform
