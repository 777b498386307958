// Maximum flow by shortest augmenting paths. One thread drives the search: it launches a grid for each level
// of a breadth-first search, waits for it and looks whether the sink is reached. It then changes the residual
// capacities along the path by itself, until there is no path.
#include "sizes.h"

namespace {

constexpr int most_room = 2147483647;

}  // namespace

// The source is vertex 0, the sink vertex n - 1. At the end, level is negative on the sink's side of the cut.
extern "C" __global__ void max_flow(int* residual, int* level, int* parent, int n, int* flow);

#ifdef __CUDACC__
namespace {

// Each vertex that has no level yet looks for a neighbour on the last level.
__global__ void spread(const int* residual, int* level, int* parent, int n, int depth) {
  const int v = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (v >= n || level[v] >= 0) return;
  for (int u = 0; u < n; ++u) {
    if (level[u] != depth || residual[u * n + v] == 0) continue;
    level[v] = depth + 1;
    parent[v] = u;
    return;
  }
}

}  // namespace

extern "C" __global__ void max_flow(int* residual, int* level, int* parent, int n, int* flow) {
  const int sink = n - 1;
  int total = 0;
  while (true) {
    level[0] = 0;
    for (int v = sink; v > 0; --v) level[v] = -1;
    for (int depth = 0; depth < sink && level[sink] < 0; ++depth) {
      spread<<<(n + 7) / 8, 8>>>(residual, level, parent, n, depth);
      cudaDeviceSynchronize();
    }
    if (level[sink] < 0) break;
    int room = most_room;
    for (int v = sink; v != 0; v = parent[v]) room = min(room, residual[parent[v] * n + v]);
    for (int v = sink; v != 0; v = parent[v]) {
      residual[parent[v] * n + v] -= room;
      residual[v * n + parent[v]] += room;
    }
    total += room;
  }
  *flow = total;
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>

namespace {

std::vector<int> random_capacities(int n) {
  std::vector<int> capacities(n * n);
  unsigned state = 7;
  for (int u = 0; u < n; ++u) {
    for (int v = 0; v < n; ++v) {
      state = state * 1664525 + 1013904223;
      const bool is_edge = u != v && std::abs(u - v) < 5 && state >> 30 != 0;
      capacities[u * n + v] = is_edge ? static_cast<int>(state >> 16) % 20 : 0;
    }
  }
  return capacities;
}

// Pushes flow from u towards the last vertex by depth-first search; returns how much.
int push(std::vector<int>& residual, std::vector<bool>& seen, int n, int u, int room) {
  if (u == n - 1) return room;
  seen[u] = true;
  for (int v = 0; v < n; ++v) {
    if (seen[v] || residual[u * n + v] == 0) continue;
    const int pushed = push(residual, seen, n, v, std::min(room, residual[u * n + v]));
    if (pushed == 0) continue;
    residual[u * n + v] -= pushed;
    residual[v * n + u] += pushed;
    return pushed;
  }
  return 0;
}

int on_cpu(std::vector<int> residual, int n) {
  int total = 0;
  while (true) {
    std::vector<bool> seen(n);
    const int pushed = push(residual, seen, n, 0, most_room);
    if (pushed == 0) return total;
    total += pushed;
  }
}

int cut(const std::vector<int>& capacities, const std::vector<int>& level, int n) {
  int total = 0;
  for (int u = 0; u < n; ++u) {
    for (int v = 0; v < n; ++v) total += level[u] >= 0 && level[v] < 0 ? capacities[u * n + v] : 0;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("max_flow", argc, argv, [](gpu::Report& report, int size) {
    const int n = 6 << size;
    const std::vector<int> capacities = random_capacities(n);
    gpu::Buffer<int> residual(capacities), level(n), parent(n), flow(1);
    WAITING_LAUNCH(max_flow, 1, 1)(residual.data(), level.data(), parent.data(), n, flow.data());
    gpu::wait("max_flow");
    const int want = on_cpu(capacities, n);
    report.expect_equal("the flow", flow.to_host(), {want});
    report.expect_equal("the cut", std::vector<int>{cut(capacities, level.to_host(), n)}, {want});
  });
}
#endif
