// Grids and their launches: when a grid is finished, and when its tail launches may begin.
//
// A grid is finished when its blocks have exited and all its launches are finished. Its tail launches come
// last: they begin, one after another, once everything else has finished. A tail launch may make tail
// launches itself. It is finished only after those, so they come before the next one of the grid above it.
//
// The host may launch a grid as the dependent of another one (programmatic dependent launch). It begins when
// the blocks of that one, its primary, have exited. The primary's writes need not be visible then, nor need
// its launches be done. The primary is finished some time later, as the schedule has it. No block lets its
// dependents begin earlier: griddepcontrol.launch_dependents allows that, and asks for nothing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "emulator/grids/grid.h"
#include "emulator/streams/operations.h"

namespace klap::emulator {

class GridTree;

struct GridOperation final : public Operation, public Grid {
  explicit GridOperation(GridTree& tree) : tree_(tree) {}
  bool exited = false;        // all its blocks
  uint32_t tails = 0;         // of `children`: tail launches
  OperationRef before_tails;  // finished when all but the tail launches is; null if there are none
  OperationRef last_tail;
  uint32_t pending_limit = 0;
  OperationRef exit;                       // finished when its blocks have exited; null if nothing waits
  std::vector<GridOperation*> dependents;  // not finished before it is
  bool is_settling = false;                // all is done, but not yet visible

 private:
  bool begin() override;
  GridTree& tree_;
};

class GridTree final : public OperationsListener {
 public:
  // `start` sets a grid's blocks going. The code that runs them calls exited() when all of them have ended.
  GridTree(Operations& operations, std::function<void(Grid&)> start);

  // A grid that is in no stream yet. `launcher` is null for one that the host launches.
  std::shared_ptr<GridOperation> make(Launch launch, GridOperation* launcher);
  // Makes the grid a dependent of `primary`, which is not finished. Returns the operation that it may begin
  // after.
  OperationRef make_dependent(GridOperation& grid, const std::shared_ptr<GridOperation>& primary);
  // Adds an operation that device code put into a stream (a grid or anything else). The launcher is not
  // finished before it.
  void add_child(const OperationRef& operation, GridOperation& launcher,
                 std::span<const OperationRef> predecessors);
  // Adds an operation as the launcher's next tail launch.
  void add_tail(const OperationRef& operation, GridOperation& launcher);
  void exited(Grid& grid);

  // The number of launches by device code that are not finished.
  [[nodiscard]] uint64_t pending() const { return pending_; }
  // Grids whose blocks run or wait for a place on the device.
  [[nodiscard]] uint64_t running() const { return running_; }
  void clear() { pending_ = running_ = 0; }

 private:
  friend struct GridOperation;
  void operation_finished(Operation& operation) override;
  void check(GridOperation& grid);
  void end_exit(GridOperation& primary);
  void finish(GridOperation& grid);
  class Settling;

  Operations& operations_;
  std::function<void(Grid&)> start_;
  uint64_t next_id_ = 1;
  uint64_t pending_ = 0, running_ = 0;
};

}  // namespace klap::emulator
