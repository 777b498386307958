// How far from the host's pointer an address of a kernel lies, as far as the host passes the numbers for it.
//
// The host can ask the driver in which allocation a pointer lies. That tells where the accesses through it
// are only if they stay in that allocation. C++ demands that of pointers. But programs compute with addresses
// as integers, too, or pass `a - low` for an array that is read at `low + i`. So a distance is a sum of
// products of numbers in the parent's parameters, which the host knows at the launch. The pointer and the
// distance together are where the accesses begin. Parts of an address that no parameter gives, such as a
// thread's place or a loaded index, are left out: they count elements of the array.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/facts/facts.h"
#include "analysis/launches/sites.h"

namespace klap::analysis {

// A number in the parameters that the host launches the parent with.
struct HostFactor {
  uint32_t parameter_offset = 0, bytes = 0;
  bool is_signed = false;
  auto operator<=>(const HostFactor&) const = default;
};

// coefficient * factor * factor * ..., modulo 2^64; without factors a constant.
struct HostProduct {
  std::vector<HostFactor> factors;
  uint64_t coefficient = 0;
  auto operator<=>(const HostProduct&) const = default;
};

// The sum of all, divided, in bytes.
struct HostDistance {
  std::vector<HostProduct> products;
  uint64_t divisor = 1;
  auto operator<=>(const HostDistance&) const = default;
};
HostDistance operator+(const HostDistance& a, const HostDistance& b);

// A function whose expressions are read, and the launch that gave it its parameters: none for the parent.
struct DistanceScope {
  const FunctionFacts* facts = nullptr;
  const Site* launched_by = nullptr;
  const FunctionFacts* launcher = nullptr;
};

// The distances at which an address may lie from the pointer in the parent's parameters at `pointer`. Nothing
// if there are too many.
std::optional<std::set<HostDistance>> host_distances(const DistanceScope& in, const Expr& address,
                                                     uint32_t pointer);

// The distances without those that lie between others: of distances that differ in a constant, the least and
// the most are kept. Everything between two places of an allocation is in it.
std::set<HostDistance> outermost(const std::set<HostDistance>& distances);

// "4*p[16:4] - 8", "(4*p[16:4])/3".
std::string to_string(const HostDistance& distance);

}  // namespace klap::analysis
