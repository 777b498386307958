// Stream capture: work goes into a graph instead of a stream.
//
// A capture begins at one stream and spreads to others that wait for an event recorded in it. They all have
// to come back, by an event that the first stream waits for, before it ends. A call that would need the real
// stream meanwhile (waiting, querying, the legacy stream) is an error, and spoils the capture, as in the
// driver.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/driver/streams/stream_objects.h"
#include "emulator/driver/streams/work.h"

namespace klap::emulator::driver {

struct Capture {
  uint64_t id = 0;
  CUgraph graph = nullptr;
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool is_valid = true;
  bool graph_is_given = false;  // cuStreamBeginCaptureToGraph
};

// The mode that tells what the calling thread may do while other threads or itself capture.
CUstreamCaptureMode& thread_mode();

using CaptureRef = std::shared_ptr<Capture>;

void begin_capture(Process& process, CUstream_st& stream, CUstreamCaptureMode mode, CUgraph into);
// The graph; fails if the capture was spoilt, and ends it all the same.
CUgraph end_capture(Process& process, CUstream_st& stream);

// Appends to the stream's capture.
void capture_work(CUstream_st& stream, Work work);
// Fails, and spoils the capture, if the stream is captured.
void forbid_capture(CUstream_st& stream);
// For work in the legacy stream, which would have to wait for streams that are being captured.
void forbid_implicit_capture(Process& process, CUstream_st& stream);
// For calls that could wait for other streams (allocation and the like): fails if a capture forbids them to
// the calling thread.
void forbid_unsafe_call(Process& process);

CUstreamCaptureStatus capture_status(const CUstream_st& stream);

}  // namespace klap::emulator::driver
