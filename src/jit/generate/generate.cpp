#include "jit/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/legality/parent_checks.h"
#include "analysis/optimise/early_start.h"
#include "jit/compile/templates.h"
#include "jit/generate/kernel_names.h"
#include "support/demangle.h"
#include "support/error.h"
#include "transform/aggregate/consumer.h"

namespace klap::jit {
namespace {

using transform::Generated;

constexpr std::string_view kWait = "griddepcontrol.wait", kLaunchCall = "LaunchDevice";

class Generator {
 public:
  Generator(Plan& plan, Timings& timings) : plan_(plan), timings_(timings) {
    out_.code.resize(plan.units.size());
  }

  // The variants of one parent. Nothing is added before all is made: any of it may fail.
  void parent(std::span<const PlannedSite> sites) {
    if (sites.front().promotion != nullptr) return promoted(sites.front());
    std::vector<SiteTemplates> templates;
    {
      const Stopwatch watch(&timings_.templates);
      for (const PlannedSite& site : sites) templates.push_back(templates_for(site, sites.size() > 1));
    }
    const Stopwatch watch(&timings_.transform);
    std::vector<std::pair<size_t, Generated>> consumers;  // by unit
    std::set<std::string> made;
    for (size_t i = 0; i < sites.size(); ++i) {
      const PlannedSite& site = sites[i];
      includes(site, templates[i]);
      const std::string name = consumer_name(plan_, site);
      if (consumers_.contains(name) || !made.insert(name).second) continue;
      consumers.emplace_back(site.child_unit, consumer(site, templates[i], name));
    }
    const bool at_once = sites.front().way.is_at_once();
    Generated parent = at_once ? sharing_parent(sites, templates) : parent_variant(sites, templates);
    add_variant(sites, parent.name);
    out_.variants.back().consumers_await = await(sites, templates, parent);
    consumers_.merge(made);
    for (auto& [unit, consumer] : consumers) code(unit).kernels.push_back(std::move(consumer));
    code(sites.front().parent_unit).kernels.push_back(std::move(parent));
    for (const PlannedSite& site : sites) {
      for (const size_t unit : {site.child_unit, site.parent_unit}) note_losses(site, code(unit).lines);
    }
  }

  GeneratedUnits take() { return std::move(out_); }

 private:
  // The one kernel of a chain.
  void promoted(const PlannedSite& site) {
    const PlannedPromotion& promotion = *site.promotion;
    std::shared_ptr<const ptx::Module> resident, link, launch;
    {
      const Stopwatch watch(&timings_.templates);
      resident = promote_template(promotion.shape);
      link = promote_link_template(promotion.shape);
      if (promotion.shape.launches) launch = promote_launch_template(promotion.shape);
    }
    const Stopwatch watch(&timings_.transform);
    transform::UnitCode& unit = code(site.parent_unit);
    unit.includes(*resident);
    unit.includes(*link);
    if (launch) unit.includes(*launch);
    const std::string name = fmt::format("{}$klap_{}_{}", site.parent->function.name, promotion.shape.name(),
                                         unit_tag(plan_, site.parent_unit));
    unit.kernels.push_back(transform::promoted_kernel(*site.parent, *promotion.chain, promotion.shape,
                                                      {*resident, *link, launch.get()}, name, unit.lines));
    add_promoted(site, name);
    note_losses(site, unit.lines);
  }

  void add_promoted(const PlannedSite& site, const std::string& variant) {
    const PlannedPromotion& promotion = *site.promotion;
    const ptx::Function& parent = site.parent->function;
    Variant v;
    v.parent = parent.name;
    v.parent_variant = variant;
    v.parent_param_count = static_cast<uint32_t>(parent.parameters.size());
    v.parent_param_bytes = parent.parameter_bytes;
    v.queue_param_offset = transform::queue_parameter_offset(parent);
    v.promoted = PromotedChain{promotion.shape.name(), promotion.chain->block, promotion.chain->shared_bytes,
                               promotion.shape.slot_bytes, promotion.shape.two_heads};
    v.pool_bytes = site.options.pool_bytes;
    v.pool = site.options.pool;
    v.concurrency = site.options.concurrency;
    out_.variants.push_back(std::move(v));
  }

