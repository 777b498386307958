// Which launches the executor may run without the order of their stream, because nothing can tell.
//
// A site gets that freedom only if the loss is shown to change nothing. The stream's order says that one grid
// is complete before the next one begins. It can be seen in four ways, and each must be ruled out:
//
//  - By the grids themselves. So each pair of launches that may stand in one stream is compared: those of
//    different threads of a block, and those of one thread if control leads from one to the other. The site
//    is compared with itself, too. All accesses must be proven apart (order/launch_order.h), in each launch
//    of the kernel. That may depend on pointers that the host gives the parent. Then there is a variant of
//    the parent with all orders beside this one. The children launch nothing, so their own accesses are all
//    there is.
//  - By calls that wait for the stream. A kernel that copies or fills memory keeps its orders. So does any
//    kernel of a module that uses events. Launches whose stream only the run tells are compared as if they
//    were in the same one. The completion of the launching grid, and with it tail launches, waits for all
//    grids in any case.
//  - By grids beside them that get a message from one of these. A message takes a fence, or a load or store
//    with an order of its own. So no grid that may stand in the stream has one.
//  - By grids beside them that look at sums while they grow. Updates by several grids commute, but their
//    partial results differ. So if the children update memory atomically, no kernel of the group may look at
//    memory that others change.
//
// Other launches of the stream keep their order among themselves. If a grid is between two of them, it
// conflicts with neither, so their order need not pass through it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/order/child_accesses.h"
#include "analysis/order/launch_order.h"

namespace klap::analysis {

// The blocks of the launching kernel in which a site's launches need no order.
enum class WithoutOrder : uint8_t { Never, InOneRow, InOneLayer, Always };

struct ExecutedOrder {
  WithoutOrder without = WithoutOrder::Never;
  std::string why_kept = {};        // empty unless Never
  OrderConditions conditions = {};  // on the host's launch of the parent, unless Never

  [[nodiscard]] bool may_be_lost() const { return without != WithoutOrder::Never; }
};

// True if the kernel looks at memory while others may change it: by atomics whose results it uses, or by
// loads that are not weak.
bool looks_at_changes(const FunctionFacts& kernel);

// How a kernel is run whose launches are asked about.
struct ExecutedKernel {
  KnownExtents block{};      // as far as its extents are known wherever it runs
  bool asks_block = false;   // generated code may ask for extents that are not known
  bool group_looks = false;  // looks_at_changes() of some kernel that the executor runs
  // The conditions on the host's launch of the parent under which these hold, which are about the kernel's
  // parameters. Nothing if they may not be made. No condition may be if there is no function.
  std::function<std::optional<OrderConditions>(const OrderConditions&)> in_terms_of_host = {};
};

// The answer for each site of `kernel`, whose children `launches` are, in the order of its sites.
std::vector<ExecutedOrder> executed_orders(const FunctionFacts& kernel,
                                           const std::vector<LaunchedChild>& launches,
                                           const ExecutedKernel& run);

}  // namespace klap::analysis
