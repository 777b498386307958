#include "jit/strategy/plan_text.h"

#include <fmt/format.h>

#include "support/demangle.h"

namespace klap::jit {

std::string group_lines(const PlannedSite& site) {
  std::string text = fmt::format("  granularity      {}\n", to_string(site.aggregation.granularity));
  text += fmt::format("  launcher         {}\n", to_string(site.aggregation.launcher));
  if (site.aggregation.group_blocks != 0)
    text += fmt::format("  group            {} of the parent's blocks\n", site.aggregation.group_blocks);
  return text;
}

std::string consumer_lines(const PlannedSite& site) {
  const transform::ConsumerShape& shape = site.shape;
  std::string text;
  const std::string grids = shape.grid_is_1d ? ", grids of one dimension" : "";
  if (shape.blocks_differ()) {
    text += fmt::format("  child's block    in the record, {} threads at most{}\n",
                        shape.most_child_threads(), grids);
  } else {
    text +=
        fmt::format("  child's block    {}x{}x{}{}\n", shape.block[0], shape.block[1], shape.block[2], grids);
  }
  text += shape.flat
              ? fmt::format("  consumer's block {} threads, runs {}\n", shape.threads(), shape.flat->threads)
              : fmt::format("  consumer's block {} threads, {} of the child\n", shape.threads(), shape.pack);
  return text;
}

std::string kernel_lines(const analysis::RecursiveGroup& recursive_group) {
  std::string kernels;
  for (size_t i = 0; i < recursive_group.kernels.size(); ++i) {
    const analysis::GroupKernel& kernel = recursive_group.kernels[i];
    kernels += fmt::format("  runs kernel {}    {}, in {}\n", i, both_names(kernel.facts->function.name),
                           kernel.has_constant_block() ? fmt::format("blocks of {} threads", kernel.threads())
                                                       : "blocks that follow the parent's");
  }
  return kernels;
}

std::string lane_lines(const transform::ConsumerShape& shape) {
  return fmt::format("  children         {} in a launch{}\n", shape.lanes,
                     shape.grid_is_1d ? ", grids of one dimension" : "");
}

std::string record_lines(const transform::RecordLayout& layout) {
  if (!layout.packed) {
    return fmt::format("  record           {} bytes, arguments at {}\n", layout.record_bytes,
                       layout.arguments_offset);
  }
  std::string text = fmt::format("  record           {} bytes, packed\n", layout.record_bytes);
  for (const transform::ArgumentPlace& place : layout.places) {
    text += fmt::format("  argument bytes   {} to {} {} {}\n", place.from, place.from + place.bytes,
                        place.once ? "once, at" : "at", place.at);
  }
  return text;
}

}  // namespace klap::jit
