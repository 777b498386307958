// The end of a CUDA context. Memory, streams, events and modules of the program go with it in the driver, and
// what this library keeps about them goes here: queues of its streams, prepared variants, loaded modules,
// handles. A program that resets its device in a loop would collect them otherwise.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

namespace klap::runtime {

// The context's id; nothing if the driver does not know it. To be asked before it ends.
std::optional<uint64_t> id_of_context(CUcontext context);
// The id of the device's primary context; nothing if it is not active.
std::optional<uint64_t> id_of_primary_context(CUdevice device);

// Called before a green context ends. Its streams and its memory are parts of the primary context, which
// stays. So what its queues have is given back. The result is its id, as above.
std::optional<uint64_t> green_context_about_to_end(CUgreenCtx green);

// Called when the context has ended.
void context_ended(uint64_t id);
// Called when the primary context with that id was released: others may still have it.
void primary_context_released(CUdevice device, uint64_t id);

}  // namespace klap::runtime
