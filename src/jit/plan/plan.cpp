#include "jit/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/facts/launch_shape.h"
#include "analysis/launches/calls.h"
#include "analysis/legality/chaining.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/legality/slicing.h"
#include "analysis/legality/unit_checks.h"
#include "analysis/optimise/early_start.h"
#include "analysis/optimise/flattening.h"
#include "analysis/order/single_thread.h"
#include "analysis/order/site_order.h"
#include "analysis/values/values.h"
#include "jit/plan/describe.h"
#include "jit/plan/facts.h"
#include "jit/plan/order_plan.h"
#include "jit/plan/remark_text.h"
#include "ptx/dialect.h"
#include "ptx/edit.h"
#include "transform/aggregate/chain.h"
#include "transform/aggregate/warp.h"
#include "transform/promotion/residency.h"

namespace klap::jit {
namespace {

using analysis::FunctionFacts;
using analysis::LaunchNames;
using analysis::Objection;
using analysis::OrderVerdict;
using analysis::Reason;
using analysis::Site;
using analysis::StreamKind;
using analysis::Way;

// The unit that defines `kernel`, the parent's own unit first. An internal kernel of another unit does not
// count.
struct ChildPlace {
  size_t unit = 0;
  const ptx::Function* function = nullptr;
};
ChildPlace find_child(Plan& plan, const std::string& kernel, size_t parent_unit) {
  std::vector<size_t> order = {parent_unit};
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (u != parent_unit) order.push_back(u);
  }
  for (size_t u : order) {
    const Unit& unit = plan.units[u]->unit();
    if (unit.is_device_runtime || unit.ptx.find(kernel) == std::string::npos) continue;
    const ptx::Module* module = plan.units[u]->module();
    const ptx::Function* f = module == nullptr ? nullptr : module->find_function(kernel);
    const bool visible = f != nullptr && (u == parent_unit || f->linkage != ptx::Linkage::Internal);
    if (visible && f->is_definition) return {u, f};
  }
  return {};
}

bool grid_is_1d(const Site& site, const analysis::DataFlow& data) {
  return data.constant(site.grid[1]) == 1 && data.constant(site.grid[2]) == 1;
}

class Planner {
 public:
  Planner(Plan& plan, const Request& request) : plan_(plan), request_(request) {}

  void unit(size_t index) {
    const ptx::Module* module = plan_.units[index]->module();
    if (module == nullptr) {
      SiteRemark remark;
      remark.unit = plan_.units[index]->unit().name;
      remark.reason = to_string(Reason::ChildNotFound);
      remark.detail = fmt::format(
          "the unit launches kernels but carries no PTX, only machine code; build it with PTX, as by nvcc "
          "-gencode arch=compute_{0},code=compute_{0}",
          request_.sm);
      plan_.remarks.push_back(std::move(remark));
      return;
    }
    dump_inlined(index);
    const LaunchNames names = analysis::launch_names(*module);
    for (const ptx::Function& f : module->functions) {
      if (!f.is_definition || !analysis::may_launch(*module, f, names)) continue;
      // Its launches are those of the kernels that call it.
      if (plan_.units[index]->is_written_out(f)) continue;
      auto facts = std::make_shared<FunctionFacts>(*module, f);
      if (!facts->sites.empty()) parent(index, facts);
    }
  }

 private:
  void dump_inlined(size_t unit) const {
    const ptx::Module* const module = plan_.units[unit]->module();
    if (!request_.dump || module == plan_.units[unit]->original()) return;
    request_.dump({Pass::Parse, fmt::format("unit{}.inlined.ptx", unit), "", module->source});
  }

  // One remark a site in text order; the planned sites in the order of their queues.
  void parent(size_t unit, const std::shared_ptr<FunctionFacts>& parent) {
    std::vector<PlannedSite> planned;
    order_.forget_parent();
    const std::vector<SiteOptions> options = find_site_options(request_, *parent);
    for (const Site& s : parent->sites) {
      PlannedSite& site = planned.emplace_back();
      site.options = options[planned.size() - 1];
      site.remark = plan_.remarks.size() + planned.size() - 1;
      site.parent_unit = unit;
      site.parent = parent;
      site.site = &s;
      dump(Pass::Sites, site.remark, parent->function.name, [&] {
        return describe(site_info(*parent, s)) + analysis::to_string(site_values(parent->values(), s));
      });
    }
    if (promote(planned)) return;
    const std::vector<std::optional<Objection>> objections =
        judge(planned, ways_asked_for(request_, options));
    const bool rewritten = !std::ranges::all_of(objections, [](const auto& o) { return o.has_value(); });
    if (rewritten && request_.slicing) find_slices(planned);
    if (rewritten) keep_launches(planned);
    for (size_t i = 0; i < planned.size(); ++i) {
      if (objections[i]) continue;
      flatten(planned[i]);
      pack_blocks(planned[i]);
      use_options(planned[i]);
      leave_out(planned, planned[i]);
      pack_records(planned[i]);
    }
    for (size_t i = 0; i < planned.size(); ++i) add_remark(planned[i], objections[i]);
    if (!rewritten) return;
    for (const Site* s : queue_order(planned)) {
      const auto site = std::ranges::find(planned, s, &PlannedSite::site);
      if (!objections[static_cast<size_t>(site - planned.begin())]) plan_.sites.push_back(*site);
    }
    keep_order_otherwise(planned);
  }

