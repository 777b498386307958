// Launches in a loop: what must hold for a consumer that keeps each thread's launches in order.
//
// How often a thread launches is not known, so its children are recorded in a queue of fixed size, each with
// the one that the same thread launched before. The consumer begins a child when that one is done. The child
// is then run by the same kernel as the one before it, whose results it may read: it must read them
// coherently. Where no stream has an order, neither has the consumer.
//
// A loop that launches again because too many launches wait is such a loop as well: a recorded launch
// succeeds, and one that is not recorded is the program's own. Where a launch without room is refused, such a
// loop would never end, as no child is run before the parent is done.
//
// Where a kernel launches at several places and one of them stands in a loop, as compilers leave it of most
// loops that they unroll, all of its launches share the queue: a thread's order is one over all of them.
// Nothing else orders what is in the queue, so nothing else may be what the program asks for.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// A kernel with what all its launches give it; the same kernel counts once for each block.
struct ChainedKernel {
  const ptx::Function* function = nullptr;
  std::array<uint32_t, 3> block{};
  uint32_t shared_bytes = 0;
  [[nodiscard]] uint32_t threads() const { return block[0] * block[1] * block[2]; }
  bool operator==(const ChainedKernel&) const = default;
};

// Which launches a recorded launch comes behind: none, those of its thread, or those of its whole block.
enum class OrderScope : uint8_t { None, Thread, Block };

// The scope of the order that a launch by this site keeps.
OrderScope order_scope(const FunctionFacts& parent, const Site& site, const Way& way);

// Whether launches of a scope are refused where the queue is full, as CUDA refuses those beyond its limit;
// others are then made by the program's own call. `in_groups`: groups of blocks launch apart.
constexpr bool is_refused_when_full(OrderScope scope, bool in_groups) {
  return scope == OrderScope::Block || (scope == OrderScope::Thread && in_groups);
}

// All launches of a parent, where they share a queue.
struct Chained {
  std::vector<ChainedKernel> kernels;  // a kernel's number is its place here
  std::vector<uint32_t> targets;       // its number for each site, in text order
  std::vector<OrderScope> scopes;      // of each site, likewise
  [[nodiscard]] bool has(OrderScope scope) const;
  [[nodiscard]] bool in_order() const { return has(OrderScope::Thread) || has(OrderScope::Block); }
  // Whether some launch is refused where the queue is full.
  [[nodiscard]] bool may_refuse(bool in_groups) const;
};

// `children` are the kernels that the parent's sites launch, with constant blocks and shared memory.
Chained chain_of(const FunctionFacts& parent, const std::vector<const ptx::Function*>& children,
                 const Way& way);

// The first objection to running `child`, which `site` launches, in that consumer; the rest was found right
// so far.
std::optional<Objection> object_to_chaining(const ptx::Module& child_module, const ptx::Function& child,
                                            const FunctionFacts& parent, const Site& site, const Way& way);

// The first objection to one queue for all launches of the parent, each of which was found right by itself.
std::optional<Objection> object_to_sharing_queue(const ptx::Module& child_module, const FunctionFacts& parent,
                                                 const Chained& chained);

// True for what a loop around a launch may hold besides, though it is no plain code: the launch's own calls
// and questions for its error.
bool is_part_of_launching(const FunctionFacts& parent, const ptx::Statement& instruction);

}  // namespace klap::analysis
