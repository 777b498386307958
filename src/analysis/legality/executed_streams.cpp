#include "analysis/legality/executed_streams.h"

#include <fmt/format.h>

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
    case StreamKind::Other:
      break;
  }
  return ExecutedStream::Block;
}

std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site) {
  if (stream_kind(site) == StreamKind::Other)
    return Rejection{Reason::StreamUnsupported, "the stream is " + print(site.streams)};
  // Threads that wait for room may be all that could make room.
  const std::string place =
      error_branch_place({kernel.module, kernel.function, kernel.flow, kernel.data}, site);
  if (place.empty() || !kernel.flow.in_loop(kernel.flow.index_of(site.get_call))) return std::nullopt;
  return Rejection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

}  // namespace klap::analysis
