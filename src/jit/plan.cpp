#include "jit/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/values.h"
#include "jit/describe.h"
#include "ptx/dialect.h"
#include "ptx/edit.h"
#include "transform/warp.h"

namespace klap::jit {
namespace {

using analysis::FunctionFacts;
using analysis::LaunchNames;
using analysis::Objection;
using analysis::Reason;
using analysis::Site;
using analysis::StreamKind;
using analysis::Way;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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

// "NULL stream"; all of them where the stream depends on a condition.
std::string stream_text(const Site& site) {
  if (site.streams.size() != 1) return analysis::print(site.streams);
  switch (analysis::stream_kind(site)) {
    case StreamKind::Null:
      return "NULL stream";
    case StreamKind::PerThread:
      return "per-thread stream";
    case StreamKind::FireAndForget:
      return "fire-and-forget stream";
    case StreamKind::Other:
      break;
  }
  return "other stream";
}

// The module's text with another target.
std::string with_target(const ptx::Module& module, const ptx::Target& target) {
  ptx::Edits edits(module);
  for (const ptx::Item& item : module.items) {
    if (item.kind != ptx::ItemKind::Target) continue;
    edits.replace({item.tokens.first + 1, item.tokens.first + 2}, to_string(target));
  }
  return module.source.substr(0, module.tokens[0].begin) +  // lines keep their numbers
         edits.apply({0, static_cast<uint32_t>(module.tokens.size()) - 1});
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
      remark.detail = "the unit launches kernels but carries no PTX";
      plan_.remarks.push_back(std::move(remark));
      return;
    }
    const LaunchNames names = analysis::launch_names(*module);
    for (const ptx::Function& f : module->functions) {
      if (!f.is_definition || !analysis::may_launch(*module, f, names)) continue;
      auto facts = std::make_shared<FunctionFacts>(*module, f);
      for (const Site& s : facts->sites) site(index, facts, s);
    }
  }

 private:
  void site(size_t unit, const std::shared_ptr<FunctionFacts>& parent, const Site& s) {
    SiteRemark remark;
    remark.unit = plan_.units[unit]->unit().name;
    remark.parent = parent->function.name;
    remark.child = s.callee;
    remark.line = s.position.line;
    remark.column = s.position.column;
    PlannedSite planned;
    planned.parent_unit = unit;
    planned.parent = parent;
    planned.site = &s;
    const size_t index = plan_.remarks.size();
    dump(Pass::Sites, index, remark.parent, [&] {
      return describe(site_info(*parent, s)) + analysis::to_string(site_values(parent->values(), s));
    });
    if (const auto objection = judge(planned)) {
      remark.reason = to_string(objection->reason);
      remark.detail = objection->detail;
    } else {
      accept(remark, planned);
      planned.remark = index;
      plan_.sites.push_back(planned);
      dump(Pass::Plan, index, remark.parent, [&] { return describe(planned); });
    }
    dump(Pass::Legality, index, remark.parent, [&] { return describe(remark, remark.unit); });
    plan_.remarks.push_back(std::move(remark));
  }

  template <typename Text>
  void dump(Pass pass, size_t site, const std::string& kernel, const Text& text) const {
    if (request_.dump)
      request_.dump({pass, fmt::format("site{}.{}.txt", site, to_string(pass)), kernel, text()});
  }

  // The first of the wished ways that nothing stands against; otherwise what stands against the first.
  std::optional<Objection> judge(PlannedSite& planned) {
    planned.refused.clear();
    for (const Way& way : wished_ways(planned.parent->function.name)) {
      planned.way = way;
      auto objection = judge_way(planned);
      if (!objection) return std::nullopt;
      planned.refused.emplace_back(way, std::move(*objection));
    }
    return planned.refused.front().second;
  }

  std::vector<Way> wished_ways(const std::string& parent) const {
    Way way;
    if (request_.granularity) way.granularity = request_.granularity(parent);
    if (request_.launcher) way.launcher = request_.launcher(parent);
    const Way warp{Granularity::Warp, Launcher::Device};
    if (way.granularity == Granularity::Warp) return {warp};
    if (way.granularity == Granularity::Auto) return {{Granularity::Grid, way.launcher}, warp};
    return {way};
  }

