// The ways in which a parent's launches can be aggregated.
#pragma once

namespace klap::analysis {

// Whose launches become one. Auto: the first of the others that is legal.
enum class Granularity { None, Grid, Warp, Auto };
const char* to_string(Granularity granularity);  // as in the configuration: "none", "grid"

// Who starts the aggregated child: the host, right behind the parent in its stream, or threads of the parent.
enum class Launcher { Host, Device };
const char* to_string(Launcher launcher);

// What a site is judged and rewritten for.
struct Way {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;

  // Children are launched where the program launches them, by the thread or a neighbour in its warp: nothing
  // is put off.
  [[nodiscard]] bool is_at_once() const { return granularity == Granularity::Warp; }
};

}  // namespace klap::analysis
