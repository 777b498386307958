// Hierarchical clusters: which samples are alike.
//
// The two groups that are the closest are merged, until one is left. The distance of two groups is the
// average distance of their samples (average linkage), with all variables scaled to the same variance. dlib's
// bottom_up_cluster() gives the groups at one height, not the tree, and measures the distance of the farthest
// samples, so that one outlier keeps groups apart.
#pragma once

#include <cstddef>
#include <vector>

#include "klap_ptx/tune/sample_table.h"

namespace klap::tool {

// A node of the tree. Node i is sample i where there is one, and the nodes after the samples are the merges.
struct Merge {
  size_t first = 0, second = 0;  // two earlier nodes; the sample with the lowest number is below `first`
  double distance = 0;
  size_t size = 0;  // samples below it
};

// All merges, the smallest distance first, so that the last one is the root. One less than there are samples,
// or none where no variable changes. The time grows with the square of the number of samples.
std::vector<Merge> cluster(const SampleTable& table);

// The samples below each node, as a dendrogram shows them: those of `first` before those of `second`.
std::vector<std::vector<size_t>> members(const std::vector<Merge>& merges);

// A node near the root.
struct Group {
  size_t parent = 0;  // its number among the groups; the root's own is 0
  size_t depth = 0;   // 0: the root
  bool is_split = false;
  std::vector<size_t> members;
};

// The root and what is below it, parents before their children, until `most` groups are not split.
std::vector<Group> top_groups(const std::vector<Merge>& merges, size_t most);

}  // namespace klap::tool