  std::optional<Objection> judge_way(PlannedSite& planned) {
    const FunctionFacts& parent = *planned.parent;
    const Site& s = *planned.site;
    if (planned.way.granularity == Granularity::None)
      return Objection{Reason::ConfigNone, "granularity none for this parent"};
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
    if (objection) {
      // The remark stands at the parent: places in another unit must say so. Arguments are the parent's.
      if (child.unit != planned.parent_unit && objection->reason != Reason::ArgumentMismatch)
        objection->detail += ", in " + plan_.units[child.unit]->unit().name;
      return objection;
    }
    if (planned.way.granularity == Granularity::Warp) {
      planned.shape = transform::warp_shape(*child.function, grid_is_1d(s, parent.data));
      if (planned.shape.lanes > 1) return std::nullopt;
      return Objection{Reason::ParameterSpace,
                       fmt::format("two launches' arguments, {} bytes each, do not fit into the parameters "
                                   "of one",
                                   child.function->parameter_bytes)};
    }
    planned.shape =
        transform::consumer_shape(module, *child.function, *analysis::constant_block(s, parent),
                                  grid_is_1d(s, parent.data), planned.way.launcher == Launcher::Device);
    return std::nullopt;
  }

  void accept(SiteRemark& remark, const PlannedSite& planned) const {
    const StreamKind stream = analysis::stream_kind(*planned.site);
    remark.rewritten = true;
    remark.granularity = to_string(planned.way.granularity);
    remark.launcher = to_string(planned.way.launcher);
    remark.detail = fmt::format("{}, {}, {} argument bytes, {}", block_text(planned), how_run(planned),
                                planned.child->parameter_bytes, stream_text(*planned.site));
    if (stream == StreamKind::Null) {
      remark.notes.push_back(fmt::format(
          "launches of different threads of a {} may overlap; CUDA runs them in NULL-stream order",
          planned.way.is_at_once() ? "warp that arrive together" : "block"));
    }
    for (const auto& [way, objection] : planned.refused) {
      remark.notes.push_back(fmt::format("not over the {}: {}: {}", to_string(way.granularity),
                                         to_string(objection.reason), objection.detail));
    }
    note_target(remark, planned.parent_unit);
    if (planned.child_unit != planned.parent_unit) note_target(remark, planned.child_unit);
  }

  static std::string block_text(const PlannedSite& planned) {
    const auto block = analysis::constant_block(*planned.site, *planned.parent);
    return block ? fmt::format("block {}x{}x{}", (*block)[0], (*block)[1], (*block)[2]) : "block of any size";
  }

  static std::string how_run(const PlannedSite& planned) {
    if (planned.way.granularity == Granularity::Warp)
      return fmt::format("one launch for up to {} lanes", planned.shape.lanes);
    if (planned.way.launcher == Launcher::Device) return "an exact grid launched by the parent's last thread";
    return fmt::format("{} to a consumer block", planned.shape.pack);
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
};

}  // namespace

const ptx::Module* ParsedUnit::module() {
  if (module_ || unit_.ptx.empty()) return module_ ? &*module_ : nullptr;
  module_ = ptx::parse(unit_.ptx, unit_.name);
  const auto target = ptx::parse_target(module_->target);
  if (target && !ptx::runs_on(*target, sm_)) {
    made_for_ = module_->target;
    module_ = ptx::parse(with_target(*module_, {std::min(target->arch, sm_), '\0'}), unit_.name);
  }
  return &*module_;
}

Plan make_plan(const Program& program, const Request& request, Timings* timings) {
  Timings unused;
  if (timings == nullptr) timings = &unused;
  Plan plan;
  for (const Unit& unit : program.units) plan.units.push_back(std::make_unique<ParsedUnit>(unit, request.sm));
  {
    const Stopwatch watch(&timings->parse);
    for (size_t u = 0; u < plan.units.size(); ++u) {
      if (!plan.units[u]->unit().launches) continue;
      const ptx::Module* module = plan.units[u]->module();  // parsed now, used later
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
  return plan;
}

void leave(Plan& plan, const PlannedSite& site, Reason reason, const std::string& detail) {
  SiteRemark& remark = plan.remarks[site.remark];
  remark.rewritten = false;
  remark.granularity.clear();
  remark.launcher.clear();
  remark.notes.clear();
  remark.reason = to_string(reason);
  remark.detail = detail;
}

Stopwatch::Stopwatch(double* milliseconds) : milliseconds_(milliseconds), start_(now_ms()) {}
Stopwatch::~Stopwatch() { *milliseconds_ += now_ms() - start_; }

}  // namespace klap::jit
