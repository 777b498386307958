#include "jit/generate/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>

#include "analysis/legality/parent_checks.h"
#include "analysis/optimise/early_start.h"
#include "container/elf64.h"
#include "jit/compile/templates.h"
#include "jit/compile/toolchain.h"
#include "jit/plan/options.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/hash.h"
#include "transform/aggregate/no_runtime.h"

namespace klap::jit {
namespace {

using transform::Generated;

constexpr std::string_view kWait = "griddepcontrol.wait", kLaunchCall = "LaunchDevice";

// Short and unique within a program: names of generated kernels carry it.
std::string unit_tag(const Plan& plan, size_t unit) {
  return Hasher().add(plan.units[unit]->unit().ptx).add(std::to_string(unit)).hex().substr(0, 8);
}

// Of a consumer that a multiprocessor is to have registers for several times.
std::string room_tag(const transform::ConsumerShape& shape) {
  return shape.least_blocks == 0 ? "" : fmt::format("_least{}", shape.least_blocks);
}

// That of a family begins with its first kernel's.
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

// The same for several kernels that the launches of one queue run.
std::string chained_name(const Plan& plan, const PlannedSite& site) {
  Hasher chained;
  for (const transform::FedBody& body : site.shape.bodies)
    chained.add(fmt::format("{} {}", body.kernel->name, fmt::join(body.block, "x")));
  const bool in_order = site.shape.chain == transform::Chain::InOrder;
  return fmt::format("{}$klap_{}_{}_{}{}", site.shape.bodies.front().kernel->name,
                     in_order ? "ordered" : "loop", unit_tag(plan, site.child_unit),
                     chained.hex().substr(0, 8), site.shape.grid_is_1d ? "_1d" : "");
}

// Of a packed record: the layout is too long for a name.
std::string layout_tag(const transform::RecordLayout& layout) {
  return layout.packed ? "_p" + Hasher().add(layout.key()).hex().substr(0, 8) : "";
}

// What is otherwise than usual.
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

// What a parent's variant is called after: "grid", "grid_device", "block", "multi16", "warp".
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

// The same with what tells a parent's second variant from its first.
std::string variant_name(const Plan& plan, const PlannedSite& site) {
  return fmt::format("{}$klap_{}{}_{}", site.parent->function.name, way_tag(site.way),
                     site.way.keeps_order ? "_kept" : "", unit_tag(plan, site.parent_unit));
}

void add_note(SiteRemark& remark, const std::string& text) {
  if (std::ranges::find(remark.notes, text) == remark.notes.end()) remark.notes.push_back(text);
}

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

  // What is missing from the line tables of a unit, said at the site that it was found for.
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

  // What must hold of a launch for the variant to be right.
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

  // What launches in and beside a loop run, the first one as the queue's child.
  static void add_chained(ChildQueue& queue, const std::vector<transform::FedBody>& bodies) {
    queue.child = bodies.front().kernel->name;
    queue.child_block_threads = bodies.front().threads();
    for (size_t i = 1; i < bodies.size(); ++i)
      queue.others.push_back({bodies[i].kernel->name, bodies[i].threads()});
  }

  // What the consumer runs beside the site's own child.
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

// ---- the link ----

// Everything that goes into the link, in the program's order, generated units behind their own.
struct LinkPlan {
  std::vector<LinkInput> inputs;
  std::deque<std::string> texts;          // generated PTX that the inputs point to; a deque never moves it
  std::vector<std::string> code_options;  // of the PTX that is assembled
  bool line_info = false;                 // some of that PTX was to carry line tables
  char suffix = '\0';                     // of the narrowest target that an input is for
};

class LinkPlanner {
 public:
  LinkPlanner(const Program& program, const Request& request, Plan& plan, GeneratedUnits& generated)
      : program_(program), request_(request), plan_(plan), generated_(generated) {}

  // The unit is assembled anew even if nothing was added to it.
  void assemble_anew(size_t unit) { anew_ = unit; }
  // The units get other functions for their device memory.
  void aggregate_memory(const DeviceMemory& memory) { memory_ = memory; }