  // Where launches may overlap on conditions only, a second variant keeps their order where these do not
  // hold.
  void keep_order_otherwise(const std::vector<PlannedSite>& first) {
    const PlannedSite& any = first.front();
    if (!has_conditions(any)) return;
    const bool may_have_second = !any.way.feeds && !any.way.is_at_once() && request_.blocks;
    std::vector<PlannedSite> second = may_have_second ? second_variant(first) : std::vector<PlannedSite>();
    const char* const otherwise = second.empty() ? "the original runs" : "the order is kept";
    for (const PlannedSite& site : first)
      plan_.remarks[site.remark].notes.push_back(fmt::format("where that does not hold, {}", otherwise));
    std::ranges::move(second, std::back_inserter(plan_.sites));
  }

  // The sites of a variant that keeps the order; none where that cannot be made.
  std::vector<PlannedSite> second_variant(const std::vector<PlannedSite>& first) {
    const PlannedSite& any = first.front();
    // Facts of its own tell its sites from the first variant's.
    const auto parent = std::make_shared<FunctionFacts>(any.parent->module, any.parent->function);
    std::vector<PlannedSite> second;
    for (const PlannedSite& site : first) {
      PlannedSite& planned = second.emplace_back();
      planned.remark = site.remark;
      planned.parent_unit = site.parent_unit;
      planned.parent = parent;
      planned.site = &parent->sites[static_cast<size_t>(site.site - site.parent->sites.data())];
      planned.options = site.options;
      planned.way = site.way;
      planned.way.block = planned.way.grid = {};
      planned.child = site.child;
      planned.child_unit = site.child_unit;
      planned.is_second = true;
      planned.order = {analysis::Order::Kept, site.order.why, {}};
    }
    if (keep_order(second)) second.clear();
    return second;
  }

  static bool has_conditions(const PlannedSite& site) {
    const analysis::OrderConditions& conditions = site.order.conditions;
    const bool of_sizes = std::ranges::any_of(site.way.block, [](const auto& e) { return e.has_value(); }) ||
                          std::ranges::any_of(site.way.grid, [](const auto& e) { return e.has_value(); });
    return of_sizes || conditions.several_blocks || !conditions.apart.empty();
  }

  // A chain of launches that can be promoted is not aggregated. Where it cannot, a note says why.
  bool promote(std::vector<PlannedSite>& sites) {
    PlannedSite& site = sites.front();
    const SiteOptions& options = site.options;
    if (!request_.promoting || !launches_itself(*site.parent)) return false;
    if (options.promotion == "none" || options.granularity == Granularity::None) return false;
    if (analysis::object_to_unit(site.parent->module, request_.debug_units)) return false;
    PromotionVerdict verdict = plan_promotion(*site.parent, options, request_.sm);
    if (!verdict.promotion) {
      site.options.notes.push_back(fmt::format("not promoted: {}: {}", to_string(verdict.objection->reason),
                                               verdict.objection->detail));
      return false;
    }
    site.promotion = std::move(verdict.promotion);
    site.child_unit = site.parent_unit;
    site.child = &site.parent->function;
    add_remark(site, std::nullopt);
    plan_.sites.push_back(site);
    return true;
  }

  // Where the queues grow with the grid, whether it can be launched in parts.
  static void find_slices(std::vector<PlannedSite>& sites) {
    const PlannedSite& any = sites.front();
    if (any.way.is_at_once() || any.way.has_own_room()) return;
    const auto whole = analysis::object_to_slices(*any.parent);
    for (PlannedSite& site : sites) {
      site.in_slices = !whole;
      site.whole = whole.value_or("");
    }
  }

  // One site whose sizes differ decides for all: then the device runtime keeps the last error.
  static void keep_launches(std::vector<PlannedSite>& sites) {
    if (sites.front().way.is_at_once()) return;
    const bool any =
        std::ranges::any_of(sites, [](const PlannedSite& s) { return s.shape.sizes.has_value(); });
    for (PlannedSite& site : sites) site.keeps_launches = any;
  }