  struct SiteTemplates {
    std::shared_ptr<const ptx::Module> consumer;
    std::shared_ptr<const ptx::Module> record;  // or what launches at once
    std::shared_ptr<const ptx::Module> leave;   // null where nothing is launched as the parent leaves
  };
  static SiteTemplates templates_for(const PlannedSite& site, bool in_order) {
    SiteTemplates out;
    if (site.way.is_at_once()) {
      out.consumer = consumer_template(site.shape);
      out.record = warp_launch_template(site.shape, transform::sharing_shape(*site.parent, *site.site));
      return out;
    }
    const uint32_t group_blocks = site.way.group_blocks;
    out.record = site.shape.chain == transform::Chain::InOrder
                     ? chain_record_template(site.shape, group_blocks)
                 : site.way.has_own_room() ? feed_record_template(site.shape, group_blocks)
                 : site.keeps_launches     ? record_sizes_template(site.shape, group_blocks)
                                           : record_template(site.shape, group_blocks, site.own);
    out.consumer = consumer_template(site.shape);
    if (site.way.launcher == Launcher::Device) {
      out.leave = site.way.chains ? leave_chain_template(site.shape, group_blocks)
                                  : leave_template(site.shape, group_blocks, in_order);
    }
    return out;
  }

  // Whether all consumers begin with a wait, and neither they nor the parent launch kernels. It is asked of
  // what was generated: whoever launches on this trusts in it. (What children launch is in
  // ConsumerShape::awaits_parent.)
  [[nodiscard]] bool await(std::span<const PlannedSite> sites, const std::vector<SiteTemplates>& templates,
                           const Generated& parent) const {
    const PlannedSite& any = sites.front();
    if (any.way.is_at_once() || any.way.launcher == Launcher::Device) return false;
    if (parent.text.find(kLaunchCall) != std::string::npos) return false;
    if (!analysis::may_be_overtaken(*plan_.units[any.parent_unit]->module(), any.parent->function))
      return false;
    return std::ranges::all_of(templates, [&](const SiteTemplates& made) {
      const PlannedSite& site = sites[static_cast<size_t>(&made - templates.data())];
      return site.shape.awaits_parent && made.consumer->source.find(kWait) != std::string::npos;
    });
  }

  void includes(const PlannedSite& site, const SiteTemplates& templates) {
    code(site.child_unit).includes(*templates.consumer);
    code(site.parent_unit).includes(*templates.record);
    if (templates.leave) code(site.parent_unit).includes(*templates.leave);
  }

  Generated consumer(const PlannedSite& site, const SiteTemplates& templates, const std::string& name) {
    const ptx::Module& module = *plan_.units[site.child_unit]->module();
    transform::LineTables& lines = code(site.child_unit).lines;
    if (!site.way.feeds) {
      const ptx::Function& first = site.way.chains ? *site.shape.bodies.front().kernel : *site.child;
      return transform::consumer_kernel(module, first, site.shape, *templates.consumer, name, lines);
    }
    code(site.child_unit).includes(*templates.record);
    transform::FedKernels fed{*templates.record, {}};
    for (const analysis::FedKernel& kernel : site.family->kernels)
      fed.kernels.push_back({*kernel.facts, site.family->targets_of(*kernel.facts)});
    const ptx::Function& first = fed.kernels.front().kernel.function;
    return transform::consumer_kernel(module, first, site.shape, *templates.consumer, name, lines, &fed);
  }

  static transform::RecordingSite recording_site(const PlannedSite& site, const ptx::Module& record) {
    transform::RecordingSite out{*site.site, record, site.shape.layout, site.keeps_launches};
    const std::optional<analysis::FlatBound> none;
    const auto& bound = site.own ? site.own->bound : site.shape.flat ? site.shape.flat->bound : none;
    if (bound) out.bound = bound->operand;
    out.at_launch = site.own || (bound && bound->at_launch);
    if (site.shape.split() != nullptr) {
      out.pointers = site.shape.split()->pointers;
      out.at_launch = out.at_launch || site.shape.flat->bound->at_launch;
    }
    out.own = site.own;
    out.child = site.child;
    out.block = site.shape.block;
    return out;
  }

