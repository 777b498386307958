// Capturing streams into graphs.
#include <utility>

#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/graph.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator::driver;

KLAP_DRIVER_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call("cuThreadExchangeStreamCaptureMode", [&](Process&) {
    require(mode != nullptr && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    std::swap(*mode, thread_mode());
  });
}

KLAP_DRIVER_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return call("cuStreamBeginCapture",
              [&](Process& process) { begin_capture(process, resolve(process, stream), mode, nullptr); });
}

KLAP_DRIVER_API cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

KLAP_DRIVER_API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                            const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  return call("cuStreamBeginCaptureToGraph", [&](Process& process) {
    CUgraph_st& into = known(process, graph);
    for (size_t i = 0; i < count; ++i) require(into.has(dependencies[i]));
    CUstream_st& captured = resolve(process, stream);
    begin_capture(process, captured, mode, graph);
    captured.last.assign(dependencies, dependencies + count);
  });
}

KLAP_DRIVER_API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return call("cuStreamEndCapture", [&](Process& process) {
    require(graph != nullptr);
    *graph = nullptr;
    *graph = end_capture(process, resolve(process, stream));
  });
}

// Asking about the legacy stream while another is captured is an error too: it would have to be in order with
// it.
KLAP_DRIVER_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call("cuStreamIsCapturing", [&](Process& process) {
    require(status != nullptr);
    CUstream_st& asked = resolve(process, stream);
    forbid_implicit_capture(process, asked);
    *status = capture_status(asked);
  });
}

KLAP_DRIVER_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** dependencies,
                                          const CUgraphEdgeData** edges, size_t* count) {
  return call("cuStreamGetCaptureInfo", [&](Process& process) {
    require(status != nullptr);
    CUstream_st& asked = resolve(process, stream);
    forbid_implicit_capture(process, asked);
    *status = capture_status(asked);
    if (edges != nullptr) *edges = nullptr;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
    if (id != nullptr) *id = asked.capture->id;
    if (graph != nullptr) *graph = asked.capture->graph;
    if (dependencies != nullptr) *dependencies = asked.last.data();
    if (count != nullptr) *count = asked.last.size();
  });
}

KLAP_DRIVER_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

KLAP_DRIVER_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

KLAP_DRIVER_API cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                                     const CUgraphEdgeData*, size_t count, unsigned flags) {
  return call("cuStreamUpdateCaptureDependencies", [&](Process& process) {
    CUstream_st& captured = resolve(process, stream);
    require(captured.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(captured.capture->is_valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    require(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES || flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    for (size_t i = 0; i < count; ++i) require(captured.capture->graph->has(dependencies[i]));
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) captured.last.clear();
    captured.last.insert(captured.last.end(), dependencies, dependencies + count);
  });
}

KLAP_DRIVER_API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                                  unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}
