#include "analysis/order/site_order.h"

#include <algorithm>

#include "analysis/facts/launch_shape.h"
#include "analysis/synchronisation/synchronisation.h"

namespace klap::analysis {

namespace {

size_t number_of(const FunctionFacts& parent, const Site& site) {
  return static_cast<size_t>(&site - parent.sites.data());
}

// Finds how threads of a block can put a launch at `a` before one at `b`, if that matters.
Finding synchronised(const FunctionFacts& parent, const Site& a, const Site& b, const LaunchOrder* launches) {
  const bool both_null = stream_kind(a) == StreamKind::Null && stream_kind(b) == StreamKind::Null;
  if (!both_null || launches == nullptr) return {Answer::No, ""};
  if (launches->of_pair(number_of(parent, a), number_of(parent, b)).order != Order::Kept)
    return {Answer::No, ""};
  return may_be_synchronised(parent, parent.flow.index_of(a.get_call), parent.flow.index_of(b.get_call));
}

bool precedes(const FunctionFacts& parent, const Site& a, const Site& b, const LaunchOrder* launches) {
  const bool a_is_tail = stream_kind(a) == StreamKind::Tail, b_is_tail = stream_kind(b) == StreamKind::Tail;
  if (a_is_tail != b_is_tail) return b_is_tail;
  if (parent.flow.can_follow(parent.flow.index_of(a.get_call), parent.flow.index_of(b.get_call))) return true;
  return synchronised(parent, a, b, launches).answer != Answer::No;
}

// Builds the rejection to two sites that come before each other. They stand outside loops, so control alone
// never orders them both ways: the threads' synchronisation takes part in it.
Rejection no_order(const FunctionFacts& parent, const std::vector<const Site*>& sites,
                   const LaunchOrder* launches) {
  Rejection rejection{Reason::OrderKept, "in the NULL stream"};
  for (const Site* a : sites) {
    for (const Site* b : sites) {
      if (a == b) continue;
      const Finding finding = synchronised(parent, *a, *b, launches);
      if (finding.answer != Answer::No) rejection.detail = "in the NULL stream, " + finding.detail;
    }
  }
  return rejection;
}

}  // namespace

SiteOrder order_sites(const FunctionFacts& parent, const LaunchOrder* launches) {
  SiteOrder out;
  std::vector<const Site*> left;
  for (const Site& site : parent.sites) left.push_back(&site);
  while (!left.empty()) {
    const auto is_first = [&](const Site* site) {
      return std::ranges::none_of(left, [&](const Site* other) {
        return other != site && precedes(parent, *other, *site, launches);
      });
    };
    const auto first = std::ranges::find_if(left, is_first);
    if (first == left.end()) {
      out.rejection = no_order(parent, left, launches);
      return out;
    }
    out.sites.push_back(*first);
    left.erase(first);
  }
  return out;
}

}  // namespace klap::analysis