  LinkPlan run() {
    bool has_runtime = false;
    for (size_t u = 0; u < program_.units.size(); ++u) {
      has_runtime = has_runtime || program_.units[u].is_device_runtime;
      if (request_.device_runtime) {
        unit(u);
      } else {
        unit_without_runtime(u);
      }
    }
    if (memory_.is_aggregated()) add_memory();
    if (!has_runtime && !program_.built_in_runtime && request_.device_runtime) add_device_runtime();
    return std::move(out_);
  }

 private:
  void unit(size_t u) {
    const Unit& unit = program_.units[u];
    std::optional<transform::UnitCode>& code = generated_.code[u];
    const BuildOptions options = parse_options(unit.options);
    if (u == anew_) {
      const transform::UnitCode plain(*plan_.units[u]->original());
      app_ptx(unit, options);
      add_ptx(u, transform::in_place_unit(plain, options.register_cap), plain.dialect.target);
      return;
    }
    if (!code || code->kernels.empty()) {
      original(u, options);
      return;
    }
    std::string obstacle = "the unit carries no machine code for this device";
    std::optional<std::string> detached;
    if (!unit.cubin.empty() && memory_.changes(u)) {
      obstacle = "its device memory is aggregated";
    } else if (!unit.cubin.empty()) {
      detached = transform::detached_unit(*code, "$klap_" + unit_tag(plan_, u), &obstacle);
    }
    if (detached) {
      // Also where it is spliced, the program's code is compiled as the program wanted it.
      app_ptx(unit, options);
      original(u, options);
      add_ptx(u, std::move(*detached), code->dialect.target);
    } else {
      refuse_other_code(u, obstacle);
      note(u, "the unit is assembled anew: " + obstacle);
      app_ptx(unit, options);
      add_ptx(u, transform::in_place_unit(*code, options.register_cap), code->dialect.target);
    }
  }

  // What launches is assembled anew: there is no other way to its own kernels' launches.
  void unit_without_runtime(size_t u) {
    const Unit& program_unit = program_.units[u];
    if (program_unit.is_device_runtime) return;
    if (!program_unit.launches) {
      unit(u);
      return;
    }
    if (plan_.units[u]->original() == nullptr) {
      throw Error(ErrorCode::Unsupported, "the unit launches kernels but carries no PTX")
          .at(program_unit.name);
    }
    refuse_other_code(u, "it is to have no device runtime");
    const BuildOptions options = parse_options(program_unit.options);
    const transform::UnitCode plain(*plan_.units[u]->original());
    const transform::UnitCode& code = generated_.code[u] ? *generated_.code[u] : plain;
    const std::string text = transform::in_place_unit(code, options.register_cap);
    note(u, "linked without the device runtime: a launch that is left ends its kernel with an error");
    app_ptx(program_unit, options);
    add_ptx(u, transform::without_device_runtime(ptx::parse(text, program_unit.name)), code.dialect.target);
  }

  // PTX for another target is shown to be the program's code only for the kernels that are rewritten.
  void refuse_other_code(size_t u, const std::string& obstacle) const {
    const std::string& made_for = plan_.units[u]->made_for();
    if (made_for.empty() || program_.units[u].cubin.empty()) return;
    throw Error(ErrorCode::Link, fmt::format("all of the unit would have to be assembled from PTX for {}: {}",
                                             made_for, obstacle))
        .at(program_.units[u].name);
  }

