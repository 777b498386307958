#include "analysis/legality/executed_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
      // A copy may go into the thread's stream as well.
      return has_order_within_thread(kernel, site) || !kernel.copies.empty() ? ExecutedStream::Thread
                                                                             : ExecutedStream::None;
    case StreamKind::Null:
      return ExecutedStream::Block;
    case StreamKind::Other:
      break;
  }
  return ExecutedStream::Handle;
}

ExecutedStream executed_stream(const FunctionFacts& kernel, const CopyCall& copy) {
  // The handles of cudaStreamLegacy, cudaStreamPerThread and so on.
  constexpr std::array kByHandle = {ExecutedStream::Block, ExecutedStream::Block, ExecutedStream::Thread,
                                    ExecutedStream::Tail, ExecutedStream::None};
  const auto handle = kernel.data.constant(copy.stream);
  if (handle == uint64_t{0}) return null_stream(copy);
  return handle && *handle < kByHandle.size() ? kByHandle.at(*handle) : ExecutedStream::Handle;
}

ExecutedStream null_stream(const CopyCall& copy) {
  return copy.stream_zero_is_per_thread ? ExecutedStream::Thread : ExecutedStream::Block;
}

ExecutedStream null_stream(const Site& site) {
  return site.idiom->stream_zero_is_per_thread ? ExecutedStream::Thread : ExecutedStream::Block;
}

bool is_executed_stream_call(const FunctionFacts& kernel, const ptx::Statement& statement) {
  return std::ranges::any_of(kernel.private_streams.all,
                             [&](const StreamCall& call) { return call.call == &statement; });
}

namespace {

// Threads that wait for room may be all that could make room.
std::optional<Rejection> check_waiting_for_room(const FunctionFacts& kernel, const ptx::Statement* call,
                                                const std::string& place) {
  if (place.empty() || !kernel.flow.in_loop(kernel.flow.index_of(call))) return std::nullopt;
  return Rejection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

}  // namespace

std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site) {
  const OriginQuery query{kernel.module, kernel.function, kernel.flow, kernel.data};
  return check_waiting_for_room(kernel, site.get_call, error_branch_place(query, site));
}

std::optional<Rejection> check_executed_copies(const FunctionFacts& kernel) {
  const OriginQuery query{kernel.module, kernel.function, kernel.flow, kernel.data};
  for (const CopyCall& copy : kernel.copies) {
    if (auto found = check_waiting_for_room(kernel, copy.call, error_branch_place(query, *copy.call)))
      return found;
  }
  return std::nullopt;
}

}  // namespace klap::analysis
