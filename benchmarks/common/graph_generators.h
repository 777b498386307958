// Graphs made from a seed: the stand-ins for the papers' data sets, the same on every machine.
#pragma once

#include <cstdint>

#include "graph.h"

namespace bench {

// Every vertex gets between half and one and a half times `degree` edges to vertices drawn at random; loops
// and parallel edges may occur, edges have no reverse.
Graph uniform_graph(int vertices, int degree, uint64_t seed);

// Shuffled names spread the vertices with many edges over the graph; drawn as they are, these are neighbours.
enum class VertexNames { kShuffled, kAsDrawn };

// R-MAT as Graph500 specifies it (A = 0.57, B = C = 0.19): 2^scale vertices, edge_factor * 2^scale edges
// drawn, vertex names shuffled; edges go both ways, loops and parallel edges are dropped. With an edge factor
// of 48 this is what the kron_g500-logn graphs are.
Graph rmat_graph(int scale, int edge_factor, uint64_t seed, VertexNames names = VertexNames::kShuffled);

// Degrees follow a power law from 1 to `largest` whose mean is `degree`, as in co-citation networks
// (coPapersCiteseer: 434,102 vertices, degree 73.9 on average, 1,188 at most); half of the partners have
// nearby names, the others are anywhere. Edges go both ways, no loops or parallel edges, so the mean comes
// out a little lower.
Graph citation_graph(int vertices, int degree, int largest, uint64_t seed);

// Gives every edge a weight from 1 to `largest`; an edge and its reverse get the same.
void add_weights(Graph& graph, int largest, uint64_t seed);

}  // namespace bench
