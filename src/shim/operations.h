// The driver's functions that enqueue something in a stream, or wait for one, besides those in hooks.h.
//
// Other threads' calls of them wait while a launch is half enqueued (runtime/launch/stream_turns.h). They
// have nothing else in common, and need no knowledge of their arguments but which one is the stream. So one
// piece of assembly stands in front of all of them (operations.S). It calls the very function that the driver
// has given out, whatever its version is.
#pragma once

#include <cuda.h>

namespace klap::shim {

// `function` is the driver's answer to cuGetProcAddress for that name, that CUDA version and those flags. The
// result is what the program gets: a function that takes its turn, or `function` itself.
void* with_turns(const char* name, void* function, int version, cuuint64_t flags) noexcept;

// Does so for a function that was found by dlsym as `symbol`, which says its version and its streams.
void* with_turns(const char* symbol, void* function) noexcept;
// False if a function of that name has no turns to take.
bool takes_turns(const char* symbol) noexcept;

}  // namespace klap::shim
