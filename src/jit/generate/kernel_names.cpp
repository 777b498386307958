#include "jit/generate/kernel_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/hash.h"

namespace klap::jit {
namespace {

// Name suffix for a minimum number of blocks per multiprocessor.
std::string room_tag(const transform::ConsumerShape& shape) {
  return shape.least_blocks == 0 ? "" : fmt::format("_least{}", shape.least_blocks);
}

// Names the consumer of several kernels that the launches of one queue run.
std::string chained_name(const Plan& plan, const PlannedSite& site) {
  Hasher chained;
  for (const transform::FedBody& body : site.shape.bodies)
    chained.add(fmt::format("{} {}", body.kernel->name, fmt::join(body.block, "x")));
  const bool in_order = site.shape.chain == transform::Chain::InOrder;
  return fmt::format("{}$klap_{}_{}_{}{}", site.shape.bodies.front().kernel->name,
                     in_order ? "ordered" : "loop", unit_tag(plan, site.child_unit),
                     chained.hex().substr(0, 8), site.shape.grid_is_1d ? "_1d" : "");
}

// Name suffix for a packed record: a hash, as the layout is too long for a name.
std::string layout_tag(const transform::RecordLayout& layout) {
  return layout.packed ? "_p" + Hasher().add(layout.key()).hex().substr(0, 8) : "";
}

// Suffix for every option that is not the default.
std::string options_tag(const transform::ConsumerShape& shape) {
  const bool by_host = !shape.exact && shape.chain == transform::Chain::None;
  std::string text = by_host && !shape.two_heads ? "_onehead" : "";
  if (shape.held_words != 0) text += "_held";
  for (const transform::RoundsInRow& row : shape.loops) text += fmt::format("_row{}", row.rounds);
  return text + room_tag(shape);
}

// "64x1x1"; where blocks differ "nx1x1_1024", with the most threads behind.
std::string block_tag(const transform::ConsumerShape& shape) {
  if (!shape.blocks_differ()) return fmt::format("{}", fmt::join(shape.block, "x"));
  std::string text;
  for (const auto& extent : shape.sizes->block)
    text += (text.empty() ? "" : "x") + (extent ? std::to_string(*extent) : "n");
  return fmt::format("{}_{}", text, shape.most_child_threads());
}

// Granularity and launcher in a variant's name: "grid", "grid_device", "block", "multi16", "warp".
std::string way_tag(const analysis::Way& way) {
  switch (way.granularity) {
    case Granularity::None:
    case Granularity::Grid:
    case Granularity::Auto:
      break;
    case Granularity::Warp:
      return "warp";
    case Granularity::Block:
      return "block";
    case Granularity::MultiBlock:
      return fmt::format("multi{}", way.group_blocks);
  }
  return way.launcher == Launcher::Device ? "grid_device" : "grid";
}

}  // namespace

// Short and unique within a program: names of generated kernels carry it.
std::string unit_tag(const Plan& plan, size_t unit) {
  return Hasher().add(plan.units[unit]->unit().ptx).add(std::to_string(unit)).hex().substr(0, 8);
}

// Names the consumer of a recursive group; the name begins with the group's first kernel.
std::string family_name(const Plan& plan, const PlannedSite& site) {
  Hasher family;
  for (size_t i = 0; i < site.family->kernels.size(); ++i) {
    family.add(fmt::format("{} {}", site.family->kernels[i].facts->function.name,
                           fmt::join(site.shape.bodies[i].block, "x")));
  }
  return fmt::format("{}$klap_feed_{}_{}{}{}", site.family->kernels.front().facts->function.name,
                     unit_tag(plan, site.child_unit), family.hex().substr(0, 8),
                     site.shape.grid_is_1d ? "_1d" : "", site.shape.takes == 1 ? "_single" : "") +
         room_tag(site.shape);
}

// A consumer's name tells its child and what it was specialised for.
std::string consumer_name(const Plan& plan, const PlannedSite& site) {
  const transform::ConsumerShape& s = site.shape;
  if (s.feeds) return family_name(plan, site);
  if (s.bodies.size() > 1) return chained_name(plan, site);
  if (s.lanes != 0) {
    return fmt::format("{}$klap_warp_{}{}{}", site.child->name, unit_tag(plan, site.child_unit),
                       s.grid_is_1d ? "_1d" : "", layout_tag(s.layout));
  }
  return fmt::format("{}$klap_{}_{}_{}_{}{}{}", site.child->name,
                     s.chain == transform::Chain::InOrder    ? "ordered"
                     : s.chain == transform::Chain::AnyOrder ? "loop"
                     : s.exact                               ? "exact"
                                                             : "run",
                     unit_tag(plan, site.child_unit), block_tag(s),
                     s.flat ? fmt::format("flat{}{}", s.flat_threads, s.in_one_row() ? "row" : "")
                            : std::to_string(s.pack),
                     s.grid_is_1d ? "_1d" : "", layout_tag(s.layout)) +
         options_tag(s);
}

// Names a parent's variant; a second one that keeps the order has a part that tells it from the first.
std::string variant_name(const Plan& plan, const PlannedSite& site) {
  return fmt::format("{}$klap_{}{}_{}", site.parent->function.name, way_tag(site.way),
                     site.way.keeps_order ? "_kept" : "", unit_tag(plan, site.parent_unit));
}

}  // namespace klap::jit
