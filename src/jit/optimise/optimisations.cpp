#include "jit/optimise/optimisations.h"

#include <array>

#include "ptx/argument_words.h"

namespace klap::jit {

bool SiteToOptimise::has_one_row() const {
  const analysis::DataFlow& data = site.parent->data;
  return data.constant(site.site->block[1]) == 1 && data.constant(site.site->block[2]) == 1;
}

std::span<const Optimisation> optimisations() {
#define KLAP_OPTIMISATION(name) name,
  static const std::array kOptimisations = {
#include "jit/optimise/optimisations.def"
  };
#undef KLAP_OPTIMISATION
  return kOptimisations;
}

void optimise(SiteToOptimise& at) {
  for (const Optimisation& optimisation : optimisations()) {
    if (optimisation.applies(at)) optimisation.apply(at);
  }
}

std::vector<OptimisationRemark> optimisation_remarks(const PlannedSite& site) {
  std::vector<OptimisationRemark> remarks;
  for (const Optimisation& optimisation : optimisations()) {
    if (optimisation.remark == nullptr) continue;
    OptimisationRemark& remark = remarks.emplace_back(optimisation.remark(site));
    remark.name = optimisation.name;
    // All of them are about the child.
    for (std::string* const text : {&remark.run, &remark.fact, &remark.arguments, &remark.note})
      *text = ptx::in_cuda_words(*text, *site.child);
  }
  return remarks;
}

}  // namespace klap::jit
