#include "jit/strategy/recorded.h"

#include <fmt/format.h>

#include "jit/compile/templates.h"
#include "jit/strategy/aggregated.h"
#include "jit/strategy/plan_text.h"
#include "transform/aggregate/consumer.h"

namespace klap::jit {
namespace {

transform::RecordingSite recording_site(const PlannedSite& site, const ptx::Module& record) {
  transform::RecordingSite out{*site.site, record, site.shape.layout, site.keeps_launches};
  const std::optional<analysis::FlatBound> none;
  const auto& bound = site.thresholding ? site.thresholding->bound
                      : site.shape.flat ? site.shape.flat->bound
                                        : none;
  if (bound) out.bound = bound->operand;
  out.at_launch = site.thresholding || (bound && bound->at_launch);
  if (site.shape.split() != nullptr) {
    out.pointers = site.shape.split()->pointers;
    out.at_launch = out.at_launch || site.shape.flat->bound->at_launch;
  }
  if (site.shape.range) {
    out.range = {site.shape.range->begin, site.shape.range->end};
    out.at_launch = out.at_launch || site.shape.range->at_launch;
  }
  out.thresholding = site.thresholding;
  out.child = site.child;
  out.block = site.shape.block;
  return out;
}

}  // namespace

Variant Recorded::variant(const Plan& plan, std::span<const PlannedSite> sites,
                          const std::string& name) const {
  const PlannedSite& any = sites.front();
  const ptx::Function& parent = any.parent->function;
  Variant v = aggregated_variant(any, name);
  v.parent_param_count = static_cast<uint32_t>(parent.parameters.size());
  v.parent_param_bytes = parent.parameter_bytes;
  v.queue_param_offset = transform::queue_parameter_offset(parent);
  for (const PlannedSite& site : sites) v.queues.push_back(queue(plan, site));
  v.pool_bytes = any.options.pool_bytes;
  v.buffer = any.options.buffer;
  v.in_slices = any.in_slices;
  v.in_blocks = any.in_blocks;
  return v;
}

ChildQueue Recorded::queue(const Plan& plan, const PlannedSite& site) const {
  ChildQueue queue;
  queue.child = site.child->name;
  queue.consumer = consumer_name(plan, site);
  queue.record_bytes = site.shape.layout.record_bytes;
  queue.consumer_block_threads = site.shape.threads();
  queue.child_block_threads = site.shape.most_child_threads();
  queue.child_shared_bytes = site.shape.shared_bytes;
  if (const uint32_t bytes = shared_bytes(site); bytes != 0)
    queue.shared_limits.push_back({site.child->name, bytes, false});
  queue.double_buffered = site.shape.double_buffered;
  queue.concurrency = site.options.concurrency;
  queue.counted = counted_text(site);
  return queue;
}

void Recorded::note_fixed_launches(Variant& v, const analysis::FunctionFacts& parent,
                                   const analysis::LaunchedKernels& launched) {
  if (v.launcher != Launcher::Host || !analysis::has_fixed_launches(parent, launched)) return;
  v.fixed_launches = true;
  v.words_without_effect = analysis::words_without_effect_on_launches(parent, launched);
  for (const auto& [offset, bytes] : analysis::unread_parameter_bytes(parent))
    v.unread_parameters.push_back({offset, bytes});
  describe_parameters(v, parent.function);
}

transform::DeviceLaunch Recorded::device_launch(const Plan& plan, const PlannedSite& site,
                                                const SiteTemplates& templates) const {
  const std::string consumer = consumer_name(plan, site);
  transform::DeviceLaunch launch{*templates.launch, consumer, "", site.aggregation.group_blocks};
  if (site.parent_unit != site.child_unit)
    launch.declaration = transform::consumer_declaration(*templates.kernel, consumer);
  return launch;
}

std::string Recorded::plan_text(const PlannedSite& site) const {
  return group_lines(site) + consumer_lines(site) + record_lines(site.shape.layout);
}

transform::RecordLayout QueuePerSite::packed_layout(const ptx::Module& child_module,
                                                    const PlannedSite& site) const {
  const auto& range = site.shape.range;
  transform::RecordLayout layout = transform::packed_layout(
      child_module, *site.child, *site.parent, *site.site, site.aggregation.group_blocks,
      site.shape.split() != nullptr || range.has_value());
  if (range && range->joined) transform::add_totals(layout, range->joined->sums.size());
  return layout;
}

Variant QueuePerSite::variant(const Plan& plan, std::span<const PlannedSite> sites,
                              const std::string& name) const {
  Variant v = Recorded::variant(plan, sites, name);
  const PlannedSite& any = sites.front();
  // The program's own launches and copies are not counted. Children that launch are not recorded here.
  const bool are_all_counted = !any.keeps_launches && any.parent->copies.empty();
  const auto none = [](const auto&) { return std::vector<const analysis::FunctionFacts*>(); };
  if (are_all_counted) note_fixed_launches(v, *any.parent, none);
  return v;
}

std::string QueuePerSite::block_text(const PlannedSite& site) const {
  return site.shape.blocks_differ()
             ? fmt::format("block from the record, of at most {} threads", site.shape.most_child_threads())
             : Strategy::block_text(site);
}

std::vector<std::string> QueuePerSite::notes(const PlannedSite& site) const {
  if (!site.keeps_launches) return {};
  return {"launches of sizes that CUDA may refuse are the program's own"};
}

void QueuePerSite::make_shape_of(const ptx::Module& child_module, PlannedSite& site, bool exact) {
  const analysis::FunctionFacts& parent = *site.parent;
  site.shape = transform::consumer_shape(child_module, *site.child,
                                         launch_sizes(parent, *site.site, child_module, *site.child),
                                         has_grid_of_one_row(*site.site, parent.data), exact);
  transform::use_threads(site.shape, site.options.consumer_threads);
}

std::shared_ptr<const ptx::Module> QueuePerSite::record(const PlannedSite& site, bool by_warps) {
  return site.keeps_launches ? record_sizes_template(site.shape, site.aggregation.group_blocks, by_warps)
                             : record_template(site.shape, site.aggregation.group_blocks, site.thresholding);
}

std::vector<transform::RecordingSite> QueuePerSite::recording_sites(const ParentSites& of) {
  std::vector<transform::RecordingSite> out;
  for (size_t i = 0; i < of.sites.size(); ++i)
    out.push_back(recording_site(of.sites[i], *of.templates[i].site));
  return out;
}

Variant CommonQueue::variant(const Plan& plan, std::span<const PlannedSite> sites,
                             const std::string& name) const {
  return Recorded::variant(plan, sites.first(1), name);
}

ChildQueue CommonQueue::queue(const Plan& plan, const PlannedSite& site) const {
  ChildQueue queue = Recorded::queue(plan, site);
  queue.is_work_queue = true;
  return queue;
}

std::string_view early_exit_text(analysis::MayExit may_exit) {
  return may_exit == analysis::MayExit::Warps ? ", warps may exit before barriers" : "";
}

std::string unit_of_count(const transform::ConsumerShape& shape) {
  if (shape.flat) return "threads";
  if (shape.range) return fmt::format("parts of {} elements", shape.range->elements);
  if (shape.blocks_differ()) return "warps";
  const uint32_t threads = shape.child_threads();
  return fmt::format("blocks of {} thread{}", threads, threads == 1 ? "" : "s");
}

std::string launching_thread_text(const analysis::Aggregation& aggregation) {
  switch (aggregation.group_blocks) {
    case 0:
      return "launched by the parent's last thread";
    case 1:
      return "launched by the last thread of each block";
    default:
      return fmt::format("launched by the last thread of each {} blocks", aggregation.group_blocks);
  }
}

}  // namespace klap::jit
