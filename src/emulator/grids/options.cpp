#include "emulator/grids/options.h"

namespace klap::emulator {

const char* to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::Fast:
      return "fast";
    case ScheduleKind::RoundRobin:
      return "round-robin";
    case ScheduleKind::Random:
      return "random";
    case ScheduleKind::OneBlock:
      return "one-block";
    case ScheduleKind::StarveOne:
      return "starve-one";
    case ScheduleKind::ChildFirst:
      return "child-first";
    case ScheduleKind::ChildLast:
      return "child-last";
  }
  return "";
}

}  // namespace klap::emulator
