// Generated kernels, and their inputs: sites that record, launches by the device, and kernels that a consumer
// runs from a worklist.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/executed/order.h"
#include "analysis/facts/facts.h"
#include "analysis/optimise/thresholding.h"
#include "ptx/tree.h"
#include "transform/text/record_layout.h"

namespace klap::transform {

// One generated kernel.
struct Generated {
  std::string name;
  std::string text;
  std::vector<std::string> declarations;  // of functions that it uses and its unit may not declare
  std::vector<std::string> spliced;       // children's bodies as they stand in the text, for looking at
};

// A site of the parent, templates/aggregate/record.cu compiled for the layout of its records, and that
// layout. Each site of a parent has a queue of its own, in this order: one added parameter each.
struct RecordingSite {
  const analysis::Site& site;
  const ptx::Module& record;
  const RecordLayout& layout;
  bool keeps_launch =
      false;  // `record` is templates/aggregate/record_sizes.cu; so for all sites of a parent, or none
  std::string bound = {};                  // operand: what flat.h compares indices with, where it is known
  std::vector<std::string> pointers = {};  // operands: what split_iterations.h compares, where it is asked
  std::vector<std::string> range = {};     // operands: where the child's range begins and ends, if it is cut
  bool at_launch = false;  // described form: the record is made at the launch, as in the other form
  // Set if not all children are recorded. The record is then made at the launch, whatever the form.
  std::optional<analysis::Thresholding> thresholding = {};
  const ptx::Function* child = nullptr;  // of the same unit, where the thread itself runs some
  std::array<uint32_t, 3> block{};       // then: of the child
};

// The kernels for a parent that launches its children itself, one for each site. `leave` is
// templates/aggregate/launch_consumer.cu compiled for the child's block and layout. `consumer` is the kernel
// that the last thread launches.
struct DeviceLaunch {
  const ptx::Module& leave;
  std::string consumer;
  std::string declaration;    // of the consumer, where it stands in another unit
  uint32_t group_blocks = 0;  // as in analysis::Aggregation
};

// A kernel as the target of a launch: its number in the consumer, and the most threads that CUDA allows it.
struct LaunchTarget {
  uint32_t kernel = 0;
  uint32_t most_threads = 0;
  // Only for the executor: where the launch needs no order.
  analysis::WithoutOrder without_order = analysis::WithoutOrder::Never;
  // Then, if the launch's shared memory is not constant: the most that the consumer has.
  std::optional<uint32_t> most_shared_bytes{};
};

// Targets without a limit, for code that does not check blocks.
inline std::vector<LaunchTarget> launch_targets(const std::vector<uint32_t>& kernels) {
  std::vector<LaunchTarget> targets;
  for (const uint32_t kernel : kernels) targets.push_back({kernel});
  return targets;
}

// The kernels that a consumer runs whose children launch again, by number, with the targets of each of their
// sites. `record` is the code for their launch sites, templates/worklist/worklist_record.cu or
// templates/executor/executor_record.cu.
struct GroupKernel {
  const analysis::FunctionFacts& kernel;
  std::vector<LaunchTarget> targets;
};
struct GroupKernels {
  const ptx::Module& record;
  std::vector<GroupKernel> kernels;
};

}  // namespace klap::transform
