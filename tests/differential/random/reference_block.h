// One block of a grid in a reference run: its threads walk over the kernel's statements.
#pragma once

#include <cstdint>
#include <vector>

#include "random/reference_world.h"

namespace klap::differential::random {

// Adds the grids that the block's threads launch to `launched`, unless the world runs them at once.
void run_block(World& world, const Grid& grid, uint32_t block, std::vector<Grid>& launched);

}  // namespace klap::differential::random
