// In which order the launches of several sites are to be carried out once they are deferred.
//
// A parent with several launch sites records into one queue for each, and what was recorded is run queue by
// queue. That keeps every promise if the queues come in the right order: a thread's launches into one stream
// run one after another, so a site comes before those that control can reach from it; and where threads of a
// block can put a launch of one site before a launch of another by synchronising, the NULL stream of the
// block promises the same between threads, unless the children may run in any order. What goes into the
// tail-launch stream comes behind all else. No order is right where two sites come before each other. Order
// that nobody promised does no harm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/order/launch_order.h"

namespace klap::analysis {

// The kernel's sites in an order that keeps all promises, or the reason why there is none. All sites must be
// understood and stand outside loops.
struct SiteOrder {
  std::vector<const Site*> sites;
  std::optional<Objection> objection;
};
// `launches` says which pairs of launches may run in any order; null: all that different threads make.
SiteOrder order_sites(const FunctionFacts& parent, const LaunchOrder* launches);

}  // namespace klap::analysis
