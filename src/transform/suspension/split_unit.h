// Units with their kernels split where they wait for their children (split_kernel.h).
//
// Called functions cannot stop, so kernels have those that wait inlined first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptx/tree.h"

namespace klap::transform {

// A wait that a kernel is split at.
struct SplitWait {
  std::string place;  // "line 41:2" of the PTX, or "kernels.cu:12:3" where that says so
  std::string kernel;
  uint64_t bytes_per_thread = 0;  // that are kept there, at most
};

struct SplitUnit {
  std::string text;
  std::vector<SplitWait> waits;
  // Functions that wait or launch and that no kernel of the unit needs any more. No other unit may call them.
  std::vector<std::string> waiting_functions;
  std::string problem;  // why a kernel cannot be split, with its name and a place; then there is no text
};

// The unit with its kernels split at all waits that matter. Nothing if there are none.
std::optional<SplitUnit> split_at_waits(const ptx::Module& unit);

}  // namespace klap::transform
