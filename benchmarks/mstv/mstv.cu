// Minimum spanning forest with CUDA dynamic parallelism, by Boruvka's algorithm: the step that verifies which
// edge is each component's lightest leaving one launches children.
//
// An ordinary kernel finds the least weight of the edges that leave each vertex's component, and of those the
// component's. Several edges may have that weight. So a thread per vertex that has one launches a child grid
// over its edges, and a child's thread that meets the weight offers its edge to the component, by an atomic
// minimum over keys of weight and edge number. Merging the components is left to ordinary kernels; see
// ../common/boruvka.cuh.
//
// `--variant flat` verifies without dynamic parallelism: a group of threads for each vertex.
#include "../common/boruvka.cuh"

constexpr int kParentBlock = 1024;
constexpr int kChildBlock = 1024;
constexpr unsigned kNoWeight = ~0U;

// The least weight of an edge that leaves the component.
struct LeastWeights {
  unsigned* of_vertex;
  unsigned* of_component;  // by its root
};

// 2^lane_bits threads for each vertex.
__global__ void find_least_weights(bench::Forest f, LeastWeights least, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = static_cast<int>(thread >> lane_bits);
  const bool exists = v < f.vertices;
  const int c = exists ? f.component[v] : 0;
  const auto leaving_weight = [&f, c](int e) {
    return f.component[f.neighbour[e]] == c ? kNoWeight : static_cast<unsigned>(f.weight[e]);
  };
  const unsigned weight = bench::least_of(f, exists, v, lane_bits, kNoWeight, leaving_weight);
  if (exists && (thread & ((1 << lane_bits) - 1)) == 0) {
    least.of_vertex[v] = weight;
    if (weight < least.of_component[c]) atomicMin(&least.of_component[c], weight);
  }
}

// Whether an edge of v may be the lightest that leaves v's component c.
__device__ bool is_candidate(const LeastWeights& least, int v, int c) {
  return least.of_vertex[v] != kNoWeight && least.of_vertex[v] == least.of_component[c];
}

// As bench::leaving_key for edges of weight `weight`; kNoEdge for others.
__device__ bench::EdgeKey key_if_weight(const bench::Forest& f, int e, int c, unsigned weight) {
  return static_cast<unsigned>(f.weight[e]) == weight ? bench::leaving_key(f, e, c) : bench::kNoEdge;
}

__global__ void offer_edges(bench::Forest f, int begin, int degree, int component, unsigned weight) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) bench::offer(f, component, key_if_weight(f, begin + i, component, weight));
}

template <bool kCount>
__global__ void verify_lightest_edges(bench::Forest f, LeastWeights least, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < f.vertices) {
    const int c = f.component[v];
    if (is_candidate(least, v, c)) {
      const int begin = f.first[v];
      const int degree = f.first[v + 1] - begin;
      offer_edges<<<(degree + kChildBlock - 1) / kChildBlock, kChildBlock>>>(f, begin, degree, c,
                                                                             least.of_vertex[v]);
      bench::count_if_lost<kCount>(lost);
    }
  }
}

// 2^lane_bits threads for each vertex.
__global__ void verify_lightest_edges_flat(bench::Forest f, LeastWeights least, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = static_cast<int>(thread >> lane_bits);
  const int c = v < f.vertices ? f.component[v] : 0;
  const bool candidate = v < f.vertices && is_candidate(least, v, c);
  const unsigned weight = candidate ? least.of_vertex[v] : kNoWeight;
  const bench::EdgeKey key =
      bench::least_of(f, candidate, v, lane_bits, bench::kNoEdge,
                      [&f, c, weight](int e) { return key_if_weight(f, e, c, weight); });
  if (candidate && (thread & ((1 << lane_bits) - 1)) == 0) bench::offer(f, c, key);
}

namespace {

class VerifyWithChildren : public bench::Boruvka {
 public:
  VerifyWithChildren(const bench::GraphInput& input, const bench::CommonOptions& options)
      : Boruvka(input, options), of_vertex_(graph().vertices()), of_component_(graph().vertices()) {}

 protected:
  void find_lightest(const bench::Forest& f, bool count) override {
    const LeastWeights least = find_weights(f);
    const unsigned blocks = bench::blocks_for(f.vertices, kParentBlock);
    if (count) {
      verify_lightest_edges<true><<<blocks, kParentBlock>>>(f, least, lost());
    } else {
      verify_lightest_edges<false><<<blocks, kParentBlock>>>(f, least, lost());
    }
  }

  void find_lightest_flat(const bench::Forest& f) override {
    const LeastWeights least = find_weights(f);
    verify_lightest_edges_flat<<<lane_blocks(), kBlock>>>(f, least, lane_bits());
  }

  [[nodiscard]] long long child_launches(const bench::BoruvkaCounts& counts) const override {
    return counts.candidates;
  }
  [[nodiscard]] bench::HostWork find_work() const override { return {.kernels = 2, .fills = 1}; }

 private:
  LeastWeights find_weights(const bench::Forest& f) {
    const LeastWeights least = {of_vertex_.data(), of_component_.data()};
    bench::check(cudaMemsetAsync(least.of_component, 0xff, of_component_.bytes()), "cudaMemsetAsync");
    find_least_weights<<<lane_blocks(), kBlock>>>(f, least, lane_bits());
    return least;
  }

  bench::DeviceArray<unsigned> of_vertex_;
  bench::DeviceArray<unsigned> of_component_;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::boruvka_main<VerifyWithChildren>(
      "mstv", "minimum spanning forest, each candidate's edges verified by a child kernel", argc, argv);
}
