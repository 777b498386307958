// Events.
//
// There is no time in an emulator. The time between two events is made up from the number of instructions
// that ran between them, and grows with every event that is reached; it means nothing but their order.
#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator::driver;

namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
constexpr float kMillisecondsPerStep = 1e-6F;

CUevent_st& known(Process& process, CUevent event) {
  require(process.events.knows(event), CUDA_ERROR_INVALID_HANDLE);
  return *event;
}

// Both queries fail for the end of work that is being captured.
void forbid_captured(const CUevent_st& event) { require(!event.capture, CUDA_ERROR_CAPTURED_EVENT); }

}  // namespace

KLAP_DRIVER_API cuEventCreate(CUevent* event, unsigned flags) {
  return call("cuEventCreate", [&](Process& process) {
    require(event != nullptr && (flags & ~kEventFlags) == 0);
    CUctx_st& context = working(process);
    *event = process.events.make();
    (*event)->context = &context;
    (*event)->event = context.machine->create_event();
    (*event)->flags = flags;
  });
}

KLAP_DRIVER_API cuEventDestroy_v2(CUevent event) {
  return call("cuEventDestroy", [&](Process& process) {
    const CUevent_st& gone = known(process, event);
    gone.context->machine->destroy_event(gone.event);
    process.events.destroy(event);
  });
}

KLAP_DRIVER_API cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

KLAP_DRIVER_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return call("cuEventRecord", [&](Process& process) {
    require((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) == 0);
    CUstream_st& in = resolve(process, stream);
    CUevent_st& recorded = known(process, event);
    if (in.capture && flags == CU_EVENT_RECORD_EXTERNAL) {
      submit(process, in, RecordEvent{event});
    } else {
      record_event(process, recorded, in);
    }
  });
}

KLAP_DRIVER_API cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

KLAP_DRIVER_API cuEventQuery(CUevent event) {
  return call("cuEventQuery", [&](Process& process) {
    const CUevent_st& asked = known(process, event);
    forbid_captured(asked);
    forbid_unsafe_call(process);
    require(asked.context->machine->is_event_complete(asked.event), CUDA_ERROR_NOT_READY);
    asked.context->after_synchronising(asked.context->machine->error_code());
  });
}

KLAP_DRIVER_API cuEventSynchronize(CUevent event) {
  return call("cuEventSynchronize", [&](Process& process) {
    const CUevent_st& awaited = known(process, event);
    forbid_captured(awaited);
    awaited.context->after_synchronising(awaited.context->machine->synchronise_event(awaited.event));
  });
}

KLAP_DRIVER_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return call("cuEventElapsedTime", [&](Process& process) {
    require(milliseconds != nullptr);
    for (CUevent const event : {start, end}) {
      const CUevent_st& asked = known(process, event);
      forbid_captured(asked);
      require(asked.is_recorded && (asked.flags & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
      require(asked.context->machine->is_event_complete(asked.event), CUDA_ERROR_NOT_READY);
      asked.context->after_synchronising(asked.context->machine->error_code());
    }
    const auto steps = static_cast<int64_t>(*end->moment - *start->moment);
    *milliseconds = static_cast<float>(steps) * kMillisecondsPerStep;
  });
}

KLAP_DRIVER_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
