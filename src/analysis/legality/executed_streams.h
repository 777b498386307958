// Which of CUDA's device-side streams a launch goes into, as the executor tells them apart
// (templates/executor/grid_records.h).
//
// The executor keeps the order of each stream. If it is not known which of several streams a launch uses, it
// takes the strictest order of all. CUDA promises no two streams that they run at the same time, so a
// stricter order is one that the program must expect.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The numbers are those of KLAP_STREAM_NONE and so on.
enum class ExecutedStream : uint8_t {
  None,    // fire-and-forget, or a stream that this launch has for itself
  Thread,  // streams of the thread
  Block,   // the NULL stream of the block
  Tail,
};

// The stream of a launch at `site`, which check_executed_stream() has accepted.
ExecutedStream executed_stream(const FunctionFacts& kernel, const Site& site);

// The rejection to a launch whose place in its stream the executor cannot keep.
std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site);

}  // namespace klap::analysis
