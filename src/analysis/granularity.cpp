#include "analysis/granularity.h"

namespace klap::analysis {

const char* to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::None:
      return "none";
    case Granularity::Grid:
      return "grid";
    case Granularity::Warp:
      return "warp";
    case Granularity::Auto:
      return "auto";
  }
  return "";
}

const char* to_string(Launcher launcher) { return launcher == Launcher::Device ? "device" : "host"; }

}  // namespace klap::analysis
