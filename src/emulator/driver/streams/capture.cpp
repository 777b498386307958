#include "emulator/driver/streams/capture.h"

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/graph.h"

namespace klap::emulator::driver {

CUstreamCaptureMode& thread_mode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

namespace {

bool is_blocking(const CUstream_st& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }

// Whether a capture forbids unsafe calls to the calling thread. A thread in relaxed mode is allowed anything;
// one in thread-local mode is stopped by its own captures only.
bool forbids(const Capture& capture) {
  if (thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return false;
  }
  if (capture.thread == std::this_thread::get_id()) return true;
  return thread_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// All that the streams of the capture did must have come back to its origin.
bool is_joined(Process& process, const CUstream_st& origin) {
  std::set<CUgraphNode> reached;
  std::vector<CUgraphNode> open = origin.last;
  while (!open.empty()) {
    CUgraphNode const node = open.back();
    open.pop_back();
    if (reached.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  bool joined = true;
  process.streams.for_each([&](CUstream_st& stream) {
    if (stream.capture != origin.capture) return;
    joined = joined && std::ranges::all_of(stream.last, [&](CUgraphNode n) { return reached.contains(n); });
  });
  return joined;
}

void leave(Process& process, const CaptureRef& capture) {
  process.streams.for_each([&](CUstream_st& stream) {
    if (stream.capture != capture) return;
    stream.capture.reset();
    stream.last.clear();
  });
  process.events.for_each([&](CUevent_st& event) {
    if (event.capture != capture) return;
    event.capture.reset();
    event.captured.clear();
  });
}

}  // namespace

void begin_capture(Process& process, CUstream_st& stream, CUstreamCaptureMode mode, CUgraph into) {
  stream.context->require_alive();
  require(mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
          mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  require(stream.context->legacy_stream != &stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(!stream.capture, CUDA_ERROR_ILLEGAL_STATE);
  auto capture = std::make_shared<Capture>();
  capture->id = ++process.last_id;
  capture->graph = into != nullptr ? into : process.graphs.make();
  capture->graph_is_given = into != nullptr;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  stream.capture = std::move(capture);
}

CUgraph end_capture(Process& process, CUstream_st& stream) {
  const CaptureRef capture = stream.capture;
  require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const bool joined = is_joined(process, stream);
  leave(process, capture);
  if (capture->is_valid && joined) return capture->graph;
  if (!capture->graph_is_given) destroy_graph(process, capture->graph);
  fail(capture->is_valid ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

void capture_work(CUstream_st& stream, Work work) {
  require(stream.capture->is_valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  known(the_process(), stream.capture->graph);  // one that was passed in may have been destroyed
  stream.last = {stream.capture->graph->add(std::move(work), stream.last)};
}

void forbid_capture(CUstream_st& stream) {
  if (!stream.capture) return;
  stream.capture->is_valid = false;
  fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void forbid_implicit_capture(Process& process, CUstream_st& stream) {
  if (stream.context->legacy_stream != &stream) return;
  bool found = false;
  process.streams.for_each([&](CUstream_st& other) {
    if (!other.capture || other.context != stream.context || !is_blocking(other)) return;
    if (other.capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
    other.capture->is_valid = false;
    found = true;
  });
  require(!found, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void forbid_unsafe_call(Process& process) {
  bool found = false;
  process.streams.for_each([&](CUstream_st& stream) {
    if (!stream.capture || !forbids(*stream.capture)) return;
    stream.capture->is_valid = false;
    found = true;
  });
  require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUstreamCaptureStatus capture_status(const CUstream_st& stream) {
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

}  // namespace klap::emulator::driver
