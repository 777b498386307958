// The counts tell how many grids the host and device code launched. The emulated driver's control functions
// give them to tests, which watch the limit of pending launches with them.
#pragma once

#include <cstdint>

namespace klap::emulator {

struct DeviceLaunchCounts {
  uint64_t device_launches = 0;  // that were made
  uint64_t refused = 0;          // with an error, the pending limit's among them
  uint64_t over_limit = 0;
  uint64_t host_launches = 0;
};

}  // namespace klap::emulator
