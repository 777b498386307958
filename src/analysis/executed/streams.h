// Which of CUDA's device-side streams a launch goes into, as the executor tells them apart
// (templates/executor/grid_records.h).
//
// The executor keeps the order of each stream. If a launch uses one of the streams that every grid has, and
// it is not known which, it takes the strictest order of them. CUDA promises no two streams that they run at
// the same time, so a stricter order is one that the program must expect. Other streams are told apart when
// the kernel runs.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/launches/event_calls.h"

namespace klap::analysis {

// The numbers are those of KLAP_STREAM_NONE and so on.
enum class ExecutedStream : uint8_t {
  None,    // fire-and-forget, or a stream that this launch has for itself
  Thread,  // streams of the thread
  Block,   // the NULL stream of the block
  Tail,
  Handle,          // what the handle says when the kernel runs
  SecondHalf = 7,  // the tail-launch stream, by a block that stopped (suspension/second_half.h)
};

// The stream of a launch at `site`, which check_executed_stream() has accepted.
ExecutedStream executed_stream(const FunctionFacts& kernel, const Site& site);

// The stream of a copy or a fill, and that in which an event is recorded or waited for.
ExecutedStream executed_stream(const FunctionFacts& kernel, const CopyCall& copy);
ExecutedStream executed_stream(const FunctionFacts& kernel, const EventCall& event);

// The stream that a handle of 0 means at that site or call.
ExecutedStream null_stream(const Site& site);
ExecutedStream null_stream(const CopyCall& copy);
ExecutedStream null_stream(const EventCall& event);

// The rejection to a launch whose place in its stream the executor cannot keep.
std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site);
// Checks all other calls of a kernel that go into streams likewise.
std::optional<Rejection> check_calls_into_streams(const FunctionFacts& kernel);

// True for a call that creates or destroys a stream, in a kernel in which the executor can do that.
bool is_executed_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement);

}  // namespace klap::analysis
