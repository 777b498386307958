// Children that launch: a chain, a binary tree, two kernels that launch each other.
#include "case.h"

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
extern "C" __global__ void middle(int* cell, int value) {
  if (threadIdx.x == 0) set<<<1, 32>>>(cell, value * 3);
}
extern "C" __global__ void nested_parent(int* cells) {
  middle<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x));
}
extern "C" __global__ void count_down(int* cells, int depth) {
  cells[depth] = depth + 1;
  if (depth > 0) count_down<<<1, 1>>>(cells, depth - 1);
}
// A heap-ordered binary tree; both halves of a warp launch.
extern "C" __global__ void tree(int* cells, int node, int nodes) {
  if (threadIdx.x == 0) cells[node] = node * node;
  if (threadIdx.x % 32 > 1) return;
  const int next = 2 * node + 1 + static_cast<int>(threadIdx.x % 32);
  if (next < nodes) tree<<<1, 32>>>(cells, next, nodes);
}
__global__ void odd(int* cells, int n);
extern "C" __global__ void even(int* cells, int n) {
  cells[n] = 2;
  if (n > 0) odd<<<1, 1>>>(cells, n - 1);
}
__global__ void odd(int* cells, int n) {
  cells[n] = 1;
  if (n > 0) even<<<1, 1>>>(cells, n - 1);
}

#else

KLAP_CASE(nested, "a child's child is lost, or not waited for") {
  std::vector<int> after;
  for (int t = 0; t < 64; ++t) after.push_back(3 * t);
  const auto cells = c.buffer("cells", std::vector<int>(64, -1), after);
  c.launch("nested_parent", {1, 1, 1}, {64, 1, 1}, c.address(cells));
  c.left("nested_parent", "child-launches");
  c.rewritten("middle");
}

KLAP_CASE(recursion, "a chain of launches ends early") {
  std::vector<int> after;
  for (int i = 0; i <= 20; ++i) after.push_back(i + 1);
  const auto cells = c.buffer("cells", std::vector<int>(21), after);
  c.launch("count_down", {1, 1, 1}, {1, 1, 1}, c.address(cells), 20);
  c.left("count_down", "child-launches");
}

KLAP_CASE(recursive_tree, "a branch of a tree of launches is lost") {
  const int nodes = 100;
  std::vector<int> after;
  for (int i = 0; i < nodes; ++i) after.push_back(i * i);
  const auto cells = c.buffer("cells", std::vector<int>(nodes, -1), after);
  c.launch("tree", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, nodes);
  c.left("tree", "child-launches");
}

KLAP_CASE(mutual_recursion, "two kernels that launch each other end early") {
  std::vector<int> after;
  for (int i = 0; i <= 15; ++i) after.push_back(i % 2 == 0 ? 1 : 2);
  const auto cells = c.buffer("cells", std::vector<int>(16), after);
  c.launch("even", {1, 1, 1}, {1, 1, 1}, c.address(cells), 15);
  c.left("even", "child-launches");
}

#endif
