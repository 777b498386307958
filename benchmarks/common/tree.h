// Rooted trees for the programs that recurse over them: made from a seed, and the CPU results that theirs are
// checked against.
//
// Nodes are numbered breadth-first, so a node's children are consecutive, every level is a range of numbers,
// and so are all descendants of a node on one level.
#pragma once

#include <cstdint>
#include <vector>

#include "json.h"
#include "options.h"

namespace bench {

struct Tree {
  std::vector<int> first;   // nodes + 1: where each node's children begin
  std::vector<int> parent;  // -1 for the root, node 0
  std::vector<int> level;   // levels + 1: where each level's nodes begin

  [[nodiscard]] int nodes() const { return static_cast<int>(parent.size()); }
  [[nodiscard]] int levels() const { return static_cast<int>(level.size()) - 1; }
  [[nodiscard]] int children(int node) const { return first[node + 1] - first[node]; }
};

// Which tree a program works on.
struct TreeInput {
  long long smallest = 128;  // children of a node that has any
  long long largest = 256;
  long long childless = 0;  // percentage of nodes without children; never the root, always the last level
  long long levels = 4;

  void add_to(Options& options);

  // Makes the tree. Ends the program with exit code 2 and a clear line where the shape is impossible or the
  // tree has more than 2^28 nodes.
  [[nodiscard]] Tree load(uint64_t seed) const;

  // Adds the tree's sizes.
  void describe(JsonObject& report, const Tree& tree) const;
};

// How many nodes are below each node.
std::vector<int> cpu_descendants(const Tree& tree);

// How many levels are below each node: 0 for one without children.
std::vector<int> cpu_heights(const Tree& tree);

}  // namespace bench
