// This file finds the order in which the launches of several sites are carried out once they are deferred.
//
// A parent with several launch sites records into one queue for each, and the records run queue by queue.
// That keeps every promise if the queues come in the right order. A thread's launches into one stream run one
// after another, so a site comes before the sites that control can reach from it. Threads of a block can put
// a launch of one site before a launch of another by synchronising. The NULL stream of the block then
// promises that order between threads, unless the children may run in any order. Launches into the
// tail-launch stream come behind all others. No order is right if two sites come before each other. An order
// that is not promised does no harm.
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
  std::optional<Rejection> rejection;
};
// `launches` says which pairs of launches may run in any order. With null, all launches by different threads
// may.
SiteOrder order_sites(const FunctionFacts& parent, const LaunchOrder* launches);

}  // namespace klap::analysis
