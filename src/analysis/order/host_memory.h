// Memory by a name that the host knows, and on what it depends whether two such names mean memory apart.
//
// The host can ask the driver in which allocation a pointer lies. That tells where the program's accesses
// are, unless it computes addresses below the pointer: then the pointer may be the end of one array and mean
// that, though another one begins there. Numbers that the host passes may lead away from it, too
// (host_distance.h).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "analysis/expressions/expression.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/order/footprint.h"
#include "analysis/order/host_distance.h"
#include "analysis/order/launch_terms.h"

namespace klap::analysis {

// A signed integer in the parameters that the host launches the parent with.
struct HostNumber {
  uint32_t parameter_offset = 0, bytes = 0;
  auto operator<=>(const HostNumber&) const = default;
};

// Memory that a pointer in the parent's parameters points to, or a variable.
struct HostMemory {
  uint32_t parameter_offset = 0;  // where the pointer stands in the parameter block
  std::string variable;           // empty for a pointer
  // No address is computed from the pointer by going down from it, unless one of the numbers is negative.
  bool only_upwards = false;
  std::set<HostNumber> unless_negative = {};
  // The accesses may begin so far from the pointer, as well as at it.
  std::set<HostDistance> distances = {};
  auto operator<=>(const HostMemory&) const = default;
  [[nodiscard]] bool has_same_name(const HostMemory& other) const {
    return parameter_offset == other.parameter_offset && variable == other.variable;
  }
};

// The memory that roots in the parent name, as the host knows it; nothing where one of them is not known.
std::optional<std::set<HostMemory>> memory_of_parent(const FunctionFacts& parent,
                                                     const std::set<MemoryRoot>& roots);

// These two do the same for an access of the parent, and for a pointer argument of a launch. The addresses
// are known there, so the memory has its distances.
std::optional<std::set<HostMemory>> memory_of_parent(const FunctionFacts& parent, const MemoryAccess& access);
std::optional<std::set<HostMemory>> memory_of_argument(const FunctionFacts& parent,
                                                       const MemoryEffects& effects,
                                                       const Argument& argument);

// Adds the distances at which `address` may lie from the pointers. False if there are too many to tell.
bool add_distances(std::set<HostMemory>& memory, const DistanceScope& in, const Expr& address);

// The parameters of the parent which must not be negative for an address of the child never to lie below the
// pointer that `memory` names; nothing where it may lie there all the same. Integers that the child or the
// parent loads may be negative, too: a program that finds its elements by such numbers counts them from the
// array's begin.
std::optional<std::set<HostNumber>> numbers_that_lead_upwards(const FunctionFacts& child,
                                                              const LaunchTerms& terms, const Expr& address,
                                                              const HostMemory& memory);

}  // namespace klap::analysis
