// This file follows pointers through a recursion, from what the host passes to what the launched kernels
// access.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/order/child_accesses.h"
#include "analysis/order/host_memory.h"

namespace klap::analysis {

// A launch in a recursion: of kernel `to` by kernel `from`, or by the parent that the host launches.
struct GroupLaunch {
  static constexpr size_t kHost = ~size_t{0};
  size_t from = kHost;  // into the list of kernels
  const Site* site = nullptr;
  size_t to = 0;
};

// Finds the memory of all accesses of the kernels of a recursion. `parent_effects` are those of the parent
// that the host launches.
void find_recursive_group_memory(const FunctionFacts& parent, const MemoryEffects& parent_effects,
                                 const std::vector<GroupLaunch>& launches,
                                 const std::vector<std::unique_ptr<ChildAccesses>>& kernels);

}  // namespace klap::analysis