  Generated parent_variant(std::span<const PlannedSite> sites, const std::vector<SiteTemplates>& templates) {
    const PlannedSite& any = sites.front();
    const bool device = any.way.launcher == Launcher::Device;
    const std::string name = variant_name(plan_, any);
    transform::LineTables& lines = code(any.parent_unit).lines;
    std::vector<transform::RecordingSite> recording;
    std::vector<transform::DeviceLaunch> launches;
    for (size_t i = 0; i < sites.size(); ++i) {
      recording.push_back(recording_site(sites[i], *templates[i].record));
      if (!device) continue;
      const std::string consumer = consumer_name(plan_, sites[i]);
      launches.push_back({*templates[i].leave, consumer, "", any.way.group_blocks});
      if (sites[i].parent_unit != sites[i].child_unit) {
        launches.back().declaration = transform::consumer_declaration(*templates[i].consumer, consumer);
      }
    }
    if (any.way.has_own_room()) {
      const ptx::Module& record = *templates.front().record;
      const transform::DeviceLaunch* const launch = device ? &launches.front() : nullptr;
      if (any.shape.chain == transform::Chain::InOrder)
        return transform::chaining_parent(*any.parent, *any.chained, record, name, lines, launch);
      const auto targets = any.way.feeds ? any.family->targets_of(*any.parent) : any.chained->targets;
      return transform::feeding_parent(*any.parent, targets, record, name, lines, launch);
    }
    if (!device) return transform::recording_parent(*any.parent, recording, name, lines, any.in_slices);
    return transform::launching_parent(*any.parent, recording, launches, name, lines, any.in_slices);
  }

  // The parent whose launches the lanes of a warp share.
  Generated sharing_parent(std::span<const PlannedSite> sites, const std::vector<SiteTemplates>& templates) {
    const PlannedSite& any = sites.front();
    std::vector<transform::SharedSite> shared;
    for (size_t i = 0; i < sites.size(); ++i) {
      const std::string consumer = consumer_name(plan_, sites[i]);
      shared.push_back({sites[i].site, templates[i].record.get(), &sites[i].shape.layout, consumer, ""});
      if (sites[i].parent_unit == sites[i].child_unit) continue;
      shared.back().declaration = transform::consumer_declaration(*templates[i].consumer, consumer);
    }
    const std::string name = variant_name(plan_, any);
    return transform::sharing_parent(*any.parent, shared, name, code(any.parent_unit).lines);
  }

  transform::UnitCode& code(size_t unit) {
    auto& code = out_.code[unit];
    if (!code) code.emplace(*plan_.units[unit]->original());
    return *code;
  }

  // Notes at the site for which it was found out what the line tables of a unit lack.
  void note_losses(const PlannedSite& site, const transform::LineTables& lines) {
    for (const std::string& loss : lines.losses()) add_note(plan_.remarks[site.remark], loss);
  }

  void add_variant(std::span<const PlannedSite> sites, const std::string& parent_variant) {
    const ptx::Function& parent = sites.front().parent->function;
    Variant v;
    v.parent = parent.name;
    v.parent_variant = parent_variant;
    v.launcher = sites.front().way.launcher;
    v.granularity = sites.front().way.granularity;
    v.group_blocks = sites.front().way.group_blocks;
    add_conditions(v, sites.front());
    v.parent_waits = analysis::waits_for_others(*sites.front().parent).has_value();
    if (sites.front().way.is_at_once()) {
      out_.variants.push_back(std::move(v));
      return;
    }
    v.parent_param_count = static_cast<uint32_t>(parent.parameters.size());
    v.parent_param_bytes = parent.parameter_bytes;
    v.queue_param_offset = transform::queue_parameter_offset(parent);
    // One with a size of its own serves all sites.
    for (const PlannedSite& site : sites.first(sites.front().way.has_own_room() ? 1 : sites.size())) {
      ChildQueue& queue = v.queues.emplace_back();
      queue.child = site.child->name;
      queue.consumer = consumer_name(plan_, site);
      queue.record_bytes = site.shape.layout.record_bytes;
      queue.consumer_block_threads = site.shape.threads();
      queue.child_block_threads = site.shape.most_child_threads();
      queue.child_shared_bytes = site.shape.shared_bytes;
      queue.feeds = site.way.has_own_room();
      queue.two_heads = site.shape.two_heads;
      if (site.way.feeds) queue.others = other_kernels(site);
      if (site.way.feeds) queue.following = following_blocks(site);
      if (site.way.chains) add_chained(queue, site.shape.bodies);
      queue.concurrency = site.options.concurrency;
    }
    v.pool_bytes = sites.front().options.pool_bytes;
    v.buffer = sites.front().options.buffer;
    v.in_slices = sites.front().in_slices;
    out_.variants.push_back(std::move(v));
  }

