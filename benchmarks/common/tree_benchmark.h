// What the programs that recurse over a tree share: the tree on the device, one number for every node, the
// check of those numbers, and the report. The programs add their kernels.
//
// CUDA's launch interface lets no kernel wait for its children, so results can not come back with the
// recursion: whoever knows something about a node adds it to all its ancestors.
#pragma once

#include <string>
#include <vector>

#include "cuda_check.h"
#include "harness.h"
#include "tree.h"

namespace bench {

// The tree and the results, as kernels see them.
struct DeviceTree {
  const int* first;
  const int* parent;
  int* result;    // 0 for every node before a run
  int threshold;  // children with at most this many children of their own are finished without a launch
};

struct TreeOptions {
  TreeInput input;
  CommonOptions common;
  long long threshold = 0;

  // Reads the command line; ends the program on a mistake.
  void parse(const char* program, const char* summary, int argc, char** argv);
};

class TreeBenchmark : public Benchmark {
 public:
  using Reference = std::vector<int> (*)(const Tree& tree);
  // `what` names the results in a mistake's message.
  TreeBenchmark(const TreeOptions& options, Reference reference, const char* what);

  void reset() override;
  std::string verify() override;
  void describe(JsonObject& report) const override;
  [[nodiscard]] std::optional<HostWork> host_work() const override;

 protected:
  [[nodiscard]] const Tree& tree() const { return tree_; }
  [[nodiscard]] bool flat() const { return options_.common.variant == "flat"; }
  [[nodiscard]] DeviceTree on_device() const;
  [[nodiscard]] unsigned long long* lost() const { return lost_.data(); }
  [[nodiscard]] long long lost_on_host() const { return static_cast<long long>(lost_.to_host()[0]); }
  // log2 of the threads that a flat program gives to a node.
  [[nodiscard]] int lane_bits() const { return lane_bits_; }

 private:
  [[nodiscard]] long long launches() const;

  TreeOptions options_;
  Tree tree_;
  std::vector<int> expected_;
  const char* what_;
  int lane_bits_;
  DeviceArray<int> first_;
  DeviceArray<int> parent_;
  DeviceArray<int> result_;
  DeviceArray<unsigned long long> lost_;
};

}  // namespace bench
