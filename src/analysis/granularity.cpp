#include "analysis/granularity.h"

namespace klap::analysis {

const char* to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::None:
      return "none";
    case Granularity::Grid:
      return "grid";
    case Granularity::Block:
      return "block";
    case Granularity::MultiBlock:
      return "multiblock";
    case Granularity::Warp:
      return "warp";
    case Granularity::Auto:
      return "auto";
  }
  return "";
}

const char* to_string(Ordering ordering) { return ordering == Ordering::Stream ? "stream" : "relaxed"; }

const char* to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::Host:
      return "host";
    case Launcher::Device:
      return "device";
    case Launcher::Auto:
      return "auto";
  }
  return "";
}

}  // namespace klap::analysis
