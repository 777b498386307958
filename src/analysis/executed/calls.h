// Calls of the device runtime, beside launches, that may stand in kernels which the executor runs, and in
// their parent.
//
// The executor's consumer is a kernel that the host launches, so device code may call the device runtime
// there as anywhere. A call can stay as it is if its answer does not depend on the calling grid or thread:
//
// - The number of the device, its attributes and its configuration belong to the device.
// - Limits belong to the context, and so does the heap from which cudaMalloc takes memory.
// - The version and the texts of errors are constants of the library.
// - Attributes and occupancy of a kernel depend on the kernel alone. Its address in the program's code stays
//   that of the program's own kernel, whatever is generated beside it.
//
// Copies and fills become grids of the executor (templates/executor/copies.h), and so do records of events
// and waits for them (templates/executor/events.h).
//
// A call that stays may leave an error, which belongs to the thread. The executor keeps the last error of a
// thread of the program in a register (transform/runtime_calls/last_error.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/launches/event_calls.h"

namespace klap::analysis {

// True for a function of the device runtime that does the same in every kernel.
bool depends_on_no_grid(std::string_view function);

// The calls of such functions that may leave an error, as instructions of the kernel.
std::vector<const FlatInstruction*> own_runtime_calls(const FunctionFacts& kernel);

// The calls for events, of which there are none in most modules.
std::vector<EventCall> event_calls(const FunctionFacts& kernel);

// True for a call beside launches that the kernel may make if the executor runs it.
bool is_executed_call(const FunctionFacts& kernel, const ptx::Statement& statement);

// The rejection to a kernel that launches nothing, for a call that it may not make.
std::optional<Rejection> check_executed_calls(const FunctionFacts& kernel);

}  // namespace klap::analysis