  // Where a consumer that the host launches runs children whose threads have nothing to do with each other.
  void flatten(PlannedSite& planned) {
    const transform::ConsumerShape& shape = planned.shape;
    if (planned.promotion != nullptr || planned.way.is_at_once() || planned.way.has_own_room()) return;
    if (planned.way.launcher != Launcher::Host || shape.exact || !shape.packs) return;
    if (shape.together != analysis::Together::Threads) return;
    if (!planned.options.flatten) return;
    const Site& site = *planned.site;
    const analysis::DataFlow& data = planned.parent->data;
    const auto is_one = [&](const std::string& extent) { return data.constant(extent) == 1; };
    if (!shape.grid_is_1d || !is_one(site.block[1]) || !is_one(site.block[2])) {
      planned.not_flat = "its grid or block has more than one dimension";
      return;
    }
    std::optional<uint32_t> block_threads;
    if (!shape.blocks_differ()) block_threads = shape.child_threads();
    // Whether a launch is the program's own is decided where it begins.
    const bool may_wait = !planned.keeps_launches;
    const ChildThreads& child = child_of(planned);
    analysis::FlatVerdict verdict =
        analysis::judge_flattening(child.moldable, planned.options.split_iterations ? &child.loop : nullptr,
                                   *planned.parent, site, block_threads, may_wait);
    if (!verdict.flattening) {
      planned.not_flat = verdict.why_not;
      return;
    }
    transform::flatten(planned.shape, *verdict.flattening);
    planned.shape.all_rounds = planned.options.split_all_iterations;
    transform::use_threads(planned.shape, planned.options.consumer_threads);
  }

  // A consumer that the host launches and that does nothing but run children.
  void use_options(PlannedSite& planned) {
    if (planned.promotion != nullptr || planned.way.is_at_once() || planned.way.has_own_room()) return;
    if (planned.way.launcher != Launcher::Host) return;
    if (planned.options.preload_arguments) transform::hold_arguments(planned.shape);
    if (planned.options.unroll != 1) {
      const ptx::Module& module = *plan_.units[planned.child_unit]->module();
      transform::unroll(planned.shape, analysis::find_straight_loops(module, *planned.child),
                        planned.options.unroll);
    }
    planned.shape.two_heads = planned.options.double_buffer && request_.two_heads;
    ask_for_room(planned);
  }

  // Where threads of a child run one after another, and whoever runs them holds little besides: no place in
  // three dimensions, and no block that the record tells.
  void ask_for_room(PlannedSite& planned) {
    transform::ConsumerShape& shape = planned.shape;
    if (!planned.options.occupancy || shape.flat || !shape.grid_is_1d || shape.blocks_differ() ||
        !shape.loops.empty())
      return;
    const ChildThreads& child = child_of(planned);
    const ptx::Module& module = *plan_.units[planned.child_unit]->module();
    const bool has_shared =
        shape.most_shared_bytes() != 0 || analysis::most_static_shared_bytes(module, *planned.child) != 0;
    if (child.has_frame || has_shared) return;
    shape.least_blocks = transform::least_consumer_blocks(child.words, shape.threads(), request_.sm);
  }

  // Where a consumer that the host launches runs children of one warp that share memory or meet at barriers.
  void pack_blocks(PlannedSite& planned) {
    transform::ConsumerShape& shape = planned.shape;
    if (planned.promotion != nullptr || planned.way.is_at_once() || planned.way.has_own_room()) return;
    if (planned.way.launcher != Launcher::Host || shape.exact || shape.blocks_differ()) return;
    if (shape.together != analysis::Together::Blocks || shape.sizes || shape.shared_bytes != 0) return;
    constexpr uint32_t kWarp = 32;
    if (!planned.options.pack_blocks || shape.child_threads() != kWarp) return;
    const analysis::WarpBlockVerdict verdict =
        analysis::judge_warp_block(*plan_.units[planned.child_unit]->module(), *planned.child, shape.block);
    if (!verdict.block) {
      planned.not_packed = verdict.why_not;
    } else if (!transform::pack_warps(shape, *verdict.block)) {
      planned.not_packed = "too much shared memory";
    } else {
      transform::use_threads(shape, planned.options.consumer_threads);
    }
  }

  // Queues of several sites keep an order by being run one after another. So a child that is run in place is
  // early unless its queue is the first one.
  bool may_run_in_place(const std::vector<PlannedSite>& all, const PlannedSite& planned) {
    if (planned.way.ordering == analysis::Ordering::Relaxed) return true;
    if (planned.order.order == analysis::Order::Kept) return false;
    return queue_order(all).front() == planned.site;
  }

