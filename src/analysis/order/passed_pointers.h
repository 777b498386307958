// The pointers that the host gives a parent, as the kernels of a group pass them on.
//
// Kernels may exchange pointers from launch to launch (`step(next, now)`). So the memory behind each
// parameter alone says too little: both may be either array, and still they are never the same. This file
// follows whole launches. Each has a context: which of the host's pointers every parameter is. A kernel has
// few of them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/order/host_memory.h"
#include "analysis/order/launch_order.h"
#include "analysis/order/recursive_group_memory.h"

namespace klap::analysis {

class PassedPointers {
 public:
  // `launches` are all launches of the group's kernels, and those of the parent that the host launches.
  PassedPointers(const FunctionFacts& parent,
                 const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
                 const std::vector<GroupLaunch>& launches);

  // The conditions on a launch of the parent under which all launches of a kernel of the group meet
  // `conditions`, which are about the kernel's own parameters. Nothing if that cannot be told.
  [[nodiscard]] std::optional<OrderConditions> in_terms_of_host(size_t kernel,
                                                                const OrderConditions& conditions) const;

 private:
  struct Pointer {
    HostMemory memory;
    bool is_exact = false;  // the host's pointer itself, without an offset
    auto operator<=>(const Pointer&) const = default;
  };
  // By the offset of the parameter. A pointer that is missing may be any.
  struct Context {
    std::map<uint32_t, Pointer> pointers;
    std::map<uint32_t, uint32_t> numbers;  // those of the host that are passed on, by their offset there
    auto operator<=>(const Context&) const = default;
  };

  class Follower;
  static std::set<HostDistance> distances(const std::set<HostDistance>& of_pointer,
                                          const std::set<HostDistance>& from_there, const Context& context);
  static std::optional<HostMemory> host_memory(const HostMemory& memory, const Context& context);

  std::vector<std::set<Context>> contexts_;  // of each kernel
};

}  // namespace klap::analysis
