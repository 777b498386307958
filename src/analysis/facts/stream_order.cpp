#include "analysis/facts/stream_order.h"

#include <algorithm>

#include "analysis/facts/stream_ownership.h"
#include "analysis/launches/event_calls.h"

namespace klap::analysis {
namespace {

constexpr uint64_t kPerThreadStream = 2, kFireAndForgetStream = 4;

bool uses_streams_otherwise(const FunctionFacts& kernel) {
  return !kernel.copies.empty() || may_use_events(kernel.module);
}

}  // namespace

bool is_private_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(kernel.private_streams.calls,
                             [&](const StreamCall& call) { return call.call == &statement; });
}

bool may_be_ordered_within_thread(const FunctionFacts& kernel, const Site& first, const Site& second) {
  if (!first.understood() || !second.understood() || kernel.flow.has_unknown_branch()) return true;
  const StreamKind a = stream_kind(first), b = stream_kind(second);
  if (a == StreamKind::FireAndForget || b == StreamKind::FireAndForget) return false;
  if ((a == StreamKind::Private) != (b == StreamKind::Private)) return false;
  const uint32_t from = kernel.flow.index_of(first.launch_call);
  if (!kernel.flow.can_follow(from, kernel.flow.index_of(second.launch_call))) return false;
  if (a != StreamKind::Private) return true;
  return !is_created_after(kernel, from, second) && !are_different_streams(kernel, first, second);
}

bool has_order_within_thread(const FunctionFacts& kernel, const Site& site) {
  if (stream_kind(site) == StreamKind::FireAndForget) return false;
  return uses_streams_otherwise(kernel) || std::ranges::any_of(kernel.sites, [&](const Site& other) {
           return may_be_ordered_within_thread(kernel, site, other) ||
                  may_be_ordered_within_thread(kernel, other, site);
         });
}

uint64_t private_stream_stand_in(const FunctionFacts& kernel) {
  const bool is_ordered =
      uses_streams_otherwise(kernel) || std::ranges::any_of(kernel.sites, [&](const Site& site) {
        return stream_kind(site) == StreamKind::Private && has_order_within_thread(kernel, site);
      });
  return is_ordered ? kPerThreadStream : kFireAndForgetStream;
}

}  // namespace klap::analysis
