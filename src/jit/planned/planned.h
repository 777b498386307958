// Launch sites with all that was decided about them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"
#include "analysis/legality/loop_launches.h"
#include "analysis/legality/recursion.h"
#include "analysis/optimise/thresholding.h"
#include "analysis/promotion/promotion.h"
#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"
#include "jit/planned/device_memory.h"
#include "jit/planned/parsed_unit.h"
#include "jit/planned/site_options.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/promotion/promoted_shape.h"

namespace klap::jit {

// A chain of launches that becomes one resident kernel.
struct PlannedPromotion {
  std::shared_ptr<const analysis::ChainFacts> chain;
  transform::PromotedShape shape;
  std::vector<std::string> notes;  // on what stands against better modes
};

// A site that will be rewritten. Where launches are deferred, all sites of a parent are, or none.
struct PlannedSite {
  size_t remark = 0;  // into Plan::remarks
  size_t parent_unit = 0, child_unit = 0;
  std::shared_ptr<analysis::FunctionFacts> parent;  // keeps the facts alive
  const analysis::Site* site = nullptr;
  const ptx::Function* child = nullptr;
  std::shared_ptr<const analysis::RecursiveGroup>
      recursive_group;  // that one consumer runs (aggregation.is_recursive)
  std::shared_ptr<const analysis::LoopLaunches> loop_launches;  // the same (aggregation.has_loop_queue)
  SiteOptions options;
  // Then nothing below says anything, and the kernel has no other site.
  std::shared_ptr<const PlannedPromotion> promotion;
  analysis::Aggregation aggregation;
  // Whether launches of different threads of a block may overlap, and what decided that.
  analysis::OrderVerdict order;
  // The variant is for launches for which the parent's first one is not made: it keeps the order.
  bool is_second = false;
  // The variant runs the children of the parent's first one in their blocks, not thread by thread.
  bool in_blocks = false;
  // Such a variant stands behind this one.
  bool also_in_blocks = false;
  std::vector<std::pair<analysis::Aggregation, analysis::Rejection>>
      refused;  // what would have been preferred, and why not
  transform::ConsumerShape shape;
  // The variant runs the children of the parent's first one in its own kernel.
  bool fused = false;
  // It does so only where a launch has few.
  bool where_few = false;
  // The parent's variant can be launched in slices of its grid (analysis/legality/slicing.h); equal for all
  // its sites.
  bool in_slices = false;
  std::string whole;  // why not, where there are slices at all
  // Launches of sizes that may be refused are left to the program's own calls; equal for all sites of the
  // parent.
  bool keeps_launches = false;
  std::optional<analysis::Thresholding> thresholding;  // those that are not recorded
  std::string not_thresholded;                         // why no more of them
  std::string not_flat;         // why its children do not run thread by thread, where they might
  std::string not_split_range;  // why its children do not run as parts of their ranges, where they might
  std::string not_packed;       // why blocks of one warp have a consumer block each
  std::optional<analysis::Rejection>
      why_executed;  // what stands against all other strategies (aggregation.is_executed)
};

struct Plan {
  std::vector<std::unique_ptr<ParsedUnit>> units;
  std::vector<SiteRemark> remarks;
  // The sites of one parent stand together, in the order in which what they record is to be run.
  std::vector<PlannedSite> sites;
  DeviceMemory memory;
};

// The sites parent by parent. A parent with two variants is there twice, with facts of its own each time.
std::vector<std::span<const PlannedSite>> by_parent(std::span<const PlannedSite> sites);

// The unit that defines `kernel`, the parent's own unit first. An internal kernel of another unit does not
// count.
struct ChildPlace {
  size_t unit = 0;
  const ptx::Function* function = nullptr;
};
ChildPlace find_child(Plan& plan, const std::string& kernel, size_t parent_unit);

// Whether the child's grid has y = z = 1: of one site, of all.
bool has_grid_of_one_row(const analysis::Site& site, const analysis::DataFlow& parent);
bool have_grids_of_one_row(std::span<const PlannedSite> sites);

// Adds a note that the remark does not have yet.
void add_note(SiteRemark& remark, const std::string& text);

// Turns the planned sites of one parent into sites that are left, with a reason.
void reject(Plan& plan, std::span<const PlannedSite> sites, analysis::Reason reason,
            const std::string& detail);

}  // namespace klap::jit
