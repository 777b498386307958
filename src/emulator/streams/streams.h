// Streams and events of the host.
//
// The operations of one stream follow each other. The legacy default stream (0) also waits for all that was
// put into blocking streams before, and they for it; streams made with NonBlocking take no part in that.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "emulator/streams/operations.h"
#include "emulator/streams/stream_ids.h"

namespace klap::emulator {

// Something that the host does in stream order.
class HostWork final : public Operation {
 public:
  explicit HostWork(std::function<void()> work) : work_(std::move(work)) {}

 private:
  bool begin() override;
  std::function<void()> work_;
};

class Streams {
 public:
  explicit Streams(Operations& operations);

  StreamId create(StreamFlags flags);
  void destroy(StreamId stream);
  void enqueue(StreamId stream, const OperationRef& operation);
  // The stream's last operation, null if it has none; and the same as enqueue(), after another one in its
  // place.
  [[nodiscard]] const OperationRef& last(StreamId stream) const { return at(stream).last; }
  void enqueue_after(StreamId stream, const OperationRef& instead_of_last, const OperationRef& operation);
  // All of its work is done; for the default stream also that of the blocking streams.
  [[nodiscard]] bool is_complete(StreamId stream) const;
  // The history before the end of that work.
  [[nodiscard]] HistoryRef history(StreamId stream) const;

  EventId create_event();
  void destroy_event(EventId event);
  // `before`: the host's history, for the marker.
  void record(EventId event, StreamId stream, HistoryRef before = {});
  void wait(StreamId stream, EventId event, HistoryRef before = {});
  // The operation of the event; null for an event that was never recorded.
  [[nodiscard]] const OperationRef& event(EventId event) const;

  // Whether work was put into a stream that ordering with `stream` does not cover, since forget().
  void covered(StreamId stream);
  [[nodiscard]] bool all_covered() const;
  // Lets go of finished operations, histories included.
  void forget();

 private:
  struct Stream {
    StreamFlags flags = StreamFlags::Default;
    bool covered = true;
    OperationRef last;
  };
  [[nodiscard]] Stream& at(StreamId stream);
  [[nodiscard]] const Stream& at(StreamId stream) const;
  // The last operations of the streams that `stream` is in order with. `awaited` selects operations whose end
  // its own work needs; otherwise it only begins after them.
  [[nodiscard]] std::vector<OperationRef> last_of(StreamId stream, bool awaited) const;
  void put(StreamId stream, const OperationRef& operation, const std::vector<OperationRef>& before);

  Operations& operations_;
  uint64_t next_ = 1;
  std::map<StreamId, Stream> streams_;
  std::map<EventId, OperationRef> events_;
  std::vector<OperationRef> orphans_;  // of destroyed blocking streams: the legacy stream waits for them
  bool orphans_covered_ = true;
};

}  // namespace klap::emulator
