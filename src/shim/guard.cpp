#include "shim/guard.h"

#include "runtime/process.h"
#include "support/log.h"

namespace klap::shim {

namespace {
thread_local int depth = 0;
}

Inside::Inside() noexcept { ++depth; }
Inside::~Inside() { --depth; }
bool is_inside() noexcept { return depth != 0; }

bool may_act() noexcept { return depth == 0 && libcuda() && runtime::active(); }

void report_failure(const char* entry_point, const char* what) noexcept {
  try {
    log().warn("{}: runs unchanged: {}", entry_point, what);
  } catch (...) {
    // Nothing left to report with.
  }
}

}  // namespace klap::shim