  // A unit that nothing was added to: its machine code as it is, else its PTX.
  void original(size_t u, const BuildOptions& options) {
    const Unit& unit = program_.units[u];
    if (!unit.cubin.empty() && !memory_.changes(u)) {
      needs_suffix(unit.cubin_suffix);
      out_.inputs.push_back({LinkInputKind::Cubin, unit.cubin, unit.name});
    } else if (!unit.ptx.empty()) {
      const transform::UnitCode plain(*plan_.units[u]->original());
      app_ptx(unit, options);
      needs_suffix(plain.dialect.target.suffix);
      out_.texts.push_back(own_memory(u, transform::in_place_unit(plain, options.register_cap)));
      out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), unit.name});
    } else {
      throw Error(ErrorCode::Unsupported, "the unit has neither machine code nor PTX for this device")
          .at(unit.name);
    }
  }

  // Code-changing options hold for the whole link: all of the program's PTX in it must share them.
  void app_ptx(const Unit& unit, const BuildOptions& options) {
    if (has_app_ptx_ && options.code_changing != out_.code_options) {
      throw Error(ErrorCode::Unsupported,
                  "units built with different options would have to be assembled together")
          .at(unit.name);
    }
    has_app_ptx_ = true;
    out_.code_options = options.code_changing;
    out_.line_info = out_.line_info || options.line_info;
  }

  void add_ptx(size_t u, std::string text, const ptx::Target& target) {
    needs_suffix(target.suffix);
    text = own_memory(u, std::move(text));
    if (request_.dump) request_.dump({Pass::Unit, fmt::format("unit{}.klap.ptx", u), "", text});
    out_.texts.push_back(std::move(text));
    out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), program_.units[u].name + " (rewritten)"});
  }

  [[nodiscard]] std::string own_memory(size_t u, std::string text) const {
    return memory_.changes(u) ? with_own_memory(text, memory_, program_.units[u].name) : std::move(text);
  }

  void add_memory() {
    out_.texts.push_back(device_memory_unit(memory_));
    if (request_.dump) request_.dump({Pass::Unit, "memory.klap.ptx", "", out_.texts.back()});
    out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), "device memory"});
  }

  // Code for sm_90a can only be linked for sm_90a: not even for sm_90, though the same devices run both.
  void needs_suffix(char suffix) {
    if (suffix == 'a' || out_.suffix == '\0') out_.suffix = suffix;
  }

  void add_device_runtime() {
    const std::string& given = program_.device_runtime_archive;
    const std::string archive = given.empty() ? find_device_runtime_archive() : given;
    if (archive.empty()) {
      throw Error(ErrorCode::Toolchain,
                  "the image has no device runtime of its own and libcudadevrt.a was not found")
          .fix("install the CUDA toolkit's libcudadevrt.a or set CUDA_HOME");
    }
    out_.texts.push_back(archive);
    out_.inputs.push_back({LinkInputKind::Library, out_.texts.back(), "libcudadevrt.a"});
  }

  void note(size_t unit, const std::string& text) {
    for (const PlannedSite& site : plan_.sites) {
      const bool concerned = site.parent_unit == unit || site.child_unit == unit;
      if (concerned) add_note(plan_.remarks[site.remark], text);
    }
  }

  const Program& program_;
  const Request& request_;
  Plan& plan_;
  GeneratedUnits& generated_;
  LinkPlan out_;
  std::optional<size_t> anew_;
  DeviceMemory memory_;
  bool has_app_ptx_ = false;
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

const char* to_string(LinkInputKind kind) {
  switch (kind) {
    case LinkInputKind::Ptx:
      return "PTX";
    case LinkInputKind::Cubin:
      return "machine code";
    case LinkInputKind::Library:
      return "library";
  }
  return "";
}

// ---- checking what came out ----

constexpr std::string_view kParameterBank = ".nv.constant0.";  // every kernel has one, a function has none

std::set<std::string> kernels_of(std::string_view cubin, const std::string& name) {
  std::set<std::string> out;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), name);
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view text = elf.name(section);
    if (text.starts_with(kParameterBank)) out.emplace(text.substr(kParameterBank.size()));
  }
  return out;
}

