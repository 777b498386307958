// Streams and events. The handles are the driver's.
#include "call.h"

using namespace klap::cudart;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return drive([&](const Driver& cu) { return cu.stream_create(stream, flags); });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return drive([&](const Driver& cu) { return cu.stream_destroy(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return drive([&](const Driver& cu) { return cu.stream_synchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return drive([&](const Driver& cu) { return cu.stream_query(stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return drive([&](const Driver& cu) { return cu.stream_wait_event(stream, event, flags); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return drive([&](const Driver& cu) {
    CUstreamCaptureStatus answer{};
    const CUresult result = cu.stream_is_capturing(stream, &answer);
    *status = static_cast<cudaStreamCaptureStatus>(answer);
    return result;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return drive([&](const Driver& cu) {
    return cu.stream_begin_capture(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return drive([&](const Driver& cu) { return cu.stream_end_capture(stream, graph); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return drive([&](const Driver& cu) { return cu.event_create(event, flags); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return drive([&](const Driver& cu) { return cu.event_destroy(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return drive([&](const Driver& cu) { return cu.event_record(event, stream); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return drive([&](const Driver& cu) { return cu.event_query(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return drive([&](const Driver& cu) { return cu.event_synchronize(event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return drive([&](const Driver& cu) { return cu.event_elapsed_time(milliseconds, start, stop); });
}

}  // extern "C"
