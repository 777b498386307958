// Kernels whose launches are put off, without the streams that they create for them
// (analysis/facts/own_streams.h).
//
// The calls succeed and make nothing: what is left of a creation is a handle that stands for a stream, for
// null tests and for launches that the program makes after all. So creating a stream never fails, as it may
// natively when there are too many.
#pragma once

#include <string>

#include "analysis/facts/facts.h"
#include "transform/text/splice.h"

namespace klap::transform {

// In place of the kernel's calls that create and destroy streams, in a body where every name gets
// `body_prefix`.
Surroundings without_own_streams(const analysis::FunctionFacts& kernel, const std::string& body_prefix);

}  // namespace klap::transform
