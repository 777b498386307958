// Makes random programs: the same seed and mix give the same program everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "random/program.h"

namespace klap::differential::random {

// Features that programs may have beyond kernels that launch others, data-dependent branches and loops.
struct Mix {
  bool nested = true;     // children that launch
  bool recursion = true;  // kernels that launch themselves
  bool loops = true;      // launches in loops
  bool sites = true;      // several launches in a kernel
  bool barriers = true;   // children with barriers and shared memory
  bool shuffles = true;   // children with warp operations
  bool dynamic_shared = true;
  bool varying_blocks = true;  // blocks that are not constant
  bool following = true;       // blocks like that of the kernel, which launches itself
  bool functions = true;       // device functions
  bool exits = true;           // threads that return early
  bool refused = true;         // launches with an empty grid
  bool structures = true;      // arguments by value of several fields
  bool dimensions = true;      // grids and blocks of two and three dimensions
  bool messages = true;        // children that read what their parent wrote
  bool previous = true;        // reading what earlier launches of the host wrote
  bool null_stream = true, per_thread = true, fire_and_forget = true;
  bool streams = true;  // several streams of the host
  // Programs whose result depends on ordered launches (see generate_order.h), instead of all other ones.
  bool order = false;
  bool plain = true;        // most have one conflict and nothing else
  bool turns = true;        // threads that take turns to launch
  bool child_turns = true;  // threads of a child that take turns, and wait for each other
  bool unordered = true;    // launches in no order, whose children commute
  bool blocks = true;       // parents of several blocks
  bool tables = true;       // children that load which cell they change
  bool tolerated = true;  // the same below parents of several blocks, where ordering "auto" lets them overlap
  bool widths = true;     // cells of 1, 2 and 8 bytes, and vectors
  bool forms = true;      // volatile, relaxed, cached and generic accesses
  bool ways = true;       // addresses through functions, local arrays and memory
  bool atomics = true;    // accesses that are atomic operations
  bool aliases = true;    // two addresses of the same cells
  bool other_streams = true;  // per-thread and fire-and-forget
  bool addresses = true;  // instead, programs that ask one question about addresses (generate_addresses.h)
  // Programs whose kernels wait for their children (random/waits/), instead of all other ones.
  bool waits = false;
  // Each program takes only half of the above, at random: features hide each other where all come together.
  bool swarm = false;
};

// "all"; "waits": programs of version 1 whose kernels wait for their children; "order": programs whose result
// depends on ordered launches; "swarm": a random half of all, for each program another; "legal": only code
// that a launch site may have around it to be rewritten today. Then changes, as in "legal,+loops" or
// "all,-recursion,-null_stream". Throws Error(Config) that lists the names.
Mix parse_mix(std::string_view text);

Program generate(uint64_t seed, const Mix& mix);

}  // namespace klap::differential::random
