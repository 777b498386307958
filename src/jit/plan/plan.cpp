#include "jit/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/launches/calls.h"
#include "analysis/legality/slicing.h"
#include "analysis/legality/unit_checks.h"
#include "analysis/values/values.h"
#include "jit/data/form_model.h"
#include "jit/optimise/optimisations.h"
#include "jit/plan/describe.h"
#include "jit/plan/find_site_options.h"
#include "jit/plan/fused_plan.h"
#include "jit/plan/judge.h"
#include "jit/plan/remark_text.h"
#include "jit/plan/remark_words.h"
#include "jit/planned/child_facts.h"
#include "jit/strategy/promotion_plan.h"
#include "jit/strategy/strategy_of.h"
#include "ptx/dialect.h"

namespace klap::jit {
namespace {

using analysis::FunctionFacts;
using analysis::LaunchNames;
using analysis::Reason;
using analysis::Rejection;
using analysis::Site;

class Planner {
 public:
  Planner(Plan& plan, const Request& request) : plan_(plan), request_(request) {}

  void unit(size_t index) {
    const ptx::Module* module = plan_.units[index]->module();
    if (module == nullptr) {
      SiteRemark remark;
      remark.unit = plan_.units[index]->unit().name;
      remark.reason = to_string(Reason::ChildNotFound);
      remark.detail = plan_.units[index]->unit().without_code;
      if (remark.detail.empty()) {
        remark.detail = fmt::format(
            "the unit launches kernels but carries no PTX, only machine code; build it with PTX, as by nvcc "
            "-gencode arch=compute_{0},code=compute_{0}",
            request_.sm);
      }
      plan_.remarks.push_back(std::move(remark));
      return;
    }
    dump_inlined(index);
    const LaunchNames names = analysis::launch_names(*module);
    for (const ptx::Function& f : module->functions) {
      if (!f.is_definition || !analysis::may_launch(*module, f, names)) continue;
      // Its launches are those of the kernels that call it.
      if (plan_.units[index]->is_expanded(f)) continue;
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
    judge_.forget_parent();
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
    const std::vector<std::optional<Rejection>> rejections =
        judge_.judge(planned, aggregations_asked_for(request_, options));
    const bool rewritten = !std::ranges::all_of(rejections, [](const auto& o) { return o.has_value(); });
    if (rewritten && request_.slicing) find_slices(planned);
    if (rewritten) keep_launches(planned);
    const std::vector<PlannedSite> judged = planned;
    optimise_sites(planned, rejections);
    for (PlannedSite& site : planned) site.also_in_blocks = rewritten && may_run_in_blocks(planned);
    for (size_t i = 0; i < planned.size(); ++i) add_remark(planned[i], rejections[i]);
    if (!rewritten) return;
    add_in_queue_order(planned, rejections);
    if (planned.front().also_in_blocks) add_in_blocks(judged, rejections);
    if (request_.fusing && planned.front().options.fused) add_fused(judged, rejections, false);
    if (request_.fusing && may_be_fused_where_few(planned)) add_fused(judged, rejections, true);
    keep_order_otherwise(planned);
  }

  using Rejections = std::vector<std::optional<Rejection>>;

  void optimise_sites(std::vector<PlannedSite>& sites, const Rejections& rejections) {
    for (size_t i = 0; i < sites.size(); ++i) {
      if (rejections[i]) continue;
      SiteToOptimise site{plan_, request_, sites[i], child_of(sites[i]),
                          [&] { return may_run_in_place(sites, sites[i]); }};
      optimise(site);
    }
    add_conditions_of_parts(sites);
  }

  // The sites that are rewritten, in the order in which their queues are run.
  std::vector<PlannedSite> in_queue_order(const std::vector<PlannedSite>& sites,
                                          const Rejections& rejections) {
    std::vector<PlannedSite> in_order;
    for (const Site* s : judge_.queue_order(sites)) {
      const auto site = std::ranges::find(sites, s, &PlannedSite::site);
      if (!rejections[static_cast<size_t>(site - sites.begin())]) in_order.push_back(*site);
    }
    return in_order;
  }

  void add_in_queue_order(const std::vector<PlannedSite>& sites, const Rejections& rejections) {
    std::ranges::move(in_queue_order(sites, rejections), std::back_inserter(plan_.sites));
  }

  // Whether children that run thread by thread may also run in their blocks, in a variant of their own. A
  // size that the recording thread has changed is not the program's. So it is left at that one.
  [[nodiscard]] bool may_run_in_blocks(const std::vector<PlannedSite>& sites) const {
    const auto is_flat = [](const PlannedSite& s) { return s.shape.flat.has_value(); };
    const auto may = [](const PlannedSite& s) {
      return s.shape.flat->bound && s.shape.split() == nullptr && !s.shape.blocks_differ() &&
             s.shape.child_threads() <= kMostThreadsInBlocks &&
             s.shape.child_threads() % kThreadsOfAWarp == 0 &&
             s.options.optimisations.value("flatten") == "auto";
    };
    return request_.by_sizes && std::ranges::any_of(sites, is_flat) &&
           std::ranges::all_of(sites, [&](const PlannedSite& s) { return !is_flat(s) || may(s); });
  }

  // Adds a variant whose children run in their blocks. It rests on the same verdicts as the first one: these
  // are about launches, and not about which threads run them. Parts of ranges would need conditions of their
  // own. So it is right for the same launches.
  void add_in_blocks(std::vector<PlannedSite> sites, const Rejections& rejections) {
    const std::shared_ptr<FunctionFacts> facts = own_facts(sites.front());
    for (PlannedSite& site : sites) {
      use_facts(site, facts);
      site.in_blocks = true;
      for (const char* const other : {"flatten", "split_ranges"})
        site.options.optimisations.set(other, "off");
    }
    optimise_sites(sites, rejections);
    add_in_queue_order(sites, rejections);
  }

  // Whether a variant that is its own consumer may gain something: launches of so little code are short, and
  // do not take long to compile.
  [[nodiscard]] bool may_be_fused_where_few(const std::vector<PlannedSite>& sites) const {
    constexpr size_t kMostTokens = 6000;
    const PlannedSite& any = sites.front();
    size_t tokens = any.parent->function.tokens.size();
    for (const PlannedSite& site : sites) tokens += site.child == nullptr ? 0 : site.child->tokens.size();
    return request_.by_sizes && !any.options.fused && any.options.launcher == analysis::Launcher::Auto &&
           strategy_of(any).has_plain_host_consumer() && tokens <= kMostTokens;
  }

  // Adds a variant that runs the children in its own kernel. It rests on the verdicts of the first one, too.
  // A setting that asks for it is told why there is none.
  void add_fused(std::vector<PlannedSite> sites, const Rejections& rejections, bool where_few) {
    const std::shared_ptr<FunctionFacts> facts = own_facts(sites.front());
    for (PlannedSite& site : sites) {
      use_facts(site, facts);
      fuse(site);
      site.where_few = where_few;
    }
    std::optional<std::string> why_not = why_not_fused(request_, sites);
    std::vector<PlannedSite> in_order;
    if (!why_not) {
      optimise_sites(sites, rejections);
      in_order = in_queue_order(sites, rejections);
      why_not = why_not_in_order(in_order);
    }
    for (const PlannedSite& site : sites) {
      SiteRemark& remark = plan_.remarks[site.remark];
      if (remark.rewritten && !(where_few && why_not))
        remark.notes.push_back(words_of(site).of(fused_note(in_order, why_not), remark));
    }
    if (!why_not) std::ranges::copy(in_order, std::back_inserter(plan_.sites));
  }

  // Facts of its own tell a variant's sites from those of the parent's first one.
  static std::shared_ptr<FunctionFacts> own_facts(const PlannedSite& any) {
    return std::make_shared<FunctionFacts>(any.parent->module, any.parent->function);
  }
  static void use_facts(PlannedSite& site, const std::shared_ptr<FunctionFacts>& facts) {
    site.site = &facts->sites[static_cast<size_t>(site.site - site.parent->sites.data())];
    site.parent = facts;
  }

  // Children that run as parts need conditions on the launch of the parent, which all of its sites share.
  static void add_conditions_of_parts(std::vector<PlannedSite>& sites) {
    analysis::OrderConditions conditions;
    for (const PlannedSite& site : sites) {
      if (site.shape.range) conditions.add(site.shape.range->conditions);
    }
    for (PlannedSite& site : sites) site.order.conditions.add(conditions);
  }

  // Where launches may overlap on conditions only, a second variant keeps their order where these do not
  // hold.
  void keep_order_otherwise(const std::vector<PlannedSite>& first) {
    const PlannedSite& any = first.front();
    if (!has_conditions(any)) return;
    const bool may_have_second = request_.blocks && strategy_of(any).may_have_second_variant();
    std::vector<PlannedSite> second = may_have_second ? second_variant(first) : std::vector<PlannedSite>();
    const char* const otherwise = second.empty() ? "the original runs" : "the order is kept";
    for (const PlannedSite& site : first)
      plan_.remarks[site.remark].notes.push_back(fmt::format("where that does not hold, {}", otherwise));
    std::ranges::move(second, std::back_inserter(plan_.sites));
  }

  // The sites of a variant that keeps the order; none where that cannot be made.
  std::vector<PlannedSite> second_variant(const std::vector<PlannedSite>& first) {
    const PlannedSite& any = first.front();
    const std::shared_ptr<FunctionFacts> facts = own_facts(any);
    std::vector<PlannedSite> second;
    for (const PlannedSite& site : first) {
      PlannedSite& planned = second.emplace_back();
      planned.remark = site.remark;
      planned.parent_unit = site.parent_unit;
      planned.parent = site.parent;
      planned.site = site.site;
      use_facts(planned, facts);
      planned.options = site.options;
      planned.aggregation = site.aggregation;
      planned.aggregation.block = planned.aggregation.grid = {};
      planned.child = site.child;
      planned.child_unit = site.child_unit;
      planned.is_second = true;
      planned.order = {analysis::Order::Kept, site.order.why, {}};
    }
    if (judge_.keep_order(second)) second.clear();
    return second;
  }

  static bool has_conditions(const PlannedSite& site) {
    const analysis::OrderConditions& conditions = site.order.conditions;
    const bool of_sizes =
        std::ranges::any_of(site.aggregation.block, [](const auto& e) { return e.has_value(); }) ||
        std::ranges::any_of(site.aggregation.grid, [](const auto& e) { return e.has_value(); });
    return of_sizes || conditions.several_blocks || !conditions.apart.empty();
  }

  // A chain of launches that can be promoted is not aggregated. Where it cannot, a note says why.
  bool promote(std::vector<PlannedSite>& sites) {
    PlannedSite& site = sites.front();
    const SiteOptions& options = site.options;
    if (!request_.promoting || !launches_itself(*site.parent)) return false;
    if (options.promotion == "none" || options.granularity == Granularity::None) return false;
    if (analysis::check_unit(site.parent->module, request_.debug_units)) return false;
    PromotionVerdict verdict = plan_promotion(*site.parent, options, request_.sm);
    if (!verdict.promotion) {
      site.options.notes.push_back(fmt::format("not promoted: {}: {}", to_string(verdict.rejection->reason),
                                               verdict.rejection->detail));
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
    if (!strategy_of(any).has_queue_per_site()) return;
    const auto whole = analysis::check_slices(*any.parent);
    for (PlannedSite& site : sites) {
      site.in_slices = !whole;
      site.whole = whole.value_or("");
    }
  }

  // One site whose sizes differ decides for all: then the device runtime keeps the last error.
  static void keep_launches(std::vector<PlannedSite>& sites) {
    if (strategy_of(sites.front()).is_immediate()) return;
    const bool any =
        std::ranges::any_of(sites, [](const PlannedSite& s) { return s.shape.sizes.has_value(); });
    for (PlannedSite& site : sites) site.keeps_launches = any;
  }

  // Queues of several sites keep an order by being run one after another. So a child that is run in place is
  // early unless its queue is the first one.
  bool may_run_in_place(const std::vector<PlannedSite>& all, const PlannedSite& planned) {
    if (planned.aggregation.ordering == analysis::Ordering::Relaxed) return true;
    if (planned.order.order == analysis::Order::Kept) return false;
    return judge_.queue_order(all).front() == planned.site;
  }

  void add_remark(const PlannedSite& planned, const std::optional<Rejection>& rejection) {
    SiteRemark remark;
    remark.unit = plan_.units[planned.parent_unit]->unit().name;
    remark.parent = planned.parent->function.name;
    remark.child = planned.site->callee;
    remark.line = planned.site->position.line;
    remark.column = planned.site->position.column;
    remark.notes = planned.options.notes;
    note_function(remark, planned);
    if (rejection) {
      remark.reason = to_string(rejection->reason);
      remark.detail = rejection->detail;
      note_other_aggregations(remark, planned);
    } else {
      accept(remark, planned);
      dump(Pass::Plan, planned.remark, remark.parent, [&] { return describe(planned); });
    }
    words_of(planned).put_into(remark);
    dump(Pass::Legality, planned.remark, remark.parent,
         [&] { return describe(remark, remark.unit, Verbosity::Facts); });
    plan_.remarks.push_back(std::move(remark));
  }

  [[nodiscard]] SourceWords words_of(const PlannedSite& planned) const {
    const bool is_one_unit = planned.child == nullptr || planned.child_unit == planned.parent_unit;
    return {plan_.units[planned.parent_unit]->source_lines(), is_one_unit};
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

  void accept(SiteRemark& remark, const PlannedSite& planned) {
    remark.rewritten = true;
    remark.granularity = strategy_of(planned).granularity(planned);
    remark.launcher = to_string(planned.aggregation.launcher);
    remark.group_blocks = planned.aggregation.group_blocks;
    describe_rewritten(remark, planned, [&] { return child_of(planned).moldable.yes(); });
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

  // Notes that the verdict rests on something that only a build can show.
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
  SiteJudge judge_{plan_, request_};
};

}  // namespace

Plan load_units(const Program& program, const Request& request, Timings& timings) {
  Plan plan;
  const auto launched = std::make_shared<LaunchedKernels>();
  const ParsedUnit::Names disputed = disputed_in(program);
  for (const Unit& unit : program.units) {
    plan.units.push_back(std::make_unique<ParsedUnit>(
        unit, request.sm, [launched]() -> const auto& { return launched->names(); }, disputed));
    if (unit.launches) launched->add(*plan.units.back());
  }
  const Stopwatch watch(&timings.parse);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (!plan.units[u]->unit().launches) continue;
    const ptx::Module* module = plan.units[u]->original();  // parsed now, used later
    if (request.dump && module != nullptr)
      request.dump({Pass::Parse, fmt::format("unit{}.parse.txt", u), "", describe(*module)});
  }
  return plan;
}

void plan_sites(Plan& plan, const Request& request, Timings& timings) {
  const Stopwatch watch(&timings.analyse);
  Planner planner(plan, request);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (plan.units[u]->unit().launches) planner.unit(u);
  }
}

}  // namespace klap::jit
