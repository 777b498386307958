// Making trees and measuring them on the CPU; see tree.h.
#include "tree.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "parallel.h"
#include "random.h"

namespace bench {
namespace {

constexpr long long kMostNodes = 1LL << 28;
constexpr long long kMostLevels = 64;  // programs walk up from a node to the root

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

void check_shape(const TreeInput& input) {
  if (input.smallest > input.largest) give_up("a tree's smallest branching is larger than its largest");
  if (input.largest > kMostNodes) give_up("a tree node can not have more than 2^28 children");
  if (input.childless > 100) give_up("a tree's share of childless nodes is a percentage");
  if (input.levels > kMostLevels) give_up("a tree can not have more than 64 levels");
}

// How many children each node of [begin, end) is to have.
std::vector<int> draw_children(const TreeInput& input, uint64_t seed, int begin, int end) {
  std::vector<int> children(static_cast<size_t>(end) - begin);
  parallel_for(children.size(), [&](size_t i) {
    const size_t node = begin + i;
    Random random(seed, node);
    if (node != 0 && random.below(100) < static_cast<uint32_t>(input.childless)) return;
    const auto choices = static_cast<uint32_t>(input.largest - input.smallest + 1);
    children[i] = static_cast<int>(input.smallest + random.below(choices));
  });
  return children;
}

// Adds the children of the tree's last level; false if there are none.
bool add_level(const TreeInput& input, uint64_t seed, Tree& tree) {
  const int begin = tree.level[tree.level.size() - 2];
  const int end = tree.level.back();
  long long next = end;
  for (const int children : draw_children(input, seed, begin, end)) {
    next += children;
    if (next > kMostNodes) give_up("the tree is too large: it would have more than 2^28 nodes");
    tree.first.push_back(static_cast<int>(next));
  }
  if (next == end) return false;
  tree.parent.resize(next);
  parallel_for(static_cast<size_t>(end) - begin, [&](size_t i) {
    const int node = begin + static_cast<int>(i);
    std::fill(tree.parent.begin() + tree.first[node], tree.parent.begin() + tree.first[node + 1], node);
  });
  tree.level.push_back(static_cast<int>(next));
  return true;
}

}  // namespace

void TreeInput::add_to(Options& options) {
  options.integer("smallest", smallest, 1, "smallest number of children of a tree node that has any");
  options.integer("largest", largest, 1, "largest number of children");
  options.integer("childless", childless, 0, "percentage of nodes above the last level without children");
  options.integer("levels", levels, 1, "levels of nodes, the root's included");
}

Tree TreeInput::load(uint64_t seed) const {
  check_shape(*this);
  Tree tree;
  tree.first = {1};
  tree.parent = {-1};
  tree.level = {0, 1};
  while (tree.levels() < levels && add_level(*this, seed, tree)) {
  }
  tree.first.resize(tree.parent.size() + 1, tree.nodes());
  return tree;
}

void TreeInput::describe(JsonObject& report, const Tree& tree) const {
  int internal = 0;
  for (int node = 0; node < tree.nodes(); ++node) internal += tree.children(node) > 0 ? 1 : 0;
  report.add("smallest", smallest).add("largest", largest).add("childless_percent", childless);
  report.add("nodes", tree.nodes()).add("internal_nodes", internal).add("levels", tree.levels());
}

std::vector<int> cpu_descendants(const Tree& tree) {
  std::vector<int> descendants(tree.nodes());
  for (int node = tree.nodes() - 1; node > 0; --node) {
    descendants[tree.parent[node]] += descendants[node] + 1;
  }
  return descendants;
}

std::vector<int> cpu_heights(const Tree& tree) {
  std::vector<int> heights(tree.nodes());
  for (int node = tree.nodes() - 1; node > 0; --node) {
    int& above = heights[tree.parent[node]];
    above = std::max(above, heights[node] + 1);
  }
  return heights;
}

}  // namespace bench
