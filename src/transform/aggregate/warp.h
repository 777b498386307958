// Warp aggregation: lanes of a warp that arrive at a launch site together share one launch.
//
// The sharing parent is the parent with the two calls of each of its sites replaced
// (templates/warp/warp_launch.cu). It has the original's parameters and needs nothing of the runtime but to
// be launched in its place. The kernel that runs a group's children is made by consumer_kernel() from
// templates/warp/warp.cu. (KLAP paper, section III.B: warp-granularity aggregation; there the records went
// through memory that was allocated for every warp, here they travel in the launch's own parameter buffer.)
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "ptx/tree.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// The shape for templates/warp/warp.cu. The block is that of each launch. Without lanes, two children do not
// fit.
ConsumerShape warp_shape(const ptx::Module& module, const ptx::Function& child, bool grid_is_1d);

// The number of children's records that fit into the parameters of one launch, at most the lanes of a warp.
uint32_t lanes_that_fit(const RecordLayout& layout);

// The offset of the first child's arguments in the parameters of a launch of at most so many children.
uint32_t first_arguments(const RecordLayout& layout, uint32_t lanes);

// The differences between sites in templates/warp/warp_launch.cu, beside the layout.
struct WarpLaunchShape {
  bool match_block = false, match_bytes = false, match_stream = false;  // not constant
  bool last_error = false;                                              // the parent asks for the last error
};
WarpLaunchShape warp_launch_shape(const analysis::FunctionFacts& parent, const analysis::Site& site);

struct WarpSite {
  const analysis::Site* site = nullptr;
  const ptx::Module* launch = nullptr;  // templates/warp/warp_launch.cu, compiled for the site
  const RecordLayout* layout = nullptr;
  std::string consumer;     // the kernel that runs a group's children
  std::string declaration;  // of the consumer, where it stands in another unit
};
// Sites that are not among `sites` stay as they are.
Generated warp_parent(const analysis::FunctionFacts& parent, const std::vector<WarpSite>& sites,
                      const std::string& name, LineTables& lines);

}  // namespace klap::transform
