#include "analysis/legality/executed_streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/stream_order.h"
#include "analysis/launches/retry.h"

namespace klap::analysis {

ExecutedStream executed_stream(const FunctionFacts& kernel, const Site& site) {
  switch (stream_kind(site)) {
    case StreamKind::Tail:
      return ExecutedStream::Tail;
    case StreamKind::FireAndForget:
      return ExecutedStream::None;
    case StreamKind::Private:
    case StreamKind::PerThread:
      return has_order_within_thread(kernel, site) ? ExecutedStream::Thread : ExecutedStream::None;
    case StreamKind::Null:
      return ExecutedStream::Block;
    case StreamKind::Other:
      break;
  }
  return ExecutedStream::Handle;
}

ExecutedStream null_stream(const Site& site) {
  return site.idiom->stream_zero_is_per_thread ? ExecutedStream::Thread : ExecutedStream::Block;
}

bool is_executed_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(kernel.private_streams.all,
                             [&](const StreamCall& call) { return call.call == &statement; });
}

std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site) {
  // Threads that wait for room may be all that could make room.
  const std::string place =
      error_branch_place({kernel.module, kernel.function, kernel.flow, kernel.data}, site);
  if (place.empty() || !kernel.flow.in_loop(kernel.flow.index_of(site.get_call))) return std::nullopt;
  return Rejection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

}  // namespace klap::analysis
