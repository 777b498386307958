// Unrolling: several iterations of a child's loop that only loads and computes stand one after another, so
// that a thread waits for their loads together (analysis/optimise/straight_loops.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jit/optimise/optimisations.h"
#include "settings/values.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  return at.is_on("unroll") && at.strategy().has_plain_host_consumer();
}

// The unroll factor that is asked for; nothing for one that suits.
std::optional<uint32_t> factor(const PlannedSite& site) {
  const std::string& asked = site.options.optimisations.value("unroll");
  return asked == "auto" ? std::nullopt : parse_number(asked, 1, settings::kMostThreads);
}

void apply(SiteToOptimise& at) {
  transform::unroll(at.site.shape, analysis::find_straight_loops(at.child_module(), *at.site.child),
                    factor(at.site));
}

// Says how often each loop is unrolled.
OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  if (site.shape.loops.empty()) return out;
  std::vector<uint32_t> factors;
  for (const transform::UnrolledCopy& row : site.shape.loops) factors.push_back(row.iterations);
  out.fact = fmt::format("{} unrolled {} times", factors.size() == 1 ? "a loop" : "loops",
                         fmt::join(factors, " and "));
  return out;
}

}  // namespace

const Optimisation kUnroll{"unroll", applies, apply, remark};

}  // namespace klap::jit
