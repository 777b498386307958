#include "analysis/facts/granularity.h"

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

const char* to_string(Ordering ordering) {
  switch (ordering) {
    case Ordering::Auto:
      return "auto";
    case Ordering::Stream:
      return "stream";
    case Ordering::Relaxed:
      return "relaxed";
  }
  return "";
}

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

std::optional<Granularity> parse_granularity(std::string_view name) {
  using enum Granularity;
  for (const Granularity granularity : {None, Warp, Block, MultiBlock, Grid, Auto}) {
    if (name == to_string(granularity)) return granularity;
  }
  return std::nullopt;
}

std::optional<Ordering> parse_ordering(std::string_view name) {
  for (const Ordering ordering : {Ordering::Auto, Ordering::Stream, Ordering::Relaxed}) {
    if (name == to_string(ordering)) return ordering;
  }
  return std::nullopt;
}

std::optional<Launcher> parse_launcher(std::string_view name) {
  for (const Launcher launcher : {Launcher::Auto, Launcher::Host, Launcher::Device}) {
    if (name == to_string(launcher)) return launcher;
  }
  return std::nullopt;
}

}  // namespace klap::analysis
