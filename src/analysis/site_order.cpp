#include "analysis/site_order.h"

#include <algorithm>

#include "analysis/barriers.h"

namespace klap::analysis {

namespace {

bool both_in_null_stream(const Site& a, const Site& b) {
  return stream_kind(a) == StreamKind::Null && stream_kind(b) == StreamKind::Null;
}

Finding barrier_between(const FunctionFacts& parent, const Site& a, const Site& b) {
  return barrier_between(parent, parent.flow.index_of(a.get_call), parent.flow.index_of(b.get_call));
}

bool precedes(const FunctionFacts& parent, const Site& a, const Site& b) {
  const bool a_is_tail = stream_kind(a) == StreamKind::Tail, b_is_tail = stream_kind(b) == StreamKind::Tail;
  if (a_is_tail != b_is_tail) return b_is_tail;
  if (parent.flow.can_follow(parent.flow.index_of(a.get_call), parent.flow.index_of(b.get_call))) return true;
  return both_in_null_stream(a, b) && barrier_between(parent, a, b).answer != Answer::No;
}

// Control alone never orders two sites both ways, as they stand outside loops: a barrier has part in it.
Objection no_order(const FunctionFacts& parent, const std::vector<const Site*>& sites) {
  Objection objection{Reason::BarrierBetweenLaunches, "in the NULL stream"};
  for (const Site* a : sites) {
    for (const Site* b : sites) {
      if (a == b || !both_in_null_stream(*a, *b)) continue;
      const Finding finding = barrier_between(parent, *a, *b);
      if (finding.answer != Answer::No) objection.detail = "in the NULL stream, " + finding.detail;
    }
  }
  return objection;
}

}  // namespace

SiteOrder order_sites(const FunctionFacts& parent) {
  SiteOrder out;
  std::vector<const Site*> left;
  for (const Site& site : parent.sites) left.push_back(&site);
  while (!left.empty()) {
    const auto is_first = [&](const Site* site) {
      return std::ranges::none_of(
          left, [&](const Site* other) { return other != site && precedes(parent, *other, *site); });
    };
    const auto first = std::ranges::find_if(left, is_first);
    if (first == left.end()) {
      out.objection = no_order(parent, left);
      return out;
    }
    out.sites.push_back(*first);
    left.erase(first);
  }
  return out;
}

}  // namespace klap::analysis
