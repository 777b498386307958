// The accesses that the launches of one site make: the child's footprint in terms of the launch.
//
// launch_order.h compares two footprints access by access. So each access carries the facts that these
// comparisons need: how the host knows its memory, and its address and value in terms of the launching
// thread. It also carries the comparisons that a thread has passed before it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/order/disjoint.h"
#include "analysis/order/footprint.h"
#include "analysis/order/host_memory.h"
#include "analysis/order/launch_terms.h"

namespace klap::analysis {

// A launch site with the kernel that it launches.
struct LaunchedChild {
  const Site* site = nullptr;
  std::shared_ptr<const FunctionFacts> child;
};

struct ChildAccess {
  const MemoryAccess* is = nullptr;
  // The memory that it may access, as the host knows it; nothing if part of that is not known.
  std::optional<std::set<HostMemory>> memory;
  AccessShape shape;
  Expr value;           // in terms of the launch; unknown where that is not computed
  std::string literal;  // the value's text where it is one
  AddressSources sources;
  std::vector<uint32_t> counters;  // atomic additions of a constant whose results are in the address
};

struct ChildAccesses {
  // `block`: what is known of the parent's block.
  ChildAccesses(const FunctionFacts& parent, LaunchedChild launch, const KnownExtents& block);
  ChildAccesses(const ChildAccesses&) = delete;
  ChildAccesses& operator=(const ChildAccesses&) = delete;

  const Site* site;
  std::shared_ptr<const FunctionFacts> facts;
  MemoryEffects effects;
  Footprint footprint;
  LaunchTerms terms;
  std::vector<ChildAccess> accesses;

 private:
  void add(const MemoryAccess& access);
  void find_value(ChildAccess& out, const ptx::Statement& s) const;
  // The text of a literal, also where it has been moved into a register.
  [[nodiscard]] std::string literal_of(const std::string& operand) const;
  // Comparisons that every thread has passed that comes to the instruction.
  [[nodiscard]] std::vector<Bounded> bounds_at(uint32_t instruction) const;
  void add_bound(std::vector<Bounded>& out, uint32_t branch, bool when) const;
};

}  // namespace klap::analysis
