// The host side of the programs that recurse over a tree; see tree_benchmark.h.
#include "tree_benchmark.h"

#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "compare.h"

namespace bench {
namespace {

// About two children a thread, at most a warp for a node.
int lane_bits_for(const TreeInput& input) {
  const long long average = (input.smallest + input.largest) * (100 - input.childless) / 200;
  int bits = 0;
  while (bits < 5 && (2LL << bits) < average) ++bits;
  return bits;
}

int internal_nodes(const Tree& tree) {
  int count = 0;
  for (int node = 0; node < tree.nodes(); ++node) count += tree.children(node) > 0 ? 1 : 0;
  return count;
}

}  // namespace

void TreeOptions::parse(const char* program, const char* summary, int argc, char** argv) {
  Options options(program, summary);
  input.add_to(options);
  options.integer("threshold", threshold, 0,
                  "finish nodes with at most this many children without a launch, and all below them");
  common.add_to(options);
  options.parse(argc, argv);
  if (threshold > INT_MAX) {
    std::fprintf(stderr, "%s: --threshold must fit 31 bits\n", program);
    std::exit(2);
  }
}

TreeBenchmark::TreeBenchmark(const TreeOptions& options, Reference reference, const char* what)
    : options_(options),
      tree_(options.input.load(static_cast<uint64_t>(options.common.seed))),
      expected_(reference(tree_)),
      what_(what),
      lane_bits_(lane_bits_for(options.input)),
      first_(tree_.first),
      parent_(tree_.parent),
      result_(tree_.parent.size()),
      lost_(1) {}

void TreeBenchmark::reset() {
  result_.fill_bytes(0);
  lost_.fill_bytes(0);
}

std::string TreeBenchmark::verify() { return differences(what_, expected_, result_.to_host()); }

void TreeBenchmark::describe(JsonObject& report) const {
  options_.input.describe(report, tree_);
  report.add("threshold", options_.threshold).add("child_launches", flat() ? 0 : launches());
  // Of every node, either its extent or its result must be looked at; nodes with children also have their
  // place read and their result written.
  report.add("bytes_to_move", 4LL * tree_.nodes() + 8LL * internal_nodes(tree_));
  if (flat()) report.add("threads_per_node", 1 << lane_bits_);
}

// Without dynamic parallelism a kernel for each level but the lowest.
std::optional<HostWork> TreeBenchmark::host_work() const {
  if (flat()) return HostWork{.kernels = tree_.levels() - 1};
  const long long first = tree_.children(0) > 0 ? 1 : 0;
  return HostWork{.kernels = first, .parents = first};
}

DeviceTree TreeBenchmark::on_device() const {
  return {first_.data(), parent_.data(), result_.data(), static_cast<int>(options_.threshold)};
}

// Nodes below the root that get a launch: the nodes above them got one too.
long long TreeBenchmark::launches() const {
  std::vector<bool> launched(tree_.nodes());
  launched[0] = true;
  long long count = 0;
  for (int node = 1; node < tree_.nodes(); ++node) {
    if (tree_.children(node) <= options_.threshold || !launched[tree_.parent[node]]) continue;
    launched[node] = true;
    ++count;
  }
  return count;
}

}  // namespace bench