// nvJitLink has been seen to report success for links that were not: every kernel must be there.
void check_linked(const Program& program, const GeneratedUnits& generated, const std::string& cubin) {
  const std::set<std::string> linked = kernels_of(cubin, "linked image");
  const auto require = [&](const std::string& kernel) {
    if (!linked.contains(kernel)) {
      throw Error(ErrorCode::Link, "the linked image lacks a kernel").kernel(kernel);
    }
  };
  for (const Variant& variant : generated.variants) {
    for (const std::string* kernel : {&variant.parent, &variant.parent_variant}) require(*kernel);
    for (const ChildQueue& queue : variant.queues) require(queue.consumer);
  }
  for (const Unit& unit : program.units) {
    if (unit.is_device_runtime || unit.cubin.empty()) continue;
    for (const std::string& kernel : kernels_of(unit.cubin, unit.name)) require(kernel);
  }
}

// nvJitLink does not report duplicate definitions, so no generated name may stand anywhere else.
void check_unique(const Program& program, const GeneratedUnits& generated) {
  std::set<std::string> names;
  for (const Unit& unit : program.units) {
    if (!unit.cubin.empty()) names.merge(kernels_of(unit.cubin, unit.name));
  }
  for (const auto& code : generated.code) {
    if (!code) continue;
    for (const Generated& kernel : code->kernels) {
      if (!names.insert(kernel.name).second) {
        throw Error(ErrorCode::Internal, "the name of a generated kernel is taken").kernel(kernel.name);
      }
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

namespace {

std::string link(const LinkPlan& plan, const Request& request) {
  std::vector<std::string> options = {"-arch=" + to_string(ptx::Target{request.sm, plan.suffix})};
  for (const std::string& option : plan.code_options) options.push_back("-Xptxas=" + option);
  if (plan.line_info) options.emplace_back("-lineinfo");
  if (request.dump) {
    std::string text = fmt::format("options {}\n", fmt::join(options, " "));
    for (const LinkInput& input : plan.inputs) {
      text += fmt::format("input {}: {}, {} bytes\n", input.name, to_string(input.kind), input.bytes.size());
    }
    request.dump({Pass::Link, "link.txt", "", text});
  }
  if (request.linker != nullptr) return request.linker->link(plan.inputs, options);
  return link_to_cubin(plan.inputs, options);
}

void dump_linked(const Dump& dump, const std::string& cubin) {
  std::string text;
  for (const std::string& kernel : kernels_of(cubin, "linked image")) text += both_names(kernel) + "\n";
  dump({Pass::Link, "linked.txt", "", text});
  dump({Pass::Link, "linked.cubin", "", cubin});
}

}  // namespace

std::string link_originals(const Program& program, const Request& request, Plan& plan,
                           std::optional<size_t> anew) {
  GeneratedUnits nothing;
  nothing.code.resize(program.units.size());
  LinkPlanner planner(program, request, plan, nothing);
  if (anew) planner.assemble_anew(*anew);
  return link(planner.run(), request);
}

namespace {

BuiltModule build_with(const DeviceMemory& memory, const Program& program, const Request& request, Plan& plan,
                       std::span<const PlannedSite> sites, Timings& timings) {
  GeneratedUnits generated = generate(plan, sites, request.dump, timings);
  if (generated.variants.empty()) return {};
  check_unique(program, generated);
  const Stopwatch watch(&timings.link);
  BuiltModule out;
  LinkPlanner planner(program, request, plan, generated);
  planner.aggregate_memory(memory);
  out.cubin = link(planner.run(), request);
  if (request.dump) dump_linked(request.dump, out.cubin);
  check_linked(program, generated, out.cubin);
  out.variants = std::move(generated.variants);
  return out;
}

}  // namespace

// If it is the program's device memory that does not build, it stays as it is.
BuiltModule build(const Program& program, const Request& request, Plan& plan,
                  std::span<const PlannedSite> sites, Timings& timings) {
  if (!plan.memory.is_aggregated()) return build_with({}, program, request, plan, sites, timings);
  const std::vector<SiteRemark> remarks = plan.remarks;
  std::string problem;
  try {
    return build_with(plan.memory, program, request, plan, sites, timings);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Toolchain) throw;
    problem = error.what();
  }
  plan.remarks = remarks;
  BuiltModule out = build_with({}, program, request, plan, sites, timings);
  plan.memory.objection = "the module does not build with it: " + problem;
  return out;
}

}  // namespace klap::jit
