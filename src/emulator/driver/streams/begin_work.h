// This file puts work and graphs into a stream of the machine. The two stand together, because a graph's node
// is work, and work may be a graph.
#pragma once

#include <functional>

#include "emulator/driver/streams/graph.h"
#include "emulator/driver/streams/work.h"

namespace klap::emulator::driver {

// Puts it into a stream of the machine. Fails if the machine refuses it.
void begin(Process& process, CUctx_st& context, StreamId stream, const Work& work);
// Puts the whole graph into the stream; steps that do not come after each other may run at the same time.
void begin(Process& process, CUctx_st& context, StreamId stream, const GraphPlan& plan);

// Calls a function of the program from a stream.
void call_host_function(const std::function<void()>& function);

}  // namespace klap::emulator::driver