  // Children that need no record, where each launch makes one and what is launched is known to be no error.
  void leave_out(const std::vector<PlannedSite>& all, PlannedSite& planned) {
    if (!planned.options.threshold || planned.way.is_at_once() || planned.way.has_own_room()) return;
    if (planned.promotion != nullptr || planned.keeps_launches) return;
    const Site& site = *planned.site;
    const analysis::DataFlow& data = planned.parent->data;
    const auto is_one = [&](const std::string& extent) { return data.constant(extent) == 1; };
    const uint32_t threshold = *planned.options.threshold;
    if (!grid_is_1d(site, data) || !is_one(site.block[1]) || !is_one(site.block[2])) {
      if (threshold != 0) planned.not_own = "its grid or block has more than one dimension";
      return;
    }
    const analysis::OwnVerdict verdict = analysis::judge_own_children(
        *plan_.units[planned.child_unit]->module(), *planned.child, child_of(planned).moldable,
        *planned.parent, site, may_run_in_place(all, planned), threshold);
    planned.own = verdict.own;
    planned.not_own = verdict.why_not;
  }

  // Where nobody but the site's own consumer reads its records. Nobody records twice there: such launches
  // stand in no loop.
  void pack_records(PlannedSite& planned) const {
    if (!planned.options.pack_records || planned.way.has_own_room() || planned.keeps_launches) return;
    const ptx::Module& child_module = *plan_.units[planned.child_unit]->module();
    planned.shape.layout =
        planned.way.is_at_once()
            ? transform::shared_layout(child_module, *planned.child, *planned.parent, *planned.site)
            : transform::packed_layout(child_module, *planned.child, *planned.parent, *planned.site,
                                       planned.way.group_blocks, planned.shape.split() != nullptr);
  }

  // Where nothing is put off or all is put into one queue, any order will do.
  std::vector<const Site*> queue_order(const std::vector<PlannedSite>& planned) {
    const PlannedSite& any = planned.front();
    if (!any.way.is_at_once() && !any.way.chains)
      return analysis::order_sites(*any.parent, order_.of(planned)).sites;
    std::vector<const Site*> sites;
    for (const Site& site : any.parent->sites) sites.push_back(&site);
    return sites;
  }

  void add_remark(const PlannedSite& planned, const std::optional<Objection>& objection) {
    SiteRemark remark;
    remark.unit = plan_.units[planned.parent_unit]->unit().name;
    remark.parent = planned.parent->function.name;
    remark.child = planned.site->callee;
    remark.line = planned.site->position.line;
    remark.column = planned.site->position.column;
    remark.notes = planned.options.notes;
    note_function(remark, planned);
    if (objection) {
      remark.reason = to_string(objection->reason);
      remark.detail = objection->detail;
      note_other_ways(remark, planned);
    } else {
      accept(remark, planned);
      dump(Pass::Plan, planned.remark, remark.parent, [&] { return describe(planned); });
    }
    dump(Pass::Legality, planned.remark, remark.parent, [&] { return describe(remark, remark.unit); });
    plan_.remarks.push_back(std::move(remark));
  }

  // Which function the launch stands in, where that is not the kernel.
  static void note_function(SiteRemark& remark, const PlannedSite& planned) {
    const ptx::Statement* const call =
        planned.site->get_call != nullptr ? planned.site->get_call : planned.site->launch_call;
    if (call == nullptr) return;
    const std::string_view through = planned.parent->module.through(call->head);
    if (!through.empty()) remark.notes.push_back(fmt::format("the launch stands in {}", through));
  }

  template <typename Text>
  void dump(Pass pass, size_t site, const std::string& kernel, const Text& text) const {
    if (request_.dump)
      request_.dump({pass, fmt::format("site{}.{}.txt", site, to_string(pass)), kernel, text()});
  }

  // What stands against each site. Launches that are put off keep their order only if all of a parent's are,
  // so a way is taken if it suits all sites; those that are made at once may be any of them. A site that is
  // left is left for what stands against the first way: later ones only make up for it.
  std::vector<std::optional<Objection>> judge(std::vector<PlannedSite>& sites, const std::vector<Way>& ways) {
    const auto is_objection = [](const std::optional<Objection>& o) { return o.has_value(); };
    std::vector<std::optional<Objection>> objections;
    for (const Way& way : ways) {
      objections = judge_in_any_block(sites, way);
      const bool is_taken = way.is_at_once() ? !std::ranges::all_of(objections, is_objection)
                                             : std::ranges::none_of(objections, is_objection);
      for (size_t i = 0; i < sites.size(); ++i) {
        if (objections[i]) sites[i].refused.emplace_back(way, *objections[i]);
      }
      if (is_taken) break;
    }
    for (size_t i = 0; i < sites.size(); ++i) {
      if (objections[i]) objections[i] = sites[i].refused.front().second;
    }
    return objections;
  }

