// Loop launches: the conditions for a consumer that keeps each thread's launches in order.
//
// The number of a thread's launches is not known. So its children are recorded in a queue of fixed size, each
// with the child that the same thread launched before. The consumer begins a child when that earlier one is
// done. Both are run by the same kernel, and the child may read the results of the earlier one, so it must
// read them coherently. If no stream keeps an order, the consumer keeps none.
//
// A retry loop, which launches again because too many launches wait, is such a loop as well. A recorded
// launch succeeds, and one that is not recorded is the program's own. If a launch without room is refused, a
// retry loop would never end, as no child runs before the parent is done.
//
// A kernel may launch at several places of which one stands in a loop, as compilers leave it of most loops
// that they unroll. Then all its launches share the queue, and a thread's order is one over all of them.
// Nothing else orders the children in the queue, so the program must not ask for another order.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// A kernel with the block and shared memory that all its launches give it. With another block it counts as
// another kernel.
struct LoopKernel {
  const ptx::Function* function = nullptr;
  std::array<uint32_t, 3> block{};
  uint32_t shared_bytes = 0;
  [[nodiscard]] uint32_t threads() const { return block[0] * block[1] * block[2]; }
  bool operator==(const LoopKernel&) const = default;
};

// OrderScope names the launches that a recorded launch comes behind: none, those of its thread, or those of
// its whole block.
enum class OrderScope : uint8_t { None, Thread, Block };

// The scope of the order that a launch by this site keeps.
OrderScope order_scope(const FunctionFacts& parent, const Site& site, const Aggregation& aggregation);

// True if launches of a scope are refused when the queue is full, as CUDA refuses launches beyond its limit.
// Otherwise the program's own call makes them. `in_groups`: groups of blocks launch apart.
constexpr bool is_refused_when_full(OrderScope scope, bool in_groups) {
  return scope == OrderScope::Block || (scope == OrderScope::Thread && in_groups);
}

// All launches of a parent that share a queue.
struct LoopLaunches {
  std::vector<LoopKernel> kernels;  // a kernel's number is its place here
  std::vector<uint32_t> targets;    // its number for each site, in text order
  std::vector<OrderScope> scopes;   // of each site, likewise
  [[nodiscard]] bool has(OrderScope scope) const;
  [[nodiscard]] bool in_order() const { return has(OrderScope::Thread) || has(OrderScope::Block); }
  // True if some launch is refused when the queue is full.
  [[nodiscard]] bool may_refuse(bool in_groups) const;
};

// `children` are the kernels that the parent's sites launch, with constant blocks and shared memory.
LoopLaunches loop_launches_of(const FunctionFacts& parent, const std::vector<const ptx::Function*>& children,
                              const Aggregation& aggregation);

// The first rejection to running `child`, which `site` launches, in that consumer. All other checks have
// passed so far.
std::optional<Rejection> check_loop_launch(const ptx::Module& child_module, const ptx::Function& child,
                                           const FunctionFacts& parent, const Site& site,
                                           const Aggregation& aggregation);

// The first rejection to one queue for all launches of the parent. Each launch has passed the checks by
// itself.
std::optional<Rejection> check_common_queue(const ptx::Module& child_module, const FunctionFacts& parent,
                                            const LoopLaunches& loop_launches);

// True for a statement that a loop around a launch may hold besides plain code: the launch's own calls and
// queries of its error.
bool is_part_of_launching(const FunctionFacts& parent, const ptx::Statement& instruction);

}  // namespace klap::analysis
