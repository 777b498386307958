// The ways in which a parent's launches can be aggregated.
#pragma once

#include <cstdint>

namespace klap::analysis {

// Whose launches become one.
enum class Granularity { None, Grid, Block, MultiBlock };
const char* to_string(Granularity granularity);  // as in the configuration: "none", "grid", "block"

// Who starts the aggregated child: the host, right behind the parent in its stream, or threads of the parent.
// Auto is only ever a wish: the host where it may, else the parent.
enum class Launcher { Host, Device, Auto };
const char* to_string(Launcher launcher);  // as in the configuration: "host", "device", "auto"

// The last thread of a block, or of a few, can launch children only itself.
inline bool is_for_device_only(Granularity granularity) {
  return granularity == Granularity::Block || granularity == Granularity::MultiBlock;
}

// What a site is judged and rewritten for.
struct Way {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;
  uint32_t group_blocks = 0;  // blocks of the parent that launch as one; 0: all, where it is the grid
  // Children may launch themselves: the consumer feeds itself (feeding.h).
  bool feeds = false;
};

}  // namespace klap::analysis