  // Children that launch are no reason by themselves where one consumer might run them: then it is what
  // stands against another site that keeps it from being asked for.
  void blame_others(const std::vector<PlannedSite>& sites,
                    std::vector<std::optional<Objection>>& objections) const {
    if (!may_feed(sites.front().way) || sites.front().way.chains) return;
    if (!std::ranges::any_of(objections, [](const auto& o) { return o && !is_of_feeding(o); })) return;
    for (size_t i = 0; i < sites.size(); ++i) {
      if (!sites[i].way.feeds && is_of_feeding(objections[i])) objections[i].reset();
    }
  }

  static bool is_of_feeding(const std::optional<Objection>& objection) {
    return objection && objection->reason == Reason::ChildLaunches;
  }

  [[nodiscard]] bool may_feed(const Way& way) const {
    return request_.feeding && way.granularity == Granularity::Grid && way.launcher == Launcher::Host;
  }

  // One way, in any block that the host may launch the parent in; where that stands against it because
  // several threads may launch, in those in which they may not. If it cannot be taken, what stands against it
  // even there.
  std::vector<std::optional<Objection>> judge_in_any_block(std::vector<PlannedSite>& sites, const Way& way) {
    const auto of_threads = [](const std::optional<Objection>& o) {
      return o && (o->reason == Reason::OrderKept || o->reason == Reason::StreamUnsupported);
    };
    std::vector<std::optional<Objection>> objections = judge_all(sites, way);
    if (way.is_at_once() || !request_.blocks || std::ranges::none_of(objections, of_threads))
      return objections;
    for (const Way& of_one_thread : ways_of_one_thread(sites, way)) {
      objections = judge_all(sites, of_one_thread);
      if (std::ranges::none_of(objections, [](const auto& o) { return o.has_value(); })) break;
    }
    return objections;
  }

  // The same way in the blocks and grids in which what the parent compares may leave one thread.
  static std::vector<Way> ways_of_one_thread(const std::vector<PlannedSite>& sites, const Way& way) {
    constexpr analysis::KnownExtents kOneRow = {std::nullopt, 1, 1}, kOne = {1, 1, 1};
    Way in_row = way;
    in_row.block = analysis::tells_threads_apart(*sites.front().parent) ? kOneRow : kOne;
    if (std::ranges::none_of(
            sites, [](const PlannedSite& s) { return analysis::stream_kind(*s.site) == StreamKind::Tail; }))
      return {in_row};
    in_row.grid = kOneRow;
    Way of_block = in_row;
    of_block.grid = kOne;
    return {in_row, of_block};
  }

  std::vector<std::optional<Objection>> judge_all(std::vector<PlannedSite>& sites, const Way& way) {
    std::vector<std::optional<Objection>> objections;
    for (PlannedSite& site : sites) {
      site.way = site.options.granularity == Granularity::None ? Way{Granularity::None, Launcher::Host} : way;
      objections.push_back(judge_way(site));
    }
    judge_feeding(sites, objections);
    judge_chaining(sites, objections);
    order_.judge(sites, objections, [this](std::vector<PlannedSite>& kept) { return keep_order(kept); });
    blame_others(sites, objections);
    if (!way.is_at_once()) add_mutual_objections(sites, objections);
    return objections;
  }

  // ---- the order of a block's launches ----

  // One queue in which each launch knows the one before it; what stands against that.
  std::optional<Objection> keep_order(std::vector<PlannedSite>& sites) {
    if (!request_.feeding) {
      return Objection{Reason::OrderKept, sites.front().order.why};
    }
    for (PlannedSite& site : sites) site.way.chains = site.way.keeps_order = true;
    for (PlannedSite& site : sites) {
      if (auto objection = judge_way(site)) return not_kept(sites.front(), std::move(*objection));
    }
    if (auto objection = judge_shared_queue(sites)) return not_kept(sites.front(), std::move(*objection));
    return std::nullopt;
  }

  // What stands against the queue is the reason; that the order matters is why there has to be one.
  static Objection not_kept(const PlannedSite& site, Objection objection) {
    objection.detail += fmt::format("; the order must be kept: {}", site.order.why);
    return objection;
  }

  // A thread's launches keep their order only if all are deferred, or none.
  void add_mutual_objections(const std::vector<PlannedSite>& sites,
                             std::vector<std::optional<Objection>>& objections) {
    if (sites.size() < 2) return;
    const auto left = std::ranges::find_if(objections, [](const auto& o) { return o.has_value(); });
    std::optional<Objection> mutual;
    if (left != objections.end()) {
      const PlannedSite& site = sites[static_cast<size_t>(left - objections.begin())];
      mutual = Objection{Reason::SeveralSites,
                         fmt::format("the launch at {} is left ({})", ptx::place(site.site->position),
                                     to_string((*left)->reason))};
    } else if (!sites.front().way.chains) {
      mutual = analysis::order_sites(*sites.front().parent, order_.of(sites)).objection;
    }
    for (auto& objection : objections) {
      if (!objection) objection = mutual;
    }
  }

