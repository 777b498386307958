// Grid aggregation: the two kernels that replace a launch site.
//
// The recording parent is the parent with its launch replaced by an append to a record queue: the program's
// own argument stores go into the record instead of the device runtime's buffer, and the launch call only
// reports the error code it would have returned. (In the documented form of a launch the grid is known only
// at the launch call, so the record is made and filled there.) The consumer is a template that runs all
// recorded children: enqueued by the host behind the parent (launcher "host"), or launched by the last thread
// of the parent, as a grid of exactly the children's blocks ("device"). Both come out as PTX text of one
// kernel each, to be placed in a unit by unit.h. (KLAP paper, section III.B: kernel-granularity aggregation;
// here without its read-back of totals to the host and without a device launch.)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/legality.h"
#include "ptx/tree.h"
#include "transform/lines.h"

namespace klap::transform {

// Where a child's arguments lie in its records, in bytes.
struct RecordLayout {
  uint32_t arguments_offset = 0;
  uint32_t record_bytes = 0;
};
RecordLayout record_layout(const ptx::Function& child);

// How a consumer is compiled: fixes the -D constants of templates/consumer.cu.
struct ConsumerShape {
  std::array<uint32_t, 3> block{};  // of the child
  uint32_t pack = 1;                // child blocks per consumer block
  bool grid_is_1d = false;          // every child grid has y = z = 1
  bool exact = false;               // launched by the parent: templates/exact.cu
  // Shared by the lanes of a warp, templates/warp.cu: how many children fit into one launch. The block is
  // then that of each launch.
  uint32_t lanes = 0;
  RecordLayout layout;
  [[nodiscard]] uint32_t child_threads() const { return block[0] * block[1] * block[2]; }
  [[nodiscard]] uint32_t threads() const { return child_threads() * pack; }
};
ConsumerShape consumer_shape(const ptx::Module& module, const ptx::Function& child,
                             const std::array<uint32_t, 3>& block, bool grid_is_1d, bool exact);

// One generated kernel.
struct Generated {
  std::string name;
  std::string text;
  std::vector<std::string> declarations;  // of what it uses and its unit may not declare
  std::vector<std::string> spliced;       // children's bodies as they stand in the text, for looking at
};

// `record` is templates/record.cu compiled for this child's layout; `name` the variant's name; `lines` the
// line tables of the unit that the kernel is for, here and below. What the templates add is counted to the
// source line of the launch, and in a consumer to the line of the child's head.
Generated recording_parent(const analysis::FunctionFacts& parent, const analysis::Site& site,
                           const ptx::Module& record, const std::string& name, LineTables& lines);

// The same for launcher "device": `leave` is templates/leave_grid.cu compiled for the child's block and
// layout, `consumer` the kernel that the last thread launches.
struct DeviceLaunch {
  const ptx::Module& leave;
  std::string consumer;
  std::string declaration;  // of the consumer, where it stands in another unit
};
Generated launching_parent(const analysis::FunctionFacts& parent, const analysis::Site& site,
                           const ptx::Module& record, const DeviceLaunch& launch, const std::string& name,
                           LineTables& lines);

// `consumer` is templates/consumer.cu, or exact.cu, compiled for `shape`.
Generated consumer_kernel(const ptx::Module& child_module, const ptx::Function& child,
                          const ConsumerShape& shape, const ptx::Module& consumer, const std::string& name,
                          LineTables& lines);

// `.extern` declaration of a consumer made from that template.
std::string consumer_declaration(const ptx::Module& consumer, const std::string& name);

// Offset of the parameter that is added to a recording parent.
uint32_t queue_parameter_offset(const ptx::Function& parent);

}  // namespace klap::transform
