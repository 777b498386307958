// PageRank with a child kernel for every vertex that many others link to, as in Wu et al.'s benchmarks.
//
// Power iteration by pulling: a thread per vertex sums what the vertices that link to it pass along; for a
// vertex with many such links it launches one child block, which reduces its partial sums in shared memory
// and writes the vertex's new rank. The number of iterations is fixed, so that all variants do the same work.
//
// Ranks are 64-bit fixed-point numbers, 2^32 being the mean. Additions are then exact whatever their order
// and divisions round the same way everywhere, and the result must equal the CPU's exactly. What a vertex
// passes along each of its links is divided once when its rank is known, not again for every link.
//
// `--variant flat` deals the links out evenly among warps and updates the ranks in a kernel of its own.
#include <climits>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../common/block_sum.cuh"
#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "../common/row_sums.cuh"

constexpr int kParentBlock = 128;
constexpr int kChildBlock = 64;
constexpr int kFlatBlock = 256;
constexpr int kDanglingBlock = 256;
constexpr int kDanglingBlocks = 1024;  // at most; a thread takes several vertices then

using Fixed = unsigned long long;  // what CUDA's atomics call a 64-bit integer
constexpr Fixed kMeanRank = Fixed{1} << 32;

// One iteration.
struct Step {
  const int* first;       // where each vertex's incoming links begin
  const int* linking;     // the vertices at their other ends
  const int* out_degree;  // of each vertex
  const Fixed* share;     // what each vertex passes along each of its links
  const Fixed* dangling;  // the ranks of all vertices without links, together
  Fixed* next_share;
  Fixed* rank;
  int vertices;
};

// A walker follows a link or starts anywhere, either with probability one half. From a vertex without links
// it goes anywhere.
__host__ __device__ inline Fixed new_rank(Fixed received, Fixed dangling, int vertices) {
  return kMeanRank / 2 + (received + dangling / static_cast<Fixed>(vertices)) / 2;
}

__host__ __device__ inline Fixed share_of(Fixed rank, int out_degree) {
  return out_degree == 0 ? 0 : rank / static_cast<Fixed>(out_degree);
}

__device__ void update(const Step& s, int v, Fixed received) {
  const Fixed rank = new_rank(received, *s.dangling, s.vertices);
  s.rank[v] = rank;
  s.next_share[v] = share_of(rank, s.out_degree[v]);
}

__global__ void pull_links(Step s, int v, int begin, int end) {
  Fixed sum = 0;
  for (int e = begin + static_cast<int>(threadIdx.x); e < end; e += static_cast<int>(blockDim.x)) {
    sum += s.share[s.linking[e]];
  }
  sum = bench::block_sum(sum);
  if (threadIdx.x == 0) update(s, v, sum);
}

template <bool kCount>
__global__ void pull(Step s, int threshold, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= s.vertices) return;
  const int begin = s.first[v];
  const int end = s.first[v + 1];
  if (end - begin < threshold) {
    Fixed sum = 0;
    for (int e = begin; e < end; ++e) sum += s.share[s.linking[e]];
    update(s, v, sum);
  } else {
    s.rank[v] = 0;
    s.next_share[v] = 0;
    pull_links<<<1, kChildBlock>>>(s, v, begin, end);
    bench::count_if_lost<kCount>(lost);
  }
}

// Adds up the ranks of the vertices that have no links of their own.
__global__ void collect_dangling(const int* vertices, int count, const Fixed* rank, Fixed* total) {
  Fixed sum = 0;
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(count); i += stride) {
    sum += rank[vertices[i]];
  }
  sum = bench::block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

// What comes along a link. The links are read once and must not push the shares out of the caches.
struct Shares {
  using Loaded = int;
  const int* linking;
  const Fixed* share;

  __device__ int load(int e) const { return __ldcs(linking + e); }
  __device__ Fixed value(int vertex) const { return __ldg(share + vertex); }
};

__global__ void __launch_bounds__(bench::kRowSumsBlock, bench::kRowSumsResident)
    pull_flat(Step s, int links, Fixed* received) {
  bench::sum_rows(bench::RowSums<Fixed>{s.first, s.vertices, links, received}, Shares{s.linking, s.share});
}

// Turns what each vertex received into its rank, and clears it for the next iteration.
__global__ void update_flat(Step s, Fixed* received) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= s.vertices) return;
  update(s, v, received[v]);
  received[v] = 0;
}

