// The tree of running grids.
#include "emulator/machine_grids.h"

#include <array>
#include <utility>

namespace klap::emulator {

bool GridOperation::begin() {
  after = before_begin;
  ++tree_.running_;
  tree_.start_(*this);
  return false;
}

GridTree::GridTree(Operations& operations, std::function<void(Grid&)> start)
    : operations_(operations), start_(std::move(start)) {
  operations_.set_listener(this);
}

std::shared_ptr<GridOperation> GridTree::make(Launch launch, GridOperation* launcher) {
  auto grid = std::make_shared<GridOperation>(*this);
  grid->id = next_id_++;
  grid->launch = std::move(launch);
  grid->parent = launcher;
  if (launcher != nullptr) grid->pending_limit = launcher->pending_limit;
  return grid;
}

void GridTree::add_child(const OperationRef& operation, GridOperation& launcher,
                         std::span<const OperationRef> predecessors) {
  operation->launcher = &launcher;
  ++launcher.children;
  ++pending_;
  operations_.add(operation, predecessors);
}

void GridTree::add_tail(const OperationRef& operation, GridOperation& launcher) {
  if (!launcher.before_tails) {
    launcher.before_tails = std::make_shared<Marker>();
    operations_.add(launcher.before_tails, {}, true);
  }
  operation->is_tail = true;
  ++launcher.tails;
  add_child(operation, launcher, std::array{launcher.before_tails, launcher.last_tail});
  launcher.last_tail = operation;
}

void GridTree::exited(Grid& grid) {
  auto& operation = static_cast<GridOperation&>(grid);
  operation.exited = true;
  --running_;
  check(operation);
}

// Called for an operation of any kind, when it has finished.
void GridTree::operation_finished(Operation& operation) {
  GridOperation* launcher = operation.launcher;
  if (launcher == nullptr) return;
  --pending_;
  --launcher->children;
  if (operation.is_tail) --launcher->tails;
  launcher->history = joined(launcher->history, operation.before_end);
  check(*launcher);
}

void GridTree::check(GridOperation& grid) {
  if (!grid.exited || grid.finished) return;
  if (grid.children == 0) {
    grid.finished = true;
    grid.before_end = grid.history;
    operations_.finish(grid);
  } else if (grid.children == grid.tails && grid.before_tails) {
    const OperationRef gate = std::exchange(grid.before_tails, nullptr);
    gate->before_begin = joined(gate->before_begin, grid.history);
    operations_.release(gate);
  }
}

}  // namespace klap::emulator
