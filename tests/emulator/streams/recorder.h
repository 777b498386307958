// Operations and grids that write down when they begin, and end when the test says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/streams/grid_tree.h"
#include "emulator/streams/operations.h"

namespace klap::emulator {

// Begins, and says its name; ends at once unless `stays`.
class Named final : public Operation {
 public:
  Named(std::vector<std::string>& log, std::string name, bool stays = false)
      : log_(log), name_(std::move(name)), stays_(stays) {}

 private:
  bool begin() override {
    log_.push_back(name_);
    return !stays_;
  }
  std::vector<std::string>& log_;
  std::string name_;
  bool stays_;
};

inline void begin_all(Operations& operations) {
  while (operations.can_begin()) operations.begin_one();
}

// Grids by name, whose blocks exit when the test says so.
class GridRecorder {
 public:
  explicit GridRecorder(bool in_order = true, uint64_t seed = 1)
      : operations(in_order, seed),
        grids(operations, [this](Grid& grid) { started.push_back(name(grid)); }) {}

  std::shared_ptr<GridOperation> grid(const std::string& name, GridOperation* launcher = nullptr) {
    Launch launch;
    kernels_.push_back(std::make_unique<Function>());
    kernels_.back()->name = name;
    launch.kernel = kernels_.back().get();
    return grids.make(launch, launcher);
  }
  // A grid of the host's that runs already.
  std::shared_ptr<GridOperation> running(const std::string& name) {
    auto top = grid(name);
    operations.add(top, {});
    begin_all(operations);
    return top;
  }
  void exit(const std::shared_ptr<GridOperation>& grid) {
    grids.exited(*grid);
    begin_all(operations);
  }
  static std::string name(const Grid& grid) { return grid.launch.kernel->name; }

  Operations operations;
  GridTree grids;
  std::vector<std::string> started;

 private:
  std::vector<std::unique_ptr<Function>> kernels_;
};

}  // namespace klap::emulator