  // Children that launch need a consumer that feeds itself, and then all children of the parent have that
  // one: where nothing else stands against its sites.
  void judge_feeding(std::vector<PlannedSite>& sites,
                     std::vector<std::optional<Objection>>& objections) const {
    if (!may_feed(sites.front().way)) return;
    if (std::ranges::none_of(objections, is_of_feeding) ||
        std::ranges::any_of(objections, [](const auto& o) { return o && !is_of_feeding(o); }))
      return;
    const analysis::FamilyVerdict verdict = judge_family(sites);
    for (size_t i = 0; i < sites.size(); ++i) {
      if (objections[i] || verdict.family) objections[i] = verdict.objection;
      if (!verdict.family) continue;
      sites[i].way.feeds = true;
      sites[i].family = verdict.family;
      sites[i].shape = family_shape(sites, sites[i]);
    }
  }

  // Launches in loops need a queue of a size of its own, and then all launches of the parent share it: where
  // nothing else stands against them. What such a loop may hold looks like waiting to launches before it.
  void judge_chaining(std::vector<PlannedSite>& sites, std::vector<std::optional<Objection>>& objections) {
    const auto in_loop = [](const std::optional<Objection>& o) {
      return o && o->reason == Reason::SiteInLoop;
    };
    const auto other = [&](const std::optional<Objection>& o) {
      return o && !in_loop(o) && o->reason != Reason::ParentWaits;
    };
    const Way& way = sites.front().way;
    if (!request_.feeding || way.is_at_once() || way.granularity == Granularity::None) return;
    if (std::ranges::none_of(objections, in_loop) || std::ranges::any_of(objections, other)) return;
    for (size_t i = 0; i < sites.size(); ++i) {
      sites[i].way.chains = true;
      objections[i] = judge_way(sites[i]);
    }
    if (std::ranges::any_of(objections, [](const auto& o) { return o.has_value(); })) return;
    const std::optional<Objection> objection = judge_shared_queue(sites);
    if (objection) std::ranges::fill(objections, objection);
  }

  // The first objection to one queue for all sites, each of which was found right by itself; else they are
  // ready.
  std::optional<Objection> judge_shared_queue(std::vector<PlannedSite>& sites) const {
    const PlannedSite& any = sites.front();
    std::vector<const ptx::Function*> children;
    for (const PlannedSite& site : sites) {
      children.push_back(site.child);
      if (site.child_unit == any.child_unit) continue;
      return Objection{Reason::SeveralSites,
                       fmt::format("launched in and beside a loop, {} and {} are defined in different units",
                                   any.child->name, site.child->name)};
    }
    const ptx::Module& module = *plan_.units[any.child_unit]->module();
    const auto chained =
        std::make_shared<const analysis::Chained>(analysis::chain_of(*any.parent, children, any.way));
    if (auto objection = analysis::object_to_sharing_queue(module, *any.parent, *chained)) return objection;
    const bool is_1d =
        std::ranges::all_of(sites, [](const PlannedSite& s) { return grid_is_1d(*s.site, s.parent->data); });
    const transform::ConsumerShape shape = transform::chain_shape(module, *chained, is_1d);
    for (PlannedSite& site : sites) {
      site.chained = chained;
      site.shape = shape;
    }
    return std::nullopt;
  }

  // Their kernels and all that these launch must stand in one unit.
  analysis::FamilyVerdict judge_family(const std::vector<PlannedSite>& sites) const {
    const PlannedSite& any = sites.front();
    for (const PlannedSite& site : sites) {
      if (site.child_unit == any.child_unit) continue;
      return {nullptr,
              Objection{Reason::ChildLaunches, fmt::format("{} and {} are defined in different units",
                                                           any.child->name, site.child->name)}};
    }
    auto verdict = analysis::judge_family(any.parent, *plan_.units[any.child_unit]->module(), any.way);
    if (verdict.objection && any.child_unit != any.parent_unit)
      verdict.objection->detail += ", in " + plan_.units[any.child_unit]->unit().name;
    return verdict;
  }

  // How a block of a consumer that feeds itself takes items; `apart` if nobody's warps belong together.
  static void take_several(transform::ConsumerShape& shape, bool apart) {
    constexpr uint32_t kMostItems = 8, kWarp = 32;
    shape.takes = std::min(kMostItems, shape.threads());
    shape.apart = apart && shape.threads() > kWarp && shape.threads() % kWarp == 0;
  }

