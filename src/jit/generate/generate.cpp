#include "jit/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/optimise/early_start.h"
#include "jit/strategy/strategy_of.h"
#include "support/demangle.h"
#include "support/error.h"

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
    const PlannedSite& any = sites.front();
    const Strategy& strategy = strategy_of(any);
    std::vector<SiteTemplates> templates;
    {
      const Stopwatch watch(&timings_.templates);
      for (const PlannedSite& site : sites) templates.push_back(strategy.templates(site, sites.size() > 1));
    }
    const Stopwatch watch(&timings_.transform);
    std::vector<std::pair<size_t, Generated>> consumers;  // by unit
    std::map<std::string, MadeFrom> made;
    for (size_t i = 0; i < sites.size(); ++i) {
      const PlannedSite& site = sites[i];
      includes(strategy, site, templates[i]);
      const std::string name = strategy.consumer_name(plan_, site);
      if (name.empty() || is_made(name, templates[i], made)) continue;
      transform::LineTables& lines = code(site.child_unit).lines;
      consumers.emplace_back(site.child_unit, strategy.consumer(plan_, site, templates[i], name, lines));
    }
    Generated parent = strategy.parent({plan_, sites, templates}, strategy.parent_name(plan_, any),
                                       code(any.parent_unit).lines);
    Variant variant = strategy.variant(plan_, sites, parent.name);
    variant.consumers_await = await(sites, templates, parent);
    out_.variants.push_back(std::move(variant));
    consumers_.merge(made);
    for (auto& [unit, consumer] : consumers) code(unit).kernels.push_back(std::move(consumer));
    code(any.parent_unit).kernels.push_back(std::move(parent));
    for (const PlannedSite& site : sites) {
      for (const size_t unit : {site.child_unit, site.parent_unit}) note_losses(site, code(unit).lines);
    }
  }

  GeneratedUnits take() { return std::move(out_); }

 private:
  // The templates of a consumer. They have all that its shape decides as constants, and are compiled once.
  using MadeFrom = std::pair<const ptx::Module*, const ptx::Module*>;

  // True if there is a consumer of that name already; else it is noted in `made`. Another consumer that had
  // the same name would run its children in this one.
  bool is_made(const std::string& name, const SiteTemplates& templates,
               std::map<std::string, MadeFrom>& made) const {
    const MadeFrom from = {templates.kernel.get(), templates.join.get()};
    const auto earlier = consumers_.find(name);
    const auto [found, is_new] = made.emplace(name, earlier == consumers_.end() ? from : earlier->second);
    if (found->second != from)
      throw Error(ErrorCode::Internal, "two consumers of different forms have one name").kernel(name);
    return earlier != consumers_.end() || !is_new;
  }

  void includes(const Strategy& strategy, const PlannedSite& site, const SiteTemplates& templates) {
    code(site.child_unit).includes(*templates.kernel);
    code(site.parent_unit).includes(*templates.site);
    if (templates.launch) code(site.parent_unit).includes(*templates.launch);
    if (strategy.children_launch()) code(site.child_unit).includes(*templates.site);
  }

  // Whether all consumers begin with a wait, and neither they nor the parent launch kernels. It is asked of
  // what was generated: whoever launches on this trusts in it. (What children launch is in
  // ConsumerShape::awaits_parent.)
  [[nodiscard]] bool await(std::span<const PlannedSite> sites, const std::vector<SiteTemplates>& templates,
                           const Generated& parent) const {
    const PlannedSite& any = sites.front();
    if (!std::ranges::all_of(sites, [](const PlannedSite& s) { return s.shape.awaits_parent; })) return false;
    if (parent.text.find(kLaunchCall) != std::string::npos) return false;
    if (!analysis::may_be_overtaken(*plan_.units[any.parent_unit]->module(), any.parent->function))
      return false;
    return std::ranges::all_of(templates, [](const SiteTemplates& made) {
      return made.kernel->source.find(kWait) != std::string::npos;
    });
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

  Plan& plan_;
  Timings& timings_;
  GeneratedUnits out_;
  std::map<std::string, MadeFrom> consumers_;
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
      reject(plan, of_parent,
             parameter_use ? analysis::Reason::ChildParameterUse : analysis::Reason::BuildFailed,
             error.what());
    }
  }
  GeneratedUnits generated = generator.take();
  if (dump) dump_generated(dump, generated);
  return generated;
}

}  // namespace klap::jit
