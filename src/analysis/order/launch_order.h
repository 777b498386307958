// Whether launches that CUDA runs one after another may overlap.
//
// CUDA runs the launches of a block's threads into the block's NULL stream one after another, with all that
// the children launch in turn. Their order respects how the threads have synchronised. Aggregated children
// overlap. For each pair of launches by different threads of a block, this overlap is one of three things:
//
//  - proven: no two accesses of the children can conflict. Both read; or both are the same commuting atomic
//    operation, whose result is not used; or both store the same value; or their addresses are apart, because
//    they are in different allocations, at different offsets, or a step for each thread apart (disjoint.h).
//    And no kernel of the parent's family, itself included, looks at what one of the children changes while
//    it runs. That takes strong accesses on both sides (atomics, volatile), since all others would race.
//    Whether a kernel in another stream of the host looks is not asked.
//  - tolerated: the program has the same conflict, in no order, between its blocks. Three conditions must
//    hold. The conflicting address is input data that the child loads, from memory that neither the parent
//    nor its children write, or children take slots from one counter. No part of it is loaded from where the
//    block's number alone leads (`sums[first[block] + i]`): that is the block's own place. Nothing fixes the
//    order of the launches (synchronisation.h). Children of more than one block of the parent come to both
//    accesses (launching_blocks.h, block_dependence.h).
//  - kept: everything else. A child begins when the child that its block launched before it is done.
//
// The launches of one thread have an order in every case. Only the executor asks whether it matters: then the
// thread's number tells nothing apart.
//
// Some proofs rest on how the host launches the parent: conditions say what must hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/order/child_accesses.h"
#include "analysis/order/host_memory.h"
#include "analysis/order/launching_blocks.h"
#include "analysis/order/recursive_group_memory.h"

namespace klap::analysis {

enum class Order : uint8_t { Proven, Tolerated, Kept };
const char* to_string(Order order);  // "proven", "tolerated", "kept"

// Conditions that a launch of the parent must meet so that its children may overlap.
struct OrderConditions {
  bool several_blocks = false;
  std::set<BlockLimit> block_limits;                  // that let several blocks through
  std::set<std::pair<HostMemory, HostMemory>> apart;  // in different allocations
  std::set<HostNumber> not_negative;
  void add(const OrderConditions& other);
  // `apart`, but with few places to look at: each pointer has the distances of all accesses through it.
  [[nodiscard]] std::set<std::pair<HostMemory, HostMemory>> apart_at_few_places() const;
};

struct OrderVerdict {
  Order order = Order::Proven;
  std::string why;  // the pair of accesses that decided; empty where nothing had to be decided
  OrderConditions conditions;
  // The stricter of both, with the conditions of both.
  void add(const OrderVerdict& other);
};

// Tells whether any launches of the kernels, with all that they lead to, may overlap. Nothing is known of the
// arguments but which of them are pointers that `parent` is given. Nothing is tolerated here, since a grid of
// one block may be among the launching ones. `kernels` and `launches` are all of a recursion; `of` lists the
// kernels that are asked about.
OrderVerdict order_in_recursive_group(const FunctionFacts& parent,
                                      const std::vector<std::shared_ptr<const FunctionFacts>>& kernels,
                                      const std::vector<GroupLaunch>& launches, const std::set<size_t>& of);

// Whether the parent launches kernels that are not among those that are judged.
enum class OtherLaunches : uint8_t { None, Unknown };

// Judges the launches of one parent.
class LaunchOrder {
 public:
  // `launches`: the sites of the parent, in text order. `block`: what is known of the parent's block.
  LaunchOrder(const FunctionFacts& parent, std::vector<LaunchedChild> launches, const KnownExtents& block,
              OtherLaunches others = OtherLaunches::None);
  ~LaunchOrder();
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  // Tells whether children of different threads of a block, by the launches at `a` and at `b` (numbers of
  // sites), may overlap. The verdict is proven where CUDA does not order such launches.
  [[nodiscard]] const OrderVerdict& of_pair(size_t a, size_t b) const;
  // Tells whether children of one thread, by launches at `a` and at `b`, may overlap, whatever their streams
  // are. Nothing is tolerated here.
  [[nodiscard]] OrderVerdict of_one_thread(size_t a, size_t b) const;
  // The verdict on all pairs by different threads together.
  [[nodiscard]] OrderVerdict of_all() const;
  // The conditions under which no child by the launch at `a` reads what it changes itself; nothing if it may.
  [[nodiscard]] std::optional<OrderConditions> of_own_reads(size_t a) const;

 private:
  std::unique_ptr<class OrderJudge> judge_;
  mutable std::map<std::pair<size_t, size_t>, OrderVerdict> known_;
};

}  // namespace klap::analysis
