// The host's streams, as operations that wait for each other.
#include "emulator/streams/streams.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace klap::emulator {

bool HostWork::begin() {
  before_end = before_begin;
  // The work may put more into streams, or throw; either way it has been done.
  if (work_) std::exchange(work_, nullptr)();
  return true;
}

Streams::Streams(Operations& operations) : operations_(operations) { streams_[kLegacyStream]; }

StreamId Streams::create(StreamFlags flags) {
  const StreamId id = next_++;
  streams_[id].flags = flags;
  return id;
}

void Streams::destroy(StreamId stream) {
  Stream& s = at(stream);
  if (stream == kLegacyStream) throw Error(ErrorCode::Internal, "the default stream cannot be destroyed");
  orphans_covered_ = orphans_covered_ && s.covered;
  std::erase_if(orphans_, [](const OperationRef& o) { return o->is_finished(); });
  if (s.flags == StreamFlags::Default && s.last && !s.last->is_finished()) orphans_.push_back(s.last);
  streams_.erase(stream);
}

Streams::Stream& Streams::at(StreamId stream) { return const_cast<Stream&>(std::as_const(*this).at(stream)); }

const Streams::Stream& Streams::at(StreamId stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) throw Error(ErrorCode::Internal, "no stream " + std::to_string(stream));
  return found->second;
}

std::vector<OperationRef> Streams::last_of(StreamId stream, bool awaited) const {
  const Stream& s = at(stream);
  std::vector<OperationRef> all;
  const auto take = [&all](const OperationRef& operation) {
    if (operation) all.push_back(operation);
  };
  take(s.last);
  if (stream == kLegacyStream) {
    for (const auto& [id, other] : streams_) {
      if (id != kLegacyStream && other.flags == StreamFlags::Default) take(other.last);
    }
    all.insert(all.end(), orphans_.begin(), orphans_.end());
  } else if (s.flags == StreamFlags::Default && !awaited) {
    take(at(kLegacyStream).last);
  }
  return all;
}

void Streams::put(StreamId stream, const OperationRef& operation, const std::vector<OperationRef>& before) {
  operations_.add(operation, before);
  Stream& s = at(stream);
  s.last = operation;
  s.covered = false;
  if (stream == kLegacyStream) orphans_.clear();  // work that waits for this waits for them
}

void Streams::enqueue(StreamId stream, const OperationRef& operation) {
  put(stream, operation, last_of(stream, false));
}

void Streams::enqueue_after(StreamId stream, const OperationRef& instead_of_last,
                            const OperationRef& operation) {
  std::vector<OperationRef> before = last_of(stream, false);
  std::ranges::replace(before, last(stream), instead_of_last);
  put(stream, operation, before);
}

bool Streams::is_complete(StreamId stream) const {
  const std::vector<OperationRef> all = last_of(stream, true);
  return std::all_of(all.begin(), all.end(), [](const OperationRef& o) { return o->is_finished(); });
}

HistoryRef Streams::history(StreamId stream) const {
  HistoryRef all;
  for (const OperationRef& operation : last_of(stream, true)) all = joined(all, operation->before_end);
  return all;
}

EventId Streams::create_event() {
  const EventId id = next_++;
  events_[id];
  return id;
}

void Streams::destroy_event(EventId event) { events_.erase(event); }

void Streams::record(EventId event, StreamId stream, HistoryRef before) {
  const auto found = events_.find(event);
  if (found == events_.end()) throw Error(ErrorCode::Internal, "no event " + std::to_string(event));
  const auto marker = std::make_shared<Marker>();
  marker->before_begin = std::move(before);
  enqueue(stream, marker);
  found->second = marker;
}

void Streams::wait(StreamId stream, EventId event, HistoryRef before) {
  const OperationRef& recorded = this->event(event);
  if (!recorded) return;
  const auto marker = std::make_shared<Marker>();
  marker->before_begin = std::move(before);
  std::vector<OperationRef> before_it = last_of(stream, false);
  before_it.push_back(recorded);
  put(stream, marker, before_it);
}

const OperationRef& Streams::event(EventId event) const {
  const auto found = events_.find(event);
  if (found == events_.end()) throw Error(ErrorCode::Internal, "no event " + std::to_string(event));
  return found->second;
}

void Streams::covered(StreamId stream) {
  at(stream).covered = true;
  if (stream != kLegacyStream) return;
  orphans_covered_ = true;
  for (auto& [id, other] : streams_) {
    if (other.flags == StreamFlags::Default) other.covered = true;
  }
}

bool Streams::all_covered() const {
  return orphans_covered_ && std::all_of(streams_.begin(), streams_.end(),
                                         [](const auto& stream) { return stream.second.covered; });
}

void Streams::forget() {
  const auto let_go = [](OperationRef& operation) {
    if (operation && operation->is_finished()) operation = nullptr;
  };
  for (auto& [id, stream] : streams_) {
    let_go(stream.last);
    stream.covered = true;
  }
  // An event that was recorded stays recorded; only its operation is forgotten.
  for (auto& [id, operation] : events_) let_go(operation);
  orphans_.clear();
  orphans_covered_ = true;
}

}  // namespace klap::emulator
