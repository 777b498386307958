// Streams that a kernel's threads create for themselves, launch into and destroy.
//
// Such a stream orders only the launches of its own thread into it. CUDA creates streams on the device as
// non-blocking ones only, which have no order with the NULL stream either. A deferred launch does not need
// the stream at all. So a rewrite can drop the calls that create and destroy streams if all streams of the
// kernel are private. A stream is private if its handle stays in local memory and goes nowhere but into
// launches, calls that destroy it, and null tests (stream_ownership.h).
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/flow_facts.h"

namespace klap::analysis {

// The streams that a kernel creates and that stay its threads' own.
struct PrivateStreams {
  // All calls that create or destroy a stream, where every one of them can be done without; else none.
  std::vector<StreamCall> calls;
  // The reason why they are needed, if the kernel has such calls.
  std::string problem;
  // All calls that create or destroy a stream, private or not. Empty if one of them has an unknown form.
  std::vector<StreamCall> all;
};

// Finds the calls, and if all of them can be done without, marks in `sites` the streams that they create.
// These are the sites of `kernel`.
PrivateStreams find_private_streams(const FlowFacts& kernel, std::vector<Site>& sites);

}  // namespace klap::analysis
