// Decisions about the device memory of a whole module (plan/find_device_memory.h).
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace klap::jit {

struct DeviceMemory {
  std::set<size_t> units;    // that mention the functions
  bool has_runtime = false;  // cudaMalloc or cudaFree among them
  bool in_chunks = false;    // not by warp alone
  std::string tag;           // of the module, in the names of its functions
  std::string rejection;     // why it is not done; empty if it is

  [[nodiscard]] bool is_aggregated() const { return !units.empty() && rejection.empty(); }
  // The unit's code goes into the link as PTX.
  [[nodiscard]] bool changes(size_t unit) const { return is_aggregated() && units.contains(unit); }
};

}  // namespace klap::jit
