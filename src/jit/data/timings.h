// How long the passes took that do the work, for statistics.
#pragma once

namespace klap::jit {

struct Timings {  // milliseconds
  double parse = 0, analyse = 0, templates = 0, transform = 0, link = 0;
};

}  // namespace klap::jit
