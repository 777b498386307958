// The ways in which a parent's launches can be aggregated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace klap::analysis {

// Whose launches become one. Auto is only ever a wish: the grid's where that is legal, else the warp's.
enum class Granularity { None, Grid, Block, MultiBlock, Warp, Auto };
const char* to_string(Granularity granularity);  // as in the configuration: "none", "grid", "block"

// Who starts the aggregated child: the host, right behind the parent in its stream, or threads of the parent.
// Auto is only ever a wish: the host where it may, else the parent.
enum class Launcher { Host, Device, Auto };
const char* to_string(Launcher launcher);  // as in the configuration: "host", "device", "auto"

// Whether launches of a block's threads into its NULL stream may overlap: where it is shown that their order
// does not matter (Stream), also where the program has the same conflicts between its blocks (Auto), or
// always, on the user's word (Relaxed). Order that matters is kept (order/launch_order.h).
enum class Ordering { Auto, Stream, Relaxed };
const char* to_string(Ordering ordering);  // as in the configuration: "auto", "stream", "relaxed"

// The other way round; nothing for a name that is none.
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

// What a site is judged and rewritten for.
struct Way {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;
  uint32_t group_blocks = 0;  // blocks of the parent that launch as one; 0: all, where it is the grid
  // Children may launch themselves: the consumer feeds itself (feeding.h).
  bool feeds = false;
  Ordering ordering = Ordering::Auto;
  // The launch may stand in a loop: a thread's children run one after another (chaining.h).
  bool chains = false;
  // Then: what the threads of a block launch into its NULL stream runs one after another, too.
  bool keeps_order = false;
  // The blocks and grids that the host launches the parent in: what is rewritten is right for these only.
  KnownExtents block{}, grid{};

  // How many children there will be is not known: the queue has a size of its own.
  [[nodiscard]] bool has_own_room() const { return feeds || chains; }

  // Children are launched where the program launches them, by the thread or a neighbour in its warp: nothing
  // is put off.
  [[nodiscard]] bool is_at_once() const { return granularity == Granularity::Warp; }
};

}  // namespace klap::analysis
