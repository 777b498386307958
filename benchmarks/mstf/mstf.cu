// Minimum spanning forest with CUDA dynamic parallelism, by Boruvka's algorithm: the step that finds each
// component's lightest leaving edge launches children.
//
// A thread per vertex launches a child grid over the vertex's edges. A child's thread offers its edge to the
// vertex's component if it leaves it, by an atomic minimum over keys of weight and edge number. Merging the
// components is left to ordinary kernels; see ../common/boruvka.cuh.
//
// `--variant flat` finds the edges without dynamic parallelism: a group of threads for each vertex.
#include "../common/boruvka.cuh"

constexpr int kParentBlock = 1024;
constexpr int kChildBlock = 1024;

__global__ void offer_edges(bench::Forest f, int begin, int degree, int component) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) bench::offer(f, component, bench::leaving_key(f, begin + i, component));
}

template <bool kCount>
__global__ void find_lightest_edges(bench::Forest f, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < f.vertices) {
    const int begin = f.first[v];
    const int degree = f.first[v + 1] - begin;
    if (degree > 0) {
      offer_edges<<<(degree + kChildBlock - 1) / kChildBlock, kChildBlock>>>(f, begin, degree,
                                                                             f.component[v]);
      bench::count_if_lost<kCount>(lost);
    }
  }
}

// 2^lane_bits threads for each vertex.
__global__ void find_lightest_edges_flat(bench::Forest f, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = static_cast<int>(thread >> lane_bits);
  const bool exists = v < f.vertices;
  const int c = exists ? f.component[v] : 0;
  const bench::EdgeKey key = bench::least_of(f, exists, v, lane_bits, bench::kNoEdge,
                                             [&f, c](int e) { return bench::leaving_key(f, e, c); });
  if (exists && (thread & ((1 << lane_bits) - 1)) == 0) bench::offer(f, c, key);
}

namespace {

class FindWithChildren : public bench::Boruvka {
 public:
  using Boruvka::Boruvka;

 protected:
  void find_lightest(const bench::Forest& f, bool count) override {
    const unsigned blocks = bench::blocks_for(f.vertices, kParentBlock);
    if (count) {
      find_lightest_edges<true><<<blocks, kParentBlock>>>(f, lost());
    } else {
      find_lightest_edges<false><<<blocks, kParentBlock>>>(f, lost());
    }
  }

  void find_lightest_flat(const bench::Forest& f) override {
    find_lightest_edges_flat<<<lane_blocks(), kBlock>>>(f, lane_bits());
  }

  [[nodiscard]] long long child_launches(const bench::BoruvkaCounts& counts) const override {
    long long with_edges = 0;
    for (int v = 0; v < graph().vertices(); ++v) with_edges += graph().degree(v) > 0 ? 1 : 0;
    return with_edges * counts.rounds;
  }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::boruvka_main<FindWithChildren>(
      "mstf", "minimum spanning forest, each vertex's lightest edge found by a child kernel", argc, argv);
}
