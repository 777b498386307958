#include "emulator/driver/streams/begin_work.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

#include "emulator/driver/process.h"
#include "emulator/driver/streams/stream_objects.h"

namespace klap::emulator::driver {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

struct Rows {  // the bytes that one side of a copy touches
  uint64_t address;
  size_t pitch, slice;
};

void mark_initialised(CUctx_st& context, const Rows& rows, size_t width, size_t height, size_t depth) {
  for (size_t z = 0; z < depth; ++z) {
    for (size_t y = 0; y < height; ++y) {
      context.machine->order().initialised(rows.address + z * rows.slice + y * rows.pitch, width);
    }
  }
}

void carry_out(Process& process, const Copy& copy) {
  const auto* const from = copy.staged ? copy.staged->data() : pointer_to(copy.from);
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      std::memmove(pointer_to(copy.to + z * copy.to_slice + y * copy.to_pitch),
                   from + z * copy.from_slice + y * copy.from_pitch, copy.width);
    }
  }
  if (const auto owned = owner_of(process, copy.to)) {
    mark_initialised(*owned->context, {copy.to, copy.to_pitch, copy.to_slice}, copy.width, copy.height,
                     copy.depth);
  }
}

void fill_row(std::byte* row, const Fill& fill) {
  std::array<unsigned char, sizeof fill.value> value;
  std::memcpy(value.data(), &fill.value, sizeof fill.value);
  const auto end = value.begin() + fill.element_bytes;
  // Queues of hundreds of megabytes are cleared this way.
  if (std::all_of(value.begin(), end, [&](unsigned char byte) { return byte == value.front(); })) {
    std::memset(row, value.front(), fill.width * fill.element_bytes);
    return;
  }
  for (size_t x = 0; x < fill.width; ++x)
    std::memcpy(row + x * fill.element_bytes, value.data(), fill.element_bytes);
}

void carry_out(Process& process, const Fill& fill) {
  for (size_t y = 0; y < fill.height; ++y) fill_row(pointer_to(fill.to + y * fill.pitch), fill);
  if (const auto owned = owner_of(process, fill.to)) {
    mark_initialised(*owned->context, {fill.to, fill.pitch, 0}, fill.width * fill.element_bytes, fill.height,
                     1);
  }
}

void launch(CUctx_st& context, StreamId stream, const KernelLaunch& kernel) {
  const int code = context.machine->launch(stream, kernel.launch, kernel.dependent);
  if (code == 0) return;
  const CUresult result = driver_error(code);
  if (result == CUDA_ERROR_NOT_SUPPORTED) say(context.machine->error_text());
  fail(result);
}

// Elapsed time is made of this. It grows with the work that has run, and with every event that is reached, so
// that two events are never at one moment.
void stamp(CUctx_st& context, StreamId stream, const std::shared_ptr<uint64_t>& moment) {
  context.machine->enqueue(stream, [&context, moment] {
    static uint64_t reached = 0;
    *moment = context.machine->executor().steps() + ++reached;
  });
}

// Machines do not know each other: an event of another context has happened before this returns.
void wait_for(const CUevent_st& event, CUctx_st& context, StreamId stream) {
  if (event.context == &context) {
    context.machine->wait(stream, event.event);
  } else {
    event.context->after_synchronising(event.context->machine->synchronise_event(event.event));
  }
}

// One launch of a plan: a stream and an event of the machine for each step.
class Run {
 public:
  Run(Process& process, CUctx_st& context, StreamId stream)
      : process_(process), context_(context), machine_(*context.machine), stream_(stream) {}
  ~Run() {
    for (const StreamId stream : streams_) machine_.destroy_stream(stream);
    for (const EventId event : events_) machine_.destroy_event(event);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void all(const GraphPlan& plan) {
    const EventId start = event_after(stream_);
    for (const GraphStep& step : plan.steps) {
      const StreamId own =
          streams_.emplace_back(machine_.create_stream(klap::emulator::StreamFlags::NonBlocking));
      machine_.wait(own, start);
      for (const size_t earlier : step.after) machine_.wait(own, ends_[earlier]);
      if (step.is_enabled) begin(process_, context_, own, step.work);
      ends_.push_back(event_after(own));
    }
    for (const EventId end : ends_) machine_.wait(stream_, end);
  }

 private:
  EventId event_after(StreamId stream) {
    const EventId event = events_.emplace_back(machine_.create_event());
    machine_.record(event, stream);
    return event;
  }

  Process& process_;
  CUctx_st& context_;
  Machine& machine_;
  StreamId stream_;
  std::vector<StreamId> streams_;
  std::vector<EventId> events_, ends_;
};

}  // namespace

void call_host_function(const std::function<void()>& function) {
  in_host_function() = true;
  function();
  in_host_function() = false;
}

void begin(Process& process, CUctx_st& context, StreamId stream, const Work& work) {
  context.require_alive();
  Machine& machine = *context.machine;
  std::visit(
      Overloaded{
          [&](const Empty&) { machine.enqueue(stream, [] {}); },
          [&](const KernelLaunch& kernel) { launch(context, stream, kernel); },
          [&](const Copy& copy) { machine.enqueue(stream, [&process, copy] { carry_out(process, copy); }); },
          [&](const Fill& fill) { machine.enqueue(stream, [&process, fill] { carry_out(process, fill); }); },
          [&](const HostCall& host) {
            machine.enqueue(stream, [host] { call_host_function([&] { host.function(host.data); }); });
          },
          [&](const RecordEvent& record) {
            require(process.events.knows(record.event) && record.event->context == &context,
                    CUDA_ERROR_INVALID_HANDLE);
            record.event->is_recorded = true;
            stamp(context, stream, record.event->moment);
            machine.record(record.event->event, stream);
          },
          [&](const WaitForEvent& wait) {
            require(process.events.knows(wait.event), CUDA_ERROR_INVALID_HANDLE);
            wait_for(*wait.event, context, stream);
          },
          [&](const ChildGraph& child) { begin(process, context, stream, *child.plan); },
      },
      work);
}

void begin(Process& process, CUctx_st& context, StreamId stream, const GraphPlan& plan) {
  context.require_alive();
  Run(process, context, stream).all(plan);
}

}  // namespace klap::emulator::driver
