// Is a stream that was created on the device private to the thread that created it?
//
// A created stream is a value in a register, which the runtime stored into memory whose address it was given.
// It stays private under two conditions. That memory is the thread's own local memory. The value goes nowhere
// but into launches, into the runtime's other stream calls, and into comparisons. Then no two threads launch
// into it, and it orders only what its own thread launches.
//
// `Yes` is given only if every place that the value can come from is a local variable that the runtime
// filled. Every use of such a variable and of the value must be seen and allowed. `No`: it visibly comes from
// or goes to memory that others can read. Everything else is `Unknown`: addresses that escape, arithmetic on
// handles, unknown calls, constants on some path (the operand may then be the NULL stream).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/answer.h"
#include "analysis/facts/flow_facts.h"

namespace klap::analysis {

// `operand` is a register, such as the stream operand of a launch site.
Finding owns_stream(const FlowFacts& kernel, std::string_view operand);

// Answers for all streams that the kernel creates. `addresses` are the operands by which it says where the
// handles go. `Yes` also says that the program cannot tell one handle from another: it compares them with
// null only.
Finding owns_all_streams(const FlowFacts& kernel, const std::vector<std::string>& addresses);

// True if a launch at `second`, into the thread's own stream, cannot go into one that existed when the thread
// was at instruction `from` before.
bool is_created_after(const FlowFacts& kernel, uint32_t from, const Site& second);

// True if launches at `a` and at `b` can never go into the same private stream, whenever the thread creates
// it.
bool are_different_streams(const FlowFacts& kernel, const Site& a, const Site& b);

// A launch into a stream, or its end, and the register with the handle.
struct StreamUse {
  std::string stream;
  uint32_t instruction = 0;
};
// The first launch or end that may come after a stream's end: it fails, which a variant without the stream
// would not show. Every stream must be read from where it was created.
std::optional<StreamUse> used_after_end(const FlowFacts& kernel, const std::vector<StreamUse>& ends,
                                        const std::vector<StreamUse>& launches);

// One line for each site whose stream is a register.
std::string print_stream_ownership(const FlowFacts& kernel);

}  // namespace klap::analysis
