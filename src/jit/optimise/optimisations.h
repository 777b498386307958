// The optimisations of a site, as the rows of one table.
//
// A site that will be rewritten passes through the rows in order. Each row asks whether it applies: whether
// the settings want it, and whether the strategy has what it changes. Then its analysis decides, and it fills
// its part of the plan: fields of the consumer's shape, of the record's layout, or a note why not. Last, it
// says for the remark what became of it. Every row has the name of its setting and a file of that name, so a
// new optimisation is one file and one line in optimisations.def.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/planned/child_facts.h"
#include "jit/planned/planned.h"
#include "jit/strategy/strategy_of.h"

namespace klap::jit {

struct SiteToOptimise {
  const Plan& plan;
  const Request& request;
  PlannedSite& site;
  const ChildThreads& child;
  // Whether a child that its launching thread runs itself cannot overtake a recorded one.
  std::function<bool()> may_run_in_place;

  // The unit's module in which the child is defined.
  [[nodiscard]] const ptx::Module& child_module() const { return *plan.units[site.child_unit]->module(); }
  [[nodiscard]] const Strategy& strategy() const { return strategy_of(site); }
  // Whether the settings want an optimisation, by the name of its row in the table of settings.
  [[nodiscard]] bool is_on(std::string_view name) const { return site.options.optimisations.is_on(name); }
  // The child's block has one row.
  [[nodiscard]] bool has_one_row() const;
};

// The text of an optimisation in the remark of a site that is rewritten. Empty parts are left out.
struct OptimisationRemark {
  std::string_view name;  // of its row, which optimisation_remarks() fills
  std::string run;        // how children are run, in place of the strategy's own text
  std::string fact;       // stands behind that
  std::string arguments;  // stands behind what is known of the child's arguments
  std::string note;       // why it was not done, where it might have been
};

struct Optimisation {
  std::string_view name;  // of its setting
  bool (*applies)(const SiteToOptimise& at);
  void (*apply)(SiteToOptimise& at);
  OptimisationRemark (*remark)(const PlannedSite& site);  // null for one that says nothing
};

#define KLAP_OPTIMISATION(name) extern const Optimisation name;
#include "jit/optimise/optimisations.def"
#undef KLAP_OPTIMISATION

// All rows, in the order in which they are tried.
std::span<const Optimisation> optimisations();
void optimise(SiteToOptimise& at);

// The remarks of all rows, in their order.
std::vector<OptimisationRemark> optimisation_remarks(const PlannedSite& site);

}  // namespace klap::jit
