#include "analysis/executed/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/effects/waiting_for_room.h"
#include "analysis/executed/calls.h"
#include "analysis/facts/stream_order.h"
#include "analysis/suspension/second_half.h"

namespace klap::analysis {

ExecutedStream executed_stream(const FunctionFacts& kernel, const Site& site) {
  switch (stream_kind(site)) {
    case StreamKind::Tail:
      return is_second_half(site.callee) ? ExecutedStream::SecondHalf : ExecutedStream::Tail;
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

namespace {

template <class Call>
ExecutedStream stream_by_handle(const FunctionFacts& kernel, const Call& call) {
  // The handles of cudaStreamLegacy, cudaStreamPerThread and so on.
  constexpr std::array kByHandle = {ExecutedStream::Block, ExecutedStream::Block, ExecutedStream::Thread,
                                    ExecutedStream::Tail, ExecutedStream::None};
  const auto handle = kernel.data.constant(call.stream);
  if (handle == uint64_t{0}) return null_stream(call);
  return handle && *handle < kByHandle.size() ? kByHandle.at(*handle) : ExecutedStream::Handle;
}

}  // namespace

ExecutedStream executed_stream(const FunctionFacts& kernel, const CopyCall& copy) {
  return stream_by_handle(kernel, copy);
}

ExecutedStream executed_stream(const FunctionFacts& kernel, const EventCall& event) {
  return stream_by_handle(kernel, event);
}

ExecutedStream null_stream(const CopyCall& copy) {
  return copy.stream_zero_is_per_thread ? ExecutedStream::Thread : ExecutedStream::Block;
}

ExecutedStream null_stream(const EventCall& event) {
  return event.stream_zero_is_per_thread ? ExecutedStream::Thread : ExecutedStream::Block;
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
std::optional<Rejection> check_waiting_for_room(const FunctionFacts& kernel, const ptx::Statement& call) {
  const std::string place =
      waits_for_room_at({kernel.module, kernel.function, kernel.flow, kernel.data}, call);
  if (place.empty()) return std::nullopt;
  return Rejection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

}  // namespace

std::optional<Rejection> check_executed_stream(const FunctionFacts& kernel, const Site& site) {
  return check_waiting_for_room(kernel, *site.get_call);
}

std::optional<Rejection> check_calls_into_streams(const FunctionFacts& kernel) {
  std::vector<const ptx::Statement*> calls;
  for (const CopyCall& copy : kernel.copies) calls.push_back(copy.call);
  for (const EventCall& event : event_calls(kernel)) calls.push_back(event.call);
  for (const ptx::Statement* call : calls) {
    if (auto found = check_waiting_for_room(kernel, *call)) return found;
  }
  return std::nullopt;
}

}  // namespace klap::analysis
