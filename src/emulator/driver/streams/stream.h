// The way of all work into a stream, or into the graph that the stream is captured to.
#pragma once

#include "emulator/driver/streams/stream_objects.h"
#include "emulator/driver/streams/work.h"

namespace klap::emulator::driver {

// The stream of a program's stream handle, the special handles included. Fails for an unknown handle.
CUstream_st& resolve(Process& process, CUstream stream);

// Puts work into a stream, or a node for it into the graph that the stream is captured to.
void submit(Process& process, CUstream_st& stream, Work work);
// Waits for the stream. Fails while it is captured.
void synchronise(Process& process, CUstream_st& stream);

void record_event(Process& process, CUevent_st& event, CUstream_st& stream);
void wait_event(Process& process, CUstream_st& stream, CUevent_st& event);

}  // namespace klap::emulator::driver
