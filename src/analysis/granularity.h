// The ways in which a parent's launches can be aggregated.
#pragma once

namespace klap::analysis {

// Whose launches become one.
enum class Granularity { None, Grid };
const char* to_string(Granularity granularity);  // as in the configuration: "none", "grid"

// Who starts the aggregated child: the host, right behind the parent in its stream, or threads of the parent.
// Auto is only ever a wish: the host where it may, else the parent.
enum class Launcher { Host, Device, Auto };
const char* to_string(Launcher launcher);  // as in the configuration: "host", "device", "auto"

// What a site is judged and rewritten for.
struct Way {
  Granularity granularity = Granularity::Grid;
  Launcher launcher = Launcher::Host;
};

}  // namespace klap::analysis
