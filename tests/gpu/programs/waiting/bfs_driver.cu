// Breadth-first search with one thread as the driver. It launches a grid for the nodes at one distance, waits
// for it, and reads how many nodes that grid has found. It goes on with those until there are none.
#include "sizes.h"

// The neighbours of node n are neighbours[first[n]] to neighbours[first[n + 1] - 1].
struct Graph {
  const int* first;
  const int* neighbours;
};

namespace {

constexpr int kBlockSize = 32;
constexpr int kUnseen = -1;

}  // namespace

extern "C" __global__ void search(Graph graph, int* nodes, int* next, int* next_count, int* distances,
                                  int* sizes);

#ifdef __CUDACC__
namespace {

__global__ void expand(Graph graph, const int* nodes, int count, int* distances, int distance, int* next,
                       int* next_count) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= count) return;
  const int node = nodes[thread];
  for (int i = graph.first[node]; i < graph.first[node + 1]; ++i) {
    const int to = graph.neighbours[i];
    if (atomicCAS(&distances[to], kUnseen, distance) == kUnseen) next[atomicAdd(next_count, 1)] = to;
  }
}

}  // namespace

extern "C" __global__ void search(Graph graph, int* nodes, int* next, int* next_count, int* distances,
                                  int* sizes) {
  nodes[0] = 0;
  distances[0] = 0;
  int count = 1;
  for (int distance = 1; count > 0; ++distance) {
    sizes[distance - 1] = count;
    *next_count = 0;
    const int blocks = (count + kBlockSize - 1) / kBlockSize;
    expand<<<blocks, kBlockSize>>>(graph, nodes, count, distances, distance, next, next_count);
    cudaDeviceSynchronize();
    count = *next_count;
    int* const old = nodes;
    nodes = next;
    next = old;
  }
}
#endif

#ifndef __CUDACC_RTC__
#include <queue>
#include <random>

namespace {

struct Lists {
  std::vector<int> first{0}, neighbours;
};

// Edges lead at most 19 nodes ahead, so that there are many distances. One edge of each node leads back.
Lists random_graph(int count) {
  std::mt19937 random(count);
  Lists graph;
  for (int node = 0; node < count; ++node) {
    for (unsigned i = random() % 6; i > 0; --i) {
      graph.neighbours.push_back(static_cast<int>((node + random() % 20) % count));
    }
    graph.neighbours.push_back(static_cast<int>(random() % (node + 1)));
    graph.first.push_back(static_cast<int>(graph.neighbours.size()));
  }
  return graph;
}

std::vector<int> on_cpu(const Lists& graph, std::vector<int>& sizes) {
  std::vector<int> distances(graph.first.size() - 1, kUnseen);
  std::queue<int> queue({0});
  distances[0] = 0;
  for (; !queue.empty(); queue.pop()) {
    const int node = queue.front();
    ++sizes[distances[node]];
    for (int i = graph.first[node]; i < graph.first[node + 1]; ++i) {
      const int to = graph.neighbours[i];
      if (distances[to] != kUnseen) continue;
      distances[to] = distances[node] + 1;
      queue.push(to);
    }
  }
  return distances;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("bfs_driver", argc, argv, [](gpu::Report& report, int size) {
    const int counts[] = {30, 300, 2000};
    const int count = counts[size];
    const Lists lists = random_graph(count);
    const gpu::Buffer<int> first(lists.first), neighbours(lists.neighbours), nodes(count), next(count);
    const gpu::Buffer<int> next_count(1), distances(std::vector<int>(count, kUnseen)), sizes(count);
    const Graph graph{first.data(), neighbours.data()};
    WAITING_LAUNCH(search, 1, 1)
    (graph, nodes.data(), next.data(), next_count.data(), distances.data(), sizes.data());
    gpu::wait("search");
    std::vector<int> want_sizes(count);
    report.expect_equal("the distance of a node", distances.to_host(), on_cpu(lists, want_sizes));
    report.expect_equal("the number of nodes at a distance", sizes.to_host(), want_sizes);
  });
}
#endif
