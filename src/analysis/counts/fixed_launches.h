// Whether a kernel's parameters alone decide how many launches it leads to.
//
// If they do, two launches of the kernel with the same parameters, grid and block make equally many. So what
// one of them was seen to launch is known of the next one. The runtime needs that before it runs a program's
// own kernel on trial: CUDA loses launches when too many are pending.
//
// The claim. The number of launches is decided by branches and by loops, so by their conditions. These may
// depend on values that are fixed (fixed_values.h) and on nothing else. A kernel that is launched and
// launches again has the parameters that its launches pass. These are open if any launch passes an open
// value.
//
// Errors may decide, too. What a launch was seen to do counts only if no call was refused for a lack of room.
// Then none is in the next one, up to the first launch that CUDA has no room for. There is none, if the
// launches are so few that all can be pending at once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/pure_code.h"

namespace klap::analysis {

// The kernels that the launches of a kernel run, in the order of its sites.
using LaunchedKernels = std::function<std::vector<const FunctionFacts*>(const FunctionFacts& from)>;

// True if that is shown for `parent` and all kernels that it leads to. Copies and fills count as launches.
bool has_fixed_launches(const FunctionFacts& parent, const LaunchedKernels& launched);

// The offsets of words of 8 bytes in the parameters of such a parent. Whatever address of memory stands in
// these words, it makes equally many launches. Addresses differ from one process to the next.
std::vector<uint32_t> words_without_effect_on_launches(const FunctionFacts& parent,
                                                       const LaunchedKernels& launched);

// The bytes of its parameters that a kernel does not read, ascending.
std::vector<ByteRange> unread_parameter_bytes(const FunctionFacts& kernel);

}  // namespace klap::analysis
