// Recording parents that can be launched in slices of their grid (analysis/legality/slicing.h). The variant
// reads its block's place and the grid's size through one more parameter.
//
// The parameter holds the slice's first block and the whole grid's extents, x y z each, in words. A block's
// place in the whole grid is its place in the slice plus that of the slice's first block, since slices are
// boxes of blocks. Launched as a whole, the first block is (0, 0, 0) and the extents are the launch's own.
// Only the program's own code in the kernel's body is changed. Code that the templates add to it
// (templates/common/group.h, templates/aggregate/launch_consumer.cu) counts the blocks of the launch that it
// runs in.
#pragma once

#include <string>

#include "analysis/facts/facts.h"
#include "ptx/edit.h"

namespace klap::transform {

// The parameter's declaration.
std::string slice_parameter();

// Puts registers in the place of the grid's registers and returns the text that sets them, for the beginning
// of the body.
std::string read_slice(const analysis::FunctionFacts& parent, ptx::Edits& edits);

}  // namespace klap::transform
