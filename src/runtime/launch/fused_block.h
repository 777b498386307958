// The block in which a fused kernel is launched (templates/aggregate/fused.cu), for a launch of the program.
//
// Children need blocks of so many threads or more. If the program's have fewer, rows are added to a block of
// one layer, or layers to others. The threads that the program asked for keep their indices.
#pragma once

#include <array>
#include <optional>

#include "jit/data/variant.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

// Nothing if there is no such block, or if the variant takes none but the program's.
std::optional<std::array<unsigned, 3>> fused_block(const jit::Variant& variant, const Launch& launch);

}  // namespace klap::runtime
