// Children that launch: the conditions for a persistent consumer that runs a recursion from a worklist.
//
// Such a consumer runs a recursive group: the kernels that a parent launches and those that they launch in
// turn, at any depth. The parent may be among them. Each of these kernels is a parent at the same time, so
// its own launches must be ones that could be aggregated. One kernel runs all of them together with their
// launchers. So each must have one block wherever it is launched, and must read memory coherently. The
// launching kernel may give that block (`<<<grid, blockDim.x>>>`). Followed back, its extents are constants,
// or those of the block that the host launches the parent with. The latter is known before anything runs. The
// descendants of one child do not run before those of the next. So a thread may make only one launch that has
// to wait for another. If the NULL stream would keep children apart, no update may depend on it.
//
// The executor runs such a group, too (Aggregation::is_executed). It keeps the order of all streams unless
// nothing can tell (executed/order.h), and takes each block's size from the launch. So conditions on orders
// and blocks do not hold for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/executed/order.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"
#include "analysis/legality/sizes.h"
#include "analysis/legality/sync_scope.h"
#include "analysis/order/launch_order.h"

namespace klap::analysis {

// A kernel of the group, and the values that all its launches have in common.
struct GroupKernel {
  std::shared_ptr<const FunctionFacts> facts;
  LaunchBlock block{};  // an extent that is missing is that of the block the host launches the parent with
  uint32_t shared_bytes = 0;
  SyncScope sync_scope = SyncScope::Thread;
  // Only for the executor: the most threads of its blocks. An extent that is missing may be any then.
  uint32_t most_threads = 0;
  // Likewise: some launch's shared memory is not constant, and `shared_bytes` are the most that one can have.
  bool shared_differs = false;
  std::vector<ExecutedOrder> orders = {};  // only for the executor: of the kernel's own launches
  BlockBound bound{};  // likewise; the other block is the one that the host launches the parent with

  [[nodiscard]] bool has_constant_block() const;
  // Throws std::bad_optional_access unless it is constant.
  [[nodiscard]] uint32_t threads() const { return *block[0] * *block[1] * *block[2]; }
  // The block that checks assume. If the block is not known, it stands for the one property that each launch
  // ensures where its threads meet: the warps are full.
  [[nodiscard]] std::array<uint32_t, 3> judged_block() const;
};

// The known extents of a parent's blocks, if the parent may be one of the kernels. They hold where the host
// launches it in blocks of that size, and where the consumer runs it.
KnownExtents known_block(const std::vector<GroupKernel>& kernels, const FunctionFacts& parent,
                         const KnownExtents& by_host);

struct RecursiveGroup {
  std::vector<GroupKernel> kernels;  // in text order; a kernel's number is its place here
  OrderVerdict order;                // for the launches of different threads of a block
  // Only for the executor: of the launches that the parent makes when the host launches it.
  std::vector<ExecutedOrder> parent_orders = {};

  // Only for the executor: the conditions of all launches without order.
  [[nodiscard]] OrderConditions executed_conditions() const;

  // Throws Error(Internal) if there is no such kernel.
  [[nodiscard]] uint32_t number_of(const std::string& kernel) const;
  // The targets of all sites of `parent`, which belongs to the group or launches it, in the order of the
  // sites.
  [[nodiscard]] std::vector<uint32_t> targets_of(const FunctionFacts& parent) const;
};

struct RecursiveGroupVerdict {
  std::shared_ptr<const RecursiveGroup> recursive_group;  // null where there is a rejection
  std::optional<Rejection> rejection;
};
// Checks the recursive group of `parent`, all of whose sites launch kernels that `module` defines. The result
// is the group, or the first rejection to running it from a worklist. `conditions`: the executor may rely on
// pointers of the host's launch that are apart.
RecursiveGroupVerdict judge_recursive_group(const std::shared_ptr<const FunctionFacts>& parent,
                                            const ptx::Module& module, const Aggregation& aggregation,
                                            bool conditions = false);

}  // namespace klap::analysis