  static std::array<uint32_t, 3> body_block(const analysis::FedKernel& kernel) {
    std::array<uint32_t, 3> block{};
    std::ranges::transform(kernel.block, block.begin(),
                           [](const auto& extent) { return extent.value_or(transform::kOwnExtent); });
    return block;
  }

  // Of the family's consumer, seen from one of the parent's sites.
  static transform::ConsumerShape family_shape(const std::vector<PlannedSite>& sites,
                                               const PlannedSite& site) {
    const analysis::Family& family = *site.family;
    const ptx::Module& module = family.kernels.front().facts->module;
    bool is_1d =
        std::ranges::all_of(sites, [](const PlannedSite& s) { return grid_is_1d(*s.site, s.parent->data); });
    std::vector<transform::FedBody> bodies;
    uint32_t shared_bytes = 0, words = 0;
    bool shares = false, apart = true;
    for (const analysis::FedKernel& kernel : family.kernels) {
      const transform::ConsumerShape own =
          transform::consumer_shape(module, kernel.facts->function, kernel.judged_block(), is_1d, false);
      bodies.push_back({body_block(kernel), own.layout, own.may_leave});
      shared_bytes = std::max(shared_bytes, kernel.shared_bytes);
      apart = apart && own.together != analysis::Together::Blocks;
      words = std::max(words, kernel.facts->values().liveness.maximum().pressure.words);
      shares = shares || analysis::most_static_shared_bytes(module, kernel.facts->function) != 0;
      is_1d = is_1d && std::ranges::all_of(kernel.facts->sites,
                                           [&](const Site& s) { return grid_is_1d(s, kernel.facts->data); });
    }
    const analysis::FedKernel& child = family.kernels[family.number_of(site.child->name)];
    transform::ConsumerShape shape =
        transform::consumer_shape(module, *site.child, child.judged_block(), is_1d, false, true);
    shape.shared_bytes = shared_bytes;
    transform::add_bodies(shape, bodies);
    if (site.options.batch_items) take_several(shape, apart);
    // Shared memory may well leave room for fewer; and how large a block is must be known.
    if (site.options.occupancy && !shares && shared_bytes == 0 && !shape.has_own_extents())
      shape.least_blocks = transform::least_feeding_blocks(words, shape.threads());
    return shape;
  }

  // Relocatable code keeps the functions that other units might call.
  [[nodiscard]] bool is_never_called(size_t unit, const ptx::Function& f) const {
    if (f.kind == ptx::FunctionKind::Entry) return false;
    const ptx::Module& module = *plan_.units[unit]->module();
    const analysis::Callers callers = analysis::callers_of(module, f.name);
    if (!callers.calls.empty() || !callers.address_place.empty()) return false;
    // Who calls it may call a copy of it instead (transform/text/inliner.h).
    const auto is_called_copy = [&](const ptx::Function& other) {
      return other.name.starts_with(f.name + "$") && !plan_.units[unit]->is_written_out(other);
    };
    if (std::ranges::any_of(module.functions, is_called_copy)) return false;
    const auto names_it = [&](const auto& other) {
      const Unit& u = other->unit();
      if (&u == &plan_.units[unit]->unit()) return false;
      return (u.ptx.empty() ? u.cubin : u.ptx).find(f.name) != std::string::npos;
    };
    return f.linkage == ptx::Linkage::Internal || std::ranges::none_of(plan_.units, names_it);
  }

  std::optional<Objection> judge_way(PlannedSite& planned) {
    const FunctionFacts& parent = *planned.parent;
    const Site& s = *planned.site;
    if (planned.way.granularity == Granularity::None)
      return Objection{Reason::ConfigNone, "granularity none for this parent"};
    if (is_never_called(planned.parent_unit, parent.function)) {
      return Objection{Reason::NeverCalled,
                       fmt::format("no code here calls {}; it stays where all its calls were inlined",
                                   parent.function.name)};
    }
    if (auto objection = analysis::object_to_unit(parent.module, request_.debug_units)) return objection;
    if (auto objection = analysis::object_to_parent(parent, s, planned.way)) return objection;
    const ChildPlace child = find_child(plan_, s.callee, planned.parent_unit);
    if (child.function == nullptr)
      return Objection{Reason::ChildNotFound, s.callee + " is defined in no unit's PTX"};
    planned.child_unit = child.unit;
    planned.child = child.function;
    const ptx::Module& module = *plan_.units[child.unit]->module();
    auto objection = analysis::object_to_unit(module, request_.debug_units);
    if (!objection) objection = analysis::object_to_child(module, *child.function, parent, s, planned.way);
    if (!objection && planned.way.chains)
      objection = analysis::object_to_chaining(module, *child.function, parent, s, planned.way);
    if (objection) {
      // The remark stands at the parent: places in another unit must say so. Arguments are the parent's.
      if (child.unit != planned.parent_unit && objection->reason != Reason::ArgumentMismatch)
        objection->detail += ", in " + plan_.units[child.unit]->unit().name;
      return objection;
    }
    if (planned.way.is_at_once()) {
      planned.shape = transform::warp_shape(module, *child.function, grid_is_1d(s, parent.data));
      if (planned.shape.lanes > 1) return std::nullopt;
      return Objection{Reason::ParameterSpace,
                       fmt::format("two launches' arguments, {} bytes each, do not fit into the parameters "
                                   "of one",
                                   child.function->parameter_bytes)};
    }
    if (planned.way.chains) return std::nullopt;  // all sites have one shape
    planned.shape =
        transform::consumer_shape(module, *child.function, launch_sizes(parent, s, module, *child.function),
                                  grid_is_1d(s, parent.data), planned.way.launcher == Launcher::Device);
    transform::use_threads(planned.shape, planned.options.consumer_threads);
    planned.shape.awaits_parent =
        planned.way.launcher == Launcher::Host && analysis::may_start_early(module, *child.function);
    return std::nullopt;
  }

