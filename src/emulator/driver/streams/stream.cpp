#include "emulator/driver/streams/stream.h"

#include <algorithm>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/begin_work.h"
#include "emulator/driver/streams/capture.h"

namespace klap::emulator::driver {
namespace {

CUstream_st& stream_of_thread(Process& process, CUctx_st& context) {
  CUstream& stream = context.per_thread_streams[std::this_thread::get_id()];
  if (stream == nullptr) {
    stream = process.streams.make();
    stream->id = ++process.last_id;
    stream->context = &context;
    stream->stream = context.machine->create_stream(StreamFlags::Default);
    stream->is_default = true;
  }
  return *stream;
}

}  // namespace

CUstream_st& resolve(Process& process, CUstream stream) {
  if (stream == nullptr) stream = PerThreadDefault::on() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (stream == CU_STREAM_LEGACY) return *current(process).legacy_stream;
  if (stream == CU_STREAM_PER_THREAD) return stream_of_thread(process, current(process));
  require(process.streams.knows(stream), CUDA_ERROR_INVALID_HANDLE);
  return *stream;
}

void submit(Process& process, CUstream_st& stream, Work work) {
  stream.context->require_alive();
  if (stream.capture) {
    capture_work(stream, std::move(work));
    return;
  }
  forbid_implicit_capture(process, stream);
  begin(process, *stream.context, stream.stream, work);
}

void synchronise(Process& process, CUstream_st& stream) {
  forbid_capture(stream);
  forbid_implicit_capture(process, stream);
  stream.context->after_synchronising(stream.context->machine->synchronise(stream.stream));
}

void record_event(Process& process, CUevent_st& event, CUstream_st& stream) {
  require(event.context == stream.context, CUDA_ERROR_INVALID_HANDLE);
  if (stream.capture) {
    require(stream.capture->is_valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    event.capture = stream.capture;
    event.captured = stream.last;
    return;
  }
  event.capture.reset();
  submit(process, stream, RecordEvent{&event});
}

void wait_event(Process& process, CUstream_st& stream, CUevent_st& event) {
  if (!event.capture) {
    if (stream.capture) {  // nothing outside a capture can be waited for in it
      stream.capture->is_valid = false;
      fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    submit(process, stream, WaitForEvent{&event});
    return;
  }
  require(event.capture->is_valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->is_valid = event.capture->is_valid = false;
    fail(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream.context->legacy_stream == &stream) {
    event.capture->is_valid = false;
    fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  stream.capture = event.capture;
  for (CUgraphNode const node : event.captured) {
    if (std::ranges::find(stream.last, node) == stream.last.end()) stream.last.push_back(node);
  }
}

}  // namespace klap::emulator::driver