namespace {

// Who links to whom, from the receiving side.
struct Links {
  bench::Graph incoming;
  std::vector<int> out_degree;
};

bench::Graph reversed(const bench::Graph& graph) {
  bench::Graph result;
  result.first.assign(graph.first.size(), 0);
  result.neighbour.resize(graph.neighbour.size());
  for (const int w : graph.neighbour) ++result.first[w + 1];
  for (int v = 0; v < graph.vertices(); ++v) result.first[v + 1] += result.first[v];
  std::vector<int> next(result.first.begin(), result.first.end() - 1);
  for (int v = 0; v < graph.vertices(); ++v) {
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      result.neighbour[next[graph.neighbour[e]]++] = v;
    }
  }
  return result;
}

Links load_links(const bench::GraphInput& input, uint64_t seed) {
  bench::Graph graph = input.load(seed);
  Links links;
  links.out_degree.resize(graph.vertices());
  for (int v = 0; v < graph.vertices(); ++v) links.out_degree[v] = graph.degree(v);
  const bool both_ways = input.data.empty() && input.kind != "uniform";
  links.incoming = both_ways ? std::move(graph) : reversed(graph);
  return links;
}

std::vector<int> without_links(const std::vector<int>& out_degree) {
  std::vector<int> vertices;
  for (size_t v = 0; v < out_degree.size(); ++v) {
    if (out_degree[v] == 0) vertices.push_back(static_cast<int>(v));
  }
  return vertices;
}

std::vector<Fixed> shares_of(const std::vector<Fixed>& rank, const std::vector<int>& out_degree) {
  std::vector<Fixed> share(rank.size());
  for (size_t v = 0; v < rank.size(); ++v) share[v] = share_of(rank[v], out_degree[v]);
  return share;
}

std::vector<Fixed> cpu_ranks(const Links& links, const std::vector<int>& dangling, int iterations) {
  const bench::Graph& incoming = links.incoming;
  std::vector<Fixed> rank(incoming.vertices(), kMeanRank);
  for (int i = 0; i < iterations; ++i) {
    Fixed lost = 0;
    for (const int v : dangling) lost += rank[v];
    const std::vector<Fixed> share = shares_of(rank, links.out_degree);
    bench::parallel_for(incoming.vertices(), [&](size_t v) {
      Fixed sum = 0;
      for (int e = incoming.first[v]; e < incoming.first[v + 1]; ++e) sum += share[incoming.neighbour[e]];
      rank[v] = new_rank(sum, lost, incoming.vertices());
    });
  }
  return rank;
}

class PageRank : public bench::Benchmark {
 public:
  PageRank(const bench::GraphInput& input, const bench::CommonOptions& options, int threshold, int iterations)
      : input_(input),
        threshold_(threshold),
        iterations_(iterations),
        links_(load_links(input, options.seed)),
        dangling_on_host_(without_links(links_.out_degree)),
        expected_(cpu_ranks(links_, dangling_on_host_, iterations)),
        variant_(options.variant),
        first_(links_.incoming.first),
        linking_(links_.incoming.neighbour),
        out_degree_(links_.out_degree),
        dangling_(dangling_on_host_),
        first_rank_(std::vector<Fixed>(vertices(), kMeanRank)),
        first_share_(shares_of(std::vector<Fixed>(vertices(), kMeanRank), links_.out_degree)),
        rank_(vertices()),
        shares_{bench::DeviceArray<Fixed>(vertices()), bench::DeviceArray<Fixed>(vertices())},
        dangling_ranks_(iterations),
        received_(vertices()),
        lost_(1) {}