  void accept_promotion(SiteRemark& remark, const PlannedSite& planned) const {
    remark.rewritten = true;
    remark.granularity = kPromotion;
    remark.launcher = to_string(Launcher::Host);
    remark.detail = promotion_text(*planned.promotion, *planned.parent);
    const std::vector<std::string>& notes = planned.promotion->notes;
    remark.notes.insert(remark.notes.end(), notes.begin(), notes.end());
    note_target(remark, planned.parent_unit);
  }

  void accept(SiteRemark& remark, const PlannedSite& planned) {
    if (planned.promotion != nullptr) return accept_promotion(remark, planned);
    remark.rewritten = true;
    remark.granularity = to_string(planned.way.granularity);
    remark.launcher = to_string(planned.way.launcher);
    remark.group_blocks = planned.way.group_blocks;
    describe_rewritten(remark, planned, child_of(planned).moldable.yes());
    note_target(remark, planned.parent_unit);
    if (planned.child_unit != planned.parent_unit) note_target(remark, planned.child_unit);
  }

  // One child may have many launches.
  const ChildThreads& child_of(const PlannedSite& planned) {
    const analysis::DataFlow& data = planned.parent->data;
    const Site& site = *planned.site;
    const auto is_one = [&](const std::string& extent) { return data.constant(extent) == 1; };
    const bool one_row =
        std::ranges::all_of(site.grid, is_one) && is_one(site.block[1]) && is_one(site.block[2]);
    const auto [known, is_new] = children_.try_emplace({planned.child, one_row});
    if (is_new) {
      const ptx::Module& module = *plan_.units[planned.child_unit]->module();
      known->second = child_threads(module, *planned.child, one_row);
    }
    return known->second;
  }

  // What the verdict rests on that only a build can show.
  void note_target(SiteRemark& remark, size_t unit) const {
    const std::string& made_for = plan_.units[unit]->made_for();
    if (made_for.empty()) return;
    remark.notes.push_back(
        fmt::format("the PTX is for {}; it is used for sm_{} if it assembles there to the program's own code",
                    made_for, request_.sm));
  }

  Plan& plan_;
  const Request& request_;
  std::map<std::pair<const ptx::Function*, bool>, ChildThreads> children_;  // by whether they are one row
  OrderPlanner order_{plan_, request_};
};

}  // namespace

Plan make_plan(const Program& program, const Request& request, Timings* timings) {
  Timings unused;
  if (timings == nullptr) timings = &unused;
  Plan plan;
  const auto launched = std::make_shared<LaunchedKernels>();
  const ParsedUnit::Names disputed = disputed_in(program);
  for (size_t u = 0; u < program.units.size(); ++u) {
    const Unit& unit = program.units[u];
    plan.units.push_back(std::make_unique<ParsedUnit>(
        unit, request.sm, [launched]() -> const auto& { return launched->names(); }, disputed));
    if (unit.launches) launched->add(*plan.units.back());
  }
  {
    const Stopwatch watch(&timings->parse);
    for (size_t u = 0; u < plan.units.size(); ++u) {
      if (!plan.units[u]->unit().launches) continue;
      const ptx::Module* module = plan.units[u]->original();  // parsed now, used later
      if (request.dump && module != nullptr) {
        request.dump({Pass::Parse, fmt::format("unit{}.parse.txt", u), "", describe(*module)});
      }
    }
  }
  const Stopwatch watch(&timings->analyse);
  Planner planner(plan, request);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (plan.units[u]->unit().launches) planner.unit(u);
  }
  plan.memory = find_device_memory(program, request, plan);
  return plan;
}

}  // namespace klap::jit
