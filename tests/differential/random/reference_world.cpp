#include "random/reference_world.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <tuple>

#include "random/reference_block.h"

namespace klap::differential::random {

namespace {

// The thread that was the last one to begin comes first.
std::vector<Grid> by_threads_reversed(const std::vector<Grid>& grids) {
  std::vector<uint32_t> threads;
  for (const Grid& grid : grids) {
    if (std::ranges::find(threads, grid.thread) == threads.end()) threads.push_back(grid.thread);
  }
  std::vector<Grid> out;
  for (const uint32_t thread : std::views::reverse(threads)) {
    std::ranges::copy_if(grids, std::back_inserter(out),
                         [thread](const Grid& grid) { return grid.thread == thread; });
  }
  return out;
}

}  // namespace

void World::run() {
  const std::vector<StepRoom> rooms = step_rooms(program, layout);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Grid grid;
    grid.kernel = step.kernel;
    grid.grid = step.grid;
    grid.block = step.block;
    grid.own = rooms[i].begin;
    grid.depth = step.depth;
    grid.cells = step.stream * kCellWords;
    grid.cells_end = grid.cells + kCellWords;
    grid.number = cells.order().add_root();
    grid.room = layout.need(step.kernel, step.depth);
    if (rooms[i].previous) grid.previous = {false, *rooms[i].previous};
    for (size_t v = 0; v < step.arguments.size(); ++v) {
      grid.values.push_back(through(program.kernels[step.kernel].values[v], step.arguments[v]));
    }
    run_grid(grid);
  }
}

void World::run_grid(const Grid& grid) {
  std::vector<Grid> launched;
  const uint32_t blocks = product(grid.grid);
  for (uint32_t i = 0; i < blocks; ++i) {
    run_block(*this, grid, is_backwards() ? blocks - 1 - i : i, launched);
  }
  run_launched(launched);
}

// Streams one after another, but for FirstComeFirstServed, which keeps the order of all launches.
void World::run_launched(std::vector<Grid>& launched) {
  if (order_ == GridOrder::FirstComeFirstServed) {
    for (const Grid& grid : launched) run_grid(grid);
    return;
  }
  std::map<std::tuple<Stream, uint32_t, uint32_t>, std::vector<Grid>> streams;
  for (const Grid& grid : launched) {
    const uint32_t alone = grid.stream == Stream::FireAndForget ? grid.number : 0;
    streams[{grid.stream, grid.launcher, alone}].push_back(grid);
  }
  for (auto& [key, grids] : std::views::reverse(streams)) {
    if (order_ == GridOrder::Reversed) grids = by_threads_reversed(grids);
    for (const Grid& grid : grids) run_grid(grid);
  }
}

}  // namespace klap::differential::random
