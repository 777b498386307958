// The blocks of a kernel can stop at certain places, to go on later in another grid. This file finds them.
//
// A thread that waits for its children stops at its wait. Its block's other threads go on until they end,
// wait too, or come to a barrier, where they would meet the one that waits. So a block stops with each of its
// threads ended, at a wait, or at a barrier. What a thread needs behind that place are its live registers and
// its local variables, and the block needs its shared variables.
//
// A kernel is refused if its threads could meet one that waits in any other way (operations of warps,
// barriers of some threads), or if something would not be the same when it goes on: addresses of its own
// variables in memory (own_addresses.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/graph/registers.h"
#include "analysis/suspension/own_addresses.h"

namespace klap::analysis {

// A register that kernels declare which have been split at their waits: all of their threads end at once.
inline constexpr char kEndsTogether[] = "%__klap_ends_together";
// Functions that give blocks that stop their memory (ptx-patterns/templates/suspension/frames.cu).
inline constexpr char kTakeFrame[] = "__klap_take_frame", kGiveFrame[] = "__klap_give_frame";

// The call that stands in front of a poll (polls.h) that a kernel is to stop at. Whether there is anything to
// wait for does not matter to it: others need the place of a block that polls.
inline constexpr char kWaitAtPoll[] = "__klap_wait_at_poll";

// A register that such kernels write in front of calls that free memory. All that the thread has launched
// before such a call is complete there, as on each way from a launch there is a wait.
inline constexpr char kAllComplete[] = "%klap_w_complete";

// A shared variable of such kernels. Its words are accessed by its name alone, and only numbers that no
// launch has to do with are written to it.
inline constexpr char kSuspensionWords[] = "__klap_suspension";

// Another one, whose first word is the address of the block's memory (kSuspensionFrame). What follows it is
// counted by the program's barriers.
inline constexpr char kSuspensionControl[] = "__klap_suspended";

// The register by which such kernels keep values in memory and take them back: each register gets its own
// value.
inline constexpr char kSuspensionRow[] = "%klap_w_at";

// The register with the address of the block's memory. By its name they keep the block's place in its grid
// and the size of shared memory, in registers of their own.
inline constexpr char kSuspensionFrame[] = "%klap_w_frame";

enum class SuspendsAt : uint8_t {
  Wait,
  Barrier,            // of all threads, without a result
  BarrierWithResult,  // of all threads, which counts or votes
};

// A register that is live at a point.
struct SavedRegister {
  std::string_view name, type;
  const OwnVariable* variable = nullptr;  // its value is an address in this variable; null for other values
  bool is_generic = false;                // that address is a generic one
};

struct SuspensionPoint {
  SuspendsAt at = SuspendsAt::Wait;
  const ptx::Statement* instruction = nullptr;  // the call or the barrier
  // That instruction, or the block around it that is in the scope of the kernel's body. The thread goes on in
  // front of it.
  const ptx::Statement* statement = nullptr;
  // A wait in front of which each way has launched something since the thread last stopped, or at all; or one
  // at a poll. A thread that comes to it stops.
  bool is_certain = false;
  // A wait whose result the program looks at, and that may so return an error. No thread asks for its last
  // error behind it, which would be another one.
  bool tells_result = false;
  // A barrier at which no thread can meet one that waits (meetings.h). No thread stops there.
  bool never_stops = false;
  std::vector<SavedRegister> registers;  // live before it, but for those that are computed again
};

// A variable whose contents are kept.
struct SavedVariable {
  OwnVariable variable;
  uint64_t bytes = 0;  // 0 for the array whose size the launch decides
  uint32_t align = 1;
};

struct Suspension {
  std::vector<SuspensionPoint> points;           // in text order
  std::vector<const ptx::Statement*> launching;  // blocks or calls in the body with which launches begin
  std::vector<const ptx::Statement*>
      complete;  // blocks or calls with a call that frees, likewise (kAllComplete)
  std::vector<const ptx::Statement*> computed;  // again where the kernel goes on, in this order
  std::vector<OwnVariable> named;               // all that the kernel names
  std::vector<SavedVariable> variables;         // that are used where threads go on
  // The kernel asks for its threads' last errors, which another grid does not have.
  bool asks_for_errors = false;
  std::string problem;  // why the kernel cannot stop, with a place; empty if it can
};

// For a kernel that has waits that matter.
Suspension find_suspension(const FlowFacts& kernel, const std::vector<const ptx::Statement*>& waits);

}  // namespace klap::analysis
