// The height of each node of an irregular tree, from the leaves up. A grid launches one grid for each child
// of its node and waits for them. Then it takes the greatest of their heights and adds one.
#include "sizes.h"

// The children of node n are children[first[n]] to children[first[n + 1] - 1].
extern "C" __global__ void find_height(const int* first, const int* children, int* heights, int node);

#ifdef __CUDACC__
extern "C" __global__ void find_height(const int* first, const int* children, int* heights, int node) {
  const int begin = first[node], end = first[node + 1];
  for (int i = begin; i < end; ++i) find_height<<<1, 1>>>(first, children, heights, children[i]);
  if (begin != end) cudaDeviceSynchronize();
  int highest = 0;
  for (int i = begin; i < end; ++i) {
    const int height = heights[children[i]];
    if (height > highest) highest = height;
  }
  heights[node] = highest + 1;
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>
#include <random>

namespace {

// The parent of each node but the first; parents come before their children.
std::vector<int> random_parents(int count) {
  std::mt19937 random(count);
  std::vector<int> parents(count);
  for (int i = 1; i < count; ++i) parents[i] = i - 1 - static_cast<int>(random() % (i / 2 + 1));
  return parents;
}

struct Lists {
  std::vector<int> first, children;
};

Lists child_lists(const std::vector<int>& parents) {
  Lists lists;
  const int count = static_cast<int>(parents.size());
  for (int node = 0; node < count; ++node) {
    lists.first.push_back(static_cast<int>(lists.children.size()));
    for (int i = node + 1; i < count; ++i) {
      if (parents[i] == node) lists.children.push_back(i);
    }
  }
  lists.first.push_back(static_cast<int>(lists.children.size()));
  return lists;
}

std::vector<int> on_cpu(const std::vector<int>& parents) {
  std::vector<int> heights(parents.size(), 1);
  for (size_t i = parents.size() - 1; i > 0; --i) {
    int& height = heights[parents[i]];
    height = std::max(height, heights[i] + 1);
  }
  return heights;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("tree_height", argc, argv, [](gpu::Report& report, int size) {
    const int counts[] = {12, 80, 500};
    const std::vector<int> parents = random_parents(counts[size]);
    const Lists lists = child_lists(parents);
    const gpu::Buffer<int> first(lists.first), children(lists.children), heights(parents.size());
    WAITING_LAUNCH(find_height, 1, 1)(first.data(), children.data(), heights.data(), 0);
    gpu::wait("find_height");
    report.expect_equal("the height of a node", heights.to_host(), on_cpu(parents));
  });
}
#endif
