// The ways in which a parent's launches can be aggregated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace klap::analysis {

// Granularity names the group of threads whose launches become one. Auto is only a request: the grid where
// that is legal, else the warp.
enum class Granularity { None, Grid, Block, MultiBlock, Warp, Auto };
const char* to_string(Granularity granularity);  // as in the configuration: "none", "grid", "block"

// Launcher names who starts the aggregated child: the host, directly behind the parent in its stream, or
// threads of the parent. Auto is only a request: the host where that is legal, else the parent.
enum class Launcher { Host, Device, Auto };
const char* to_string(Launcher launcher);  // as in the configuration: "host", "device", "auto"

// Ordering says whether launches of a block's threads into its NULL stream may overlap. With Stream they may
// where it is shown that their order does not matter. With Auto they also may where the program has the same
// conflicts between its blocks. With Relaxed they always may, on the user's word. An order that matters is
// kept (order/launch_order.h).
enum class Ordering { Auto, Stream, Relaxed };
const char* to_string(Ordering ordering);  // as in the configuration: "auto", "stream", "relaxed"

// Parses the name as the configuration writes it; nothing for an unknown name.
std::optional<Granularity> parse_granularity(std::string_view name);
std::optional<Launcher> parse_launcher(std::string_view name);
std::optional<Ordering> parse_ordering(std::string_view name);

// Threads of a block, of a few or of a warp can launch children only themselves.
inline bool is_for_device_only(Granularity granularity) {
  return granularity == Granularity::Block || granularity == Granularity::MultiBlock ||
         granularity == Granularity::Warp;
}

// A grid or block of which only those extents are known that are not missing.
using KnownExtents = std::array<std::optional<uint32_t>, 3>;

// Aggregation says how the launches of a site become fewer. Sites are checked and rewritten for one.
struct Aggregation {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;
  uint32_t group_blocks = 0;  // blocks of the parent that launch as one; 0: all, where it is the grid
  // Children may launch further children, which a persistent consumer runs from its worklist (recursion.h).
  bool is_recursive = false;
  Ordering ordering = Ordering::Auto;
  // The launch may stand in a loop: a thread's children run one after another (loop_launches.h).
  bool has_loop_queue = false;
  // Only with `has_loop_queue`: launches of a block's threads into its NULL stream run one after another,
  // too.
  bool keeps_order = false;
  // The executor runs all launches of the parent and of their children, in the order that CUDA promises
  // (executed/streams.h). Set with the three above.
  bool is_executed = false;
  // The block and grid sizes in which the host launches the parent. The rewritten code is right for these
  // only.
  KnownExtents block{}, grid{};

  // The number of children is not known beforehand, so the queue has a size of its own.
  [[nodiscard]] bool uses_work_queue() const { return is_recursive || has_loop_queue; }

  // Launches are immediate: the thread or a neighbour in its warp launches the child where the program does.
  [[nodiscard]] bool is_immediate() const { return granularity == Granularity::Warp; }
};

}  // namespace klap::analysis
