// The parts of a launch that depend on the block of the parent that makes it, and what a child does by them.
//
// A conflict between children is tolerated because children of several blocks have it, in no order. So they
// must come to the two accesses, all of them, and find the same places there. A child may be told which block
// has launched it, by an argument or by its extents, and then do something for one block alone: `if (b == 2)
// *sum += x`, `(b & 1 ? odd : even)[i] += x`, or `for (i = 0; i < n - b; ++i)`. No block conflicts with
// another one there. The children of one block then run one after another, and their result is fixed.
//
// The argument. Values are followed back to where they come from. One that comes from the block's index
// depends on the block, and so does one that is drawn: the result of an atomic operation at one address for
// the whole grid. Where several definitions may give a value, the branches that lead to each count as well.
// So do stores to shared and local memory, and calls that may ask for the index. What is loaded from global
// memory is input: that blocks find different data there is not seen. But an argument that all threads of a
// block load from one place (`kind[b]`) may name the block as well, unless it is just a bound. An order
// relation with such data is taken to hold for several blocks, as in launching_blocks.h, and so is that both
// are not equal (`if (neighbour != node)`). The difference of two values may also be one in which the block
// has no part, as that of `i < first + count`.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"

namespace klap::analysis {

class LaunchTerms;

// The parts of a launch that depend on the block.
struct BlockInLaunch {
  std::set<std::pair<uint32_t, uint32_t>> arguments;  // offsets in the child's parameters, and bytes
  // Arguments that are data which the block finds by its index.
  std::set<std::pair<uint32_t, uint32_t>> data;
  bool grid = false, block = false, shared = false;  // the child's extents, its dynamic shared memory
  [[nodiscard]] bool any() const { return !arguments.empty() || !data.empty() || grid || block || shared; }
};

BlockInLaunch block_in_launch(const FunctionFacts& parent, const Site& site);

// Judges the accesses of a child by what its launch says of the block.
class BlockInChild {
 public:
  // `terms` are those of the launch.
  BlockInChild(const FunctionFacts& child, const LaunchTerms& terms, BlockInLaunch launch);
  ~BlockInChild();
  BlockInChild(const BlockInChild&) = delete;
  BlockInChild& operator=(const BlockInChild&) = delete;

  // True if it may depend on the block whether, or how often, a thread comes to the instruction.
  [[nodiscard]] bool decides_over(uint32_t instruction) const;
  // True if the address that the instruction has in that operand may depend on the block, otherwise than by
  // an argument that it is computed from.
  [[nodiscard]] bool is_in_address(uint32_t instruction, uint32_t operand) const;

 private:
  std::unique_ptr<class BlockDependence> dependence_;
};

}  // namespace klap::analysis
