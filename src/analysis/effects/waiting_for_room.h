// Loops by which a thread waits for room: it launches again while a launch is refused.
//
// A launch that klap_jit refuses for want of room may find room only after its thread has ended. A thread
// that goes on until there is room would then wait for ever.
//
// The claim. Compare what a thread does with what it would do if no launch had been refused. It waits for no
// room if it passes through its loops no more often.
//
// The method. A value is uncertain if it may depend on such a refusal: an error code, the last error, an
// argument buffer, and all that is computed from them. An uncertain value may go through memory, of which
// only the spaces are told apart, and through calls. A branch by an uncertain value is harmless in two cases:
//  1. Its ways meet again before the thread can pass the branch again, and none of them has a loop or ends
//     the thread. What these ways write is then uncertain as well.
//  2. It compares an error code or a buffer with 0, and after a refusal the thread does not come back to the
//     launch.
// If every such branch in a loop with the launch is harmless, the blocks between the branches run in the same
// order in both cases, up to a refusal that ends the loop.
#pragma once

#include <string>

#include "analysis/launches/origins.h"

namespace klap::analysis {

// The place of the first uncertain branch in a loop with `call` that is not harmless; empty if there is none.
std::string waits_for_room_at(const OriginQuery& query, const ptx::Statement& call);

}  // namespace klap::analysis
