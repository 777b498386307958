// Turns, ends of blocks and grids, and faults; the parts are in executor/.
#include "emulator/executor/executor.h"

#include <algorithm>

#include "emulator/executor/report.h"
#include "emulator/executor/residency.h"
#include "emulator/executor/schedule.h"
#include "emulator/grids/context.h"
#include "emulator/interpreter/interpreter.h"
#include "support/error.h"

namespace klap::emulator {

using namespace execution;

struct Executor::State {
  State(const ExecutorOptions& options, Memory& memory, MemoryModel& order, ExecutorListener& listener)
      : context{options, memory, order, listener, options.order.any(), Random(options.seed)} {}

  void run(const TurnPlan& turn);
  void finish(Block& block);
  void finish(GridRun& run);
  void fail(GridRun& run, int code, const std::string& text);
  void give_up();
  void refuse();
  void drop_blocks(const GridRun& run);

  Context context;
  Residency residency{context};
  Schedule schedule{context};
  Interpreter interpreter{context};
  std::vector<GridRun*> cannot_run;  // grids that end at once, but not within start()
};

void Executor::State::run(const TurnPlan& turn) {
  Block& block = *turn.block;
  GridRun& grid = *block.run;
  uint64_t before = context.steps;
  try {
    interpreter.run(turn);
  } catch (const Fault& fault) {
    fail(grid, fault.code(), interpreter.place(fault.lane()) + ": " + fault.what());
    return;
  } catch (const Error& error) {  // the listener's
    int code = grid.grid->error_code != 0 ? grid.grid->error_code : kNotSupported;
    fail(grid, code, interpreter.place(interpreter.calling_lane()) + ": " + error.what());
    return;
  }
  schedule.ran(context.steps - before, interpreter.is_waiting());
  if (context.ordered) context.order.advance(context.steps - before);
  if (interpreter.waits_for_children()) residency.give_up_room(block);
  if (block.live_warps == 0) finish(block);
  if (context.options.max_steps != 0 && context.steps > context.options.max_steps) give_up();
}

void Executor::State::finish(Block& block) {
  GridRun& run = *block.run;
  Grid& grid = *run.grid;
  schedule.finished(block);
  uint64_t id = block.id;
  residency.remove(block);
  ++grid.blocks_finished;
  context.listener.block_finished(grid, id);
  if (grid.blocks_finished == grid.block_count()) finish(run);
}

void Executor::State::finish(GridRun& run) {
  Grid& grid = *run.grid;
  std::erase(cannot_run, &run);
  residency.forget(run);
  context.listener.blocks_finished(grid);
}

void Executor::State::drop_blocks(const GridRun& run) {
  std::vector<Block*> blocks = residency.blocks();
  for (Block* block : blocks) {
    if (block->run != &run) continue;
    schedule.finished(*block);
    residency.remove(*block);
  }
}

void Executor::State::fail(GridRun& run, int code, const std::string& text) {
  Grid& grid = *run.grid;
  if (grid.error.empty()) grid.error = text;
  if (grid.error_code == 0) grid.error_code = code;
  drop_blocks(run);
  finish(run);
}

// Too many steps: every grid ends, saying where it stood.
void Executor::State::give_up() {
  while (!residency.grids().empty()) {
    GridRun& run = *residency.grids().front();
    std::string text = "gave up after " + std::to_string(context.steps) + " thread-instructions (limit " +
                       std::to_string(context.options.max_steps) + "):\n";
    for (const Block* block : residency.blocks())
      if (block->run == &run) text += describe(*block);
    fail(run, kTimeout, text);
  }
}

// The machine asks before it launches, so this is for clients that do not ask.
void Executor::State::refuse() {
  GridRun& run = *cannot_run.back();
  cannot_run.pop_back();
  const std::string& unsupported = run.grid->launch.kernel->unsupported;
  if (unsupported.empty()) {
    finish(run);
  } else {
    fail(run, kNotSupported, unsupported);
  }
}

Executor::Executor(const ExecutorOptions& options, Memory& memory, MemoryModel& order,
                   ExecutorListener& listener)
    : state_(std::make_unique<State>(options, memory, order, listener)) {}
Executor::~Executor() = default;

void Executor::start(Grid& grid) {
  GridRun& run = state_->residency.add(grid);
  if (grid.block_count() == 0 || !grid.launch.kernel->unsupported.empty()) state_->cannot_run.push_back(&run);
}

Executor::Outcome Executor::turn() {
  State& s = *state_;
  if (!s.cannot_run.empty()) {
    s.refuse();
    return Outcome::Ran;
  }
  s.residency.fill();
  auto turn = s.schedule.choose(s.residency.blocks());
  if (!turn && s.residency.fill_early()) turn = s.schedule.choose(s.residency.blocks());
  if (turn) {
    s.run(*turn);
    return Outcome::Ran;
  }
  return s.residency.grids().empty() ? Outcome::Idle : Outcome::Deadlock;
}

std::string Executor::deadlock_report() const {
  std::string text;
  for (const Block* block : state_->residency.blocks()) text += describe(*block);
  for (const auto& run : state_->residency.grids())
    if (run->unstarted() != 0)
      text += "kernel " + *run->kernel_name + " (grid " + std::to_string(run->grid->id) +
              "): " + std::to_string(run->unstarted()) + " blocks have not started\n";
  return text;
}

void Executor::clear() {
  State& s = *state_;
  s.cannot_run.clear();
  while (!s.residency.grids().empty()) {
    GridRun& run = *s.residency.grids().front();
    s.drop_blocks(run);
    s.residency.forget(run);
  }
}

uint32_t Executor::occupancy(const DeviceShape& device, const Function& kernel, uint32_t threads,
                             uint32_t dynamic_shared) {
  return execution::occupancy(device, kernel, threads, dynamic_shared);
}

uint64_t Executor::steps() const { return state_->context.steps; }

void Executor::read(const ThreadCall& call, uint64_t address, std::span<std::byte> out) {
  state_->interpreter.read(call, address, out);
}

void Executor::write(const ThreadCall& call, uint64_t address, std::span<const std::byte> bytes) {
  state_->interpreter.write(call, address, bytes);
}

}  // namespace klap::emulator