  void reset() override {
    copy(first_rank_, rank_);
    copy(first_share_, shares_[0]);
    shares_[1].fill_bytes(0xff);
    dangling_ranks_.fill_bytes(0);
    received_.fill_bytes(0);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      iterate([this](const Step& s) { pull_evenly(s); });
    } else {
      iterate_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    iterate_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("ranks", expected_, rank_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    long long launches = 0;
    for (int v = 0; v < vertices(); ++v)
      launches += links_.incoming.degree(v) >= threshold_ ? iterations_ : 0;
    input_.describe(report, links_.incoming);
    report.add("threshold", threshold_).add("iterations", iterations_);
    report.add("child_launches", variant_ == "cdp" ? launches : 0LL);
    // In each iteration each link once; each vertex's extent and out-degree, its old share, its new share and
    // rank.
    report.add("bytes_to_move", iterations_ * (4LL * links_.incoming.edges() + 32LL * vertices()));
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    const long long dangling = dangling_on_host_.empty() ? 0 : 1;
    const long long flat = links_.incoming.edges() > 0 ? 2 : 1;
    const bool is_flat = variant_ == "flat";
    return bench::HostWork{.kernels = iterations_ * (dangling + (is_flat ? flat : 1)),
                           .parents = is_flat ? 0 : iterations_};
  }

 private:
  [[nodiscard]] int vertices() const { return links_.incoming.vertices(); }

  static void copy(const bench::DeviceArray<Fixed>& from, const bench::DeviceArray<Fixed>& to) {
    bench::check(cudaMemcpy(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice), "cudaMemcpy");
  }

  void pull_evenly(const Step& s) {
    const int links = links_.incoming.edges();
    if (links > 0) {
      pull_flat<<<bench::blocks_for(links, bench::kRowSumsPerBlock), bench::kRowSumsBlock>>>(
          s, links, received_.data());
    }
    update_flat<<<bench::blocks_for(s.vertices, kFlatBlock), kFlatBlock>>>(s, received_.data());
  }

  template <bool kCount>
  void iterate_with_children() {
    iterate([this](const Step& s) {
      pull<kCount>
          <<<bench::blocks_for(s.vertices, kParentBlock), kParentBlock>>>(s, threshold_, lost_.data());
    });
  }

  template <class Pull>
  void iterate(const Pull& pull_ranks) {
    Step s = {};
    s.first = first_.data();
    s.linking = linking_.data();
    s.out_degree = out_degree_.data();
    s.rank = rank_.data();
    s.vertices = vertices();
    for (int i = 0; i < iterations_; ++i) {
      s.share = shares_[i % 2].data();
      s.next_share = shares_[(i + 1) % 2].data();
      s.dangling = dangling_ranks_.data() + i;
      add_up_dangling(dangling_ranks_.data() + i);
      pull_ranks(s);
      bench::check(cudaGetLastError(), "launching an iteration");
    }
  }

  void add_up_dangling(Fixed* total) {
    const auto count = static_cast<int>(dangling_on_host_.size());
    if (count == 0) return;
    const unsigned needed = bench::blocks_for(count, kDanglingBlock);
    const unsigned blocks = needed < kDanglingBlocks ? needed : kDanglingBlocks;
    collect_dangling<<<blocks, kDanglingBlock>>>(dangling_.data(), count, rank_.data(), total);
  }

  bench::GraphInput input_;
  int threshold_;
  int iterations_;
  Links links_;
  std::vector<int> dangling_on_host_;
  std::vector<Fixed> expected_;
  std::string variant_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> linking_;
  bench::DeviceArray<int> out_degree_;
  bench::DeviceArray<int> dangling_;
  bench::DeviceArray<Fixed> first_rank_;
  bench::DeviceArray<Fixed> first_share_;
  bench::DeviceArray<Fixed> rank_;
  bench::DeviceArray<Fixed> shares_[2];
  bench::DeviceArray<Fixed> dangling_ranks_;  // one sum an iteration
  bench::DeviceArray<Fixed> received_;        // by each vertex in an iteration of the flat variant
  bench::DeviceArray<unsigned long long> lost_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  bench::GraphInput input;
  input.kind = "citation";
  input.vertices = 434102;
  input.degree = 74;
  long long threshold = 64;
  long long iterations = 3;
  bench::Options options("pagerank", "PageRank with one child block per vertex with many incoming links");
  options.integer("threshold", threshold, 1, "vertices with at least this many links are left to a child");
  options.integer("iterations", iterations, 1, "power iterations");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  if (threshold > INT_MAX || iterations > INT_MAX) {
    std::fprintf(stderr, "pagerank: a threshold or a number of iterations above %d is too large\n", INT_MAX);
    return 2;
  }
  bench::require_device("pagerank");
  PageRank pagerank(input, common, static_cast<int>(threshold), static_cast<int>(iterations));
  return bench::run_benchmark("pagerank", common, pagerank);
}
