// The benchmarks' tree generator and the CPU results for its trees.
#include "../../benchmarks/common/tree.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench {
namespace {

TreeInput shape(long long smallest, long long largest, long long childless, long long levels) {
  TreeInput input;
  input.smallest = smallest;
  input.largest = largest;
  input.childless = childless;
  input.levels = levels;
  return input;
}

int level_of(const Tree& tree, int node) {
  const auto after = std::upper_bound(tree.level.begin(), tree.level.end(), node);
  return static_cast<int>(after - tree.level.begin()) - 1;
}

// Everything that programs rely on when they walk a tree.
void expect_sound(const Tree& tree) {
  ASSERT_GE(tree.nodes(), 1);
  ASSERT_EQ(tree.first.size(), tree.parent.size() + 1);
  ASSERT_EQ(tree.level.front(), 0);
  ASSERT_EQ(tree.level.back(), tree.nodes());
  ASSERT_EQ(tree.parent[0], -1);
  int next = 1;  // the first node that is nobody's child so far
  for (int node = 0; node < tree.nodes(); ++node) {
    ASSERT_EQ(tree.first[node], next) << node;
    ASSERT_GE(tree.children(node), 0) << node;
    next = tree.first[node + 1];
    ASSERT_LE(next, tree.nodes()) << node;
    for (int child = tree.first[node]; child < next; ++child) {
      ASSERT_EQ(tree.parent[child], node);
      ASSERT_EQ(level_of(tree, child), level_of(tree, node) + 1);
    }
  }
  EXPECT_EQ(next, tree.nodes());
}

TEST(Tree, IsNumberedBreadthFirst) {
  expect_sound(shape(3, 9, 0, 5).load(1));
  expect_sound(shape(3, 9, 40, 6).load(2));
  expect_sound(shape(1, 1, 0, 64).load(3));
  expect_sound(shape(2, 300, 90, 4).load(4));
}

TEST(Tree, BranchesAsAsked) {
  const Tree tree = shape(128, 256, 0, 3).load(7);
  ASSERT_EQ(tree.levels(), 3);
  int smallest = 1000;
  int largest = 0;
  for (int node = 0; node < tree.level[2]; ++node) {
    smallest = std::min(smallest, tree.children(node));
    largest = std::max(largest, tree.children(node));
  }
  EXPECT_GE(smallest, 128);
  EXPECT_LE(largest, 256);
  EXPECT_LT(smallest, 140);
  EXPECT_GT(largest, 244);
  for (int node = tree.level[2]; node < tree.nodes(); ++node) ASSERT_EQ(tree.children(node), 0);
}

TEST(Tree, LeavesTheShareAskedForChildless) {
  const Tree tree = shape(32, 128, 50, 4).load(1);
  ASSERT_EQ(tree.levels(), 4);
  const int candidates = tree.level[3] - 1;  // all above the last level but the root
  int childless = 0;
  for (int node = 1; node <= candidates; ++node) {
    childless += tree.children(node) == 0 ? 1 : 0;
    if (tree.children(node) > 0) {
      ASSERT_GE(tree.children(node), 32);
      ASSERT_LE(tree.children(node), 128);
    }
  }
  EXPECT_NEAR(static_cast<double>(childless) / candidates, 0.5, 0.05);
}

TEST(Tree, RootAlwaysHasChildren) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Tree tree = shape(2, 5, 100, 10).load(seed);
    EXPECT_EQ(tree.levels(), 2) << "nobody else has any";
    EXPECT_EQ(tree.nodes(), 1 + tree.children(0));
    expect_sound(tree);
  }
}

TEST(Tree, MayBeJustARoot) {
  const Tree tree = shape(2, 5, 0, 1).load(1);
  expect_sound(tree);
  EXPECT_EQ(tree.nodes(), 1);
  EXPECT_EQ(tree.levels(), 1);
  EXPECT_EQ(cpu_descendants(tree), std::vector<int>{0});
  EXPECT_EQ(cpu_heights(tree), std::vector<int>{0});
}

TEST(Tree, FollowsFromItsSeed) {
  const TreeInput input = shape(20, 60, 30, 4);
  const Tree tree = input.load(5);
  EXPECT_EQ(tree.first, input.load(5).first);
  EXPECT_EQ(tree.parent, input.load(5).parent);
  EXPECT_NE(tree.first, input.load(6).first);
}

TEST(Tree, KnowsDescendantsAndHeights) {
  const Tree tree = shape(2, 4, 30, 7).load(3);
  std::vector<int> descendants(tree.nodes());
  std::vector<int> heights(tree.nodes());
  for (int node = 0; node < tree.nodes(); ++node) {
    int above = 0;
    for (int a = tree.parent[node]; a >= 0; a = tree.parent[a]) {
      ++descendants[a];
      heights[a] = std::max(heights[a], ++above);
    }
  }
  EXPECT_EQ(cpu_descendants(tree), descendants);
  EXPECT_EQ(cpu_heights(tree), heights);
  EXPECT_EQ(descendants[0], tree.nodes() - 1);
  EXPECT_EQ(heights[0], tree.levels() - 1);
}

TEST(TreeDeathTest, RefusesImpossibleShapes) {
  EXPECT_EXIT(shape(5, 4, 0, 3).load(1), testing::ExitedWithCode(2), "smallest branching is larger");
  EXPECT_EXIT(shape(2, 4, 101, 3).load(1), testing::ExitedWithCode(2), "percentage");
  EXPECT_EXIT(shape(1, 1, 0, 65).load(1), testing::ExitedWithCode(2), "64 levels");
  EXPECT_EXIT(shape(1, 1LL << 40, 0, 2).load(1), testing::ExitedWithCode(2), "2.28 children");
}

TEST(TreeDeathTest, RefusesTooManyNodes) {
  EXPECT_EXIT(shape(1000, 1000, 0, 10).load(1), testing::ExitedWithCode(2), "more than 2.28 nodes");
}

}  // namespace
}  // namespace bench
