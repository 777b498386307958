#include "jit/strategy/kernel_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/generated_name.h"
#include "support/hash.h"

namespace klap::jit {
namespace {

// "64x1x1"; where blocks differ "nx1x1_1024", with the most threads behind.
std::string block_tag(const transform::ConsumerShape& shape) {
  if (!shape.blocks_differ()) return fmt::format("{}", fmt::join(shape.block, "x"));
  std::string text;
  for (const auto& extent : shape.sizes->block)
    text += (text.empty() ? "" : "x") + (extent ? std::to_string(*extent) : "n");
  return fmt::format("{}_{}", text, shape.most_child_threads());
}

// Granularity and launcher in a variant's name: "grid", "grid_device", "block", "multi16", "warp".
std::string aggregation_tag(const analysis::Aggregation& aggregation) {
  switch (aggregation.granularity) {
    case Granularity::None:
    case Granularity::Grid:
    case Granularity::Auto:
      break;
    case Granularity::Warp:
      return "warp";
    case Granularity::Block:
      return "block";
    case Granularity::MultiBlock:
      return fmt::format("multi{}", aggregation.group_blocks);
  }
  return aggregation.launcher == Launcher::Device ? "grid_device" : "grid";
}

}  // namespace

std::string unit_tag(const Plan& plan, size_t unit) {
  return Hasher().add(plan.units[unit]->unit().ptx).add(std::to_string(unit)).hex().substr(0, 8);
}

std::string variant_name(const Plan& plan, const PlannedSite& site, std::string_view more) {
  return generated_name(
      site.parent->function.name,
      fmt::format("{}{}{}{}_{}{}", aggregation_tag(site.aggregation),
                  site.aggregation.keeps_order ? "_kept" : "", site.in_blocks ? "_in_blocks" : "",
                  site.fused ? "_fused" : "", unit_tag(plan, site.parent_unit), more));
}

std::string one_child_name(const Plan& plan, const PlannedSite& site, std::string_view kind,
                           std::string_view division, std::string_view more) {
  const transform::ConsumerShape& shape = site.shape;
  return generated_name(
      site.child->name,
      fmt::format("{}_{}_{}_{}{}{}{}", kind, unit_tag(plan, site.child_unit), block_tag(shape), division,
                  shape.grid_is_1d ? "_1d" : "", layout_tag(shape.layout), more));
}

std::string layout_tag(const transform::RecordLayout& layout) {
  return layout.packed ? "_p" + Hasher().add(layout.key()).hex().substr(0, 8) : "";
}

std::string occupancy_tag(const transform::ConsumerShape& shape) {
  return shape.min_blocks_per_sm == 0 ? "" : fmt::format("_min{}", shape.min_blocks_per_sm);
}

std::string optimisations_tag(const transform::ConsumerShape& shape) {
  std::string text = shape.double_buffered ? "" : "_singlebuffer";
  if (shape.preloaded_words != 0) text += "_preloaded";
  // Parts of a range that is not cut step by the width of the program's block, not by their own.
  if (shape.range)
    text += fmt::format("_parts{}of{}{}{}", shape.range->elements, shape.range->program_threads,
                        shape.range->merges ? "_merged" : "", shape.range->joined ? "_joined" : "");
  if (shape.range && !shape.range->streamed.empty()) text += "_streamed";
  for (const transform::UnrolledCopy& row : shape.loops) text += fmt::format("_unrolled{}", row.iterations);
  return text + occupancy_tag(shape);
}

}  // namespace klap::jit
