// Random graphs of launches in device-side streams: trees of grids, tail launches of tail launches, streams
// of blocks and of threads, launches without order, blocks of any size. The reference runs them one after
// another on the CPU, in the order that CUDA promises.
#pragma once

#include <cstdint>

#include "case.h"

namespace klap::differential::graphs {

// Fills in the case of that seed, which runs the kernel of cases/grid_graphs.cu.
void fill_case(Builder& c, uint64_t seed);

// Likewise, with the kernel of cases/copy_graphs.cu, which also copies and fills memory.
void fill_copying_case(Builder& c, uint64_t seed);

// A whole case, for campaigns: "graph_SEED", or "copy_graph_SEED".
Case random_graph(uint64_t seed, bool copies);

}  // namespace klap::differential::graphs
