// The tree of running grids.
#include "emulator/streams/grid_tree.h"

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

// The end of a grid that has dependents: an operation of its own, so that the schedule chooses when.
class GridTree::Settling final : public Operation {
 public:
  Settling(GridTree& tree, GridOperation& grid) : tree_(tree), grid_(grid) {}

 private:
  bool begin() override {
    tree_.finish(grid_);
    return true;
  }
  GridTree& tree_;
  GridOperation& grid_;  // kept by Operations until it is finished
};

OperationRef GridTree::make_dependent(GridOperation& grid, const std::shared_ptr<GridOperation>& primary) {
  grid.primary = primary;
  primary->dependents.push_back(&grid);
  if (primary->exit) return primary->exit;
  primary->exit = std::make_shared<Marker>();
  operations_.add(primary->exit, {}, true);
  if (primary->exited) end_exit(*primary);
  return primary->exit;
}

// The primary's own accesses are not visible; accesses that were done before it began are.
void GridTree::end_exit(GridOperation& primary) {
  primary.exit->before_end = primary.after;
  operations_.finish(*primary.exit);
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
  if (operation.exit) end_exit(operation);
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
  if (!grid.exited || grid.finished || grid.is_settling) return;
  if (grid.children == 0) {
    if (grid.primary && !grid.primary->finished) return;  // which comes back to this when it is
    if (grid.dependents.empty()) return finish(grid);
    grid.is_settling = true;
    operations_.add(std::make_shared<Settling>(*this, grid), {});
  } else if (grid.children == grid.tails && grid.before_tails) {
    const OperationRef gate = std::exchange(grid.before_tails, nullptr);
    gate->before_begin = joined(gate->before_begin, grid.history);
    operations_.release(gate);
  }
}

void GridTree::finish(GridOperation& grid) {
  // Later work in the stream follows both grids.
  if (const auto primary = std::move(grid.primary)) grid.history = joined(grid.history, primary->history);
  grid.finished = true;
  grid.before_end = grid.history;
  const std::vector<GridOperation*> dependents = std::move(grid.dependents);
  operations_.finish(grid);
  for (GridOperation* const dependent : dependents) check(*dependent);
}

}  // namespace klap::emulator