  // Conditions on a launch under which the variant is right.
  static void add_conditions(Variant& v, const PlannedSite& site) {
    for (size_t axis = 0; axis < v.block.size(); ++axis) {
      v.block.at(axis) = site.way.block.at(axis).value_or(0);
      v.grid.at(axis) = site.way.grid.at(axis).value_or(0);
    }
    v.several_blocks = site.order.conditions.several_blocks;
    v.may_refuse = site.chained != nullptr && site.chained->may_refuse(site.way.group_blocks != 0);
    for (const auto& [a, b] : site.order.conditions.apart)
      v.apart.push_back({{a.parameter_offset, a.variable, a.only_upwards},
                         {b.parameter_offset, b.variable, b.only_upwards}});
    for (const auto& [offset, bytes] : site.order.conditions.not_negative)
      v.not_negative.push_back({offset, bytes});
    if (v.apart.empty()) return;
    for (const ptx::Parameter& p : site.parent->function.parameters)
      v.parent_param_offsets.push_back(p.offset);
    v.parent_param_bytes = site.parent->function.parameter_bytes;
  }

  // Enters the kernels that launches in and beside a loop run; the first one is the queue's child.
  static void add_chained(ChildQueue& queue, const std::vector<transform::FedBody>& bodies) {
    queue.child = bodies.front().kernel->name;
    queue.child_block_threads = bodies.front().threads();
    for (size_t i = 1; i < bodies.size(); ++i)
      queue.others.push_back({bodies[i].kernel->name, bodies[i].threads()});
  }

  // Kernels that the consumer runs beside the site's own child.
  static std::vector<ChildKernel> other_kernels(const PlannedSite& site) {
    std::vector<ChildKernel> others;
    for (const analysis::FedKernel& kernel : site.family->kernels) {
      const std::string& name = kernel.facts->function.name;
      if (name != site.child->name)
        others.push_back({name, kernel.has_constant_block() ? kernel.threads() : 0});
    }
    return others;
  }

  // All that the consumer runs, where blocks follow the parent's.
  static std::vector<FollowingBlock> following_blocks(const PlannedSite& site) {
    std::vector<FollowingBlock> blocks;
    if (!site.shape.has_own_extents()) return blocks;
    for (size_t i = 0; i < site.family->kernels.size(); ++i) {
      const analysis::FedKernel& kernel = site.family->kernels[i];
      blocks.push_back({kernel.facts->function.name, site.shape.bodies[i].block,
                        kernel.meeting == analysis::Meeting::Block,
                        kernel.meeting != analysis::Meeting::None});
    }
    return blocks;
  }

  Plan& plan_;
  Timings& timings_;
  GeneratedUnits out_;
  std::set<std::string> consumers_;
};

// The generated kernels, numbered by their units.
void dump_generated(const Dump& dump, const GeneratedUnits& generated) {
  for (size_t u = 0; u < generated.code.size(); ++u) {
    const auto& code = generated.code[u];
    for (size_t k = 0; code && k < code->kernels.size(); ++k) {
      const Generated& kernel = code->kernels[k];
      const std::string file = fmt::format("unit{}.kernel{}.", u, k);
      std::string bodies;
      for (const std::string& body : kernel.spliced) bodies += body + "\n";
      if (!bodies.empty()) dump({Pass::Splice, file + "splice.ptx", kernel.name, bodies});
      dump({Pass::Aggregate, file + "aggregate.ptx", kernel.name, kernel.text});
    }
  }
}

}  // namespace

GeneratedUnits generate(Plan& plan, std::span<const PlannedSite> sites, const Dump& dump, Timings& timings) {
  Generator generator(plan, timings);
  for (const auto& of_parent : by_parent(sites)) {
    try {
      generator.parent(of_parent);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Toolchain) throw;
      const bool parameter_use = error.code() == ErrorCode::Unsupported;
      leave(plan, of_parent,
            parameter_use ? analysis::Reason::ChildParameterUse : analysis::Reason::BuildFailed,
            error.what());
    }
  }
  GeneratedUnits generated = generator.take();
  if (dump) dump_generated(dump, generated);
  return generated;
}

}  // namespace klap::jit
