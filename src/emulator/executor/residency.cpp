// See residency.h. A block takes as much of a multiprocessor as its threads, its shared memory and its
// registers ask for; several grids share the device.
#include "emulator/executor/residency.h"

#include <algorithm>
#include <utility>

#include "support/error.h"

namespace klap::emulator::execution {
namespace {

constexpr uint32_t kReservedShared = 1024;  // of every block, by the system
constexpr uint32_t kRegistersOfMultiprocessor = 64 << 10, kRegisterUnit = 256;
constexpr uint64_t kWindow = 64;  // so far ahead blocks start out of order, where they may

uint32_t whole_warps(uint64_t threads) {
  return static_cast<uint32_t>((threads + kLanes - 1) / kLanes * kLanes);
}

uint32_t threads_of(const Launch& launch) { return launch.block[0] * launch.block[1] * launch.block[2]; }

uint32_t nesting(const Grid& grid) {
  uint32_t depth = 0;
  for (const Grid* parent = grid.parent; parent; parent = parent->parent) ++depth;
  return depth;
}

Dim3 index_of(uint64_t number, const Dim3& grid) {
  return {static_cast<uint32_t>(number % grid[0]), static_cast<uint32_t>(number / grid[0] % grid[1]),
          static_cast<uint32_t>(number / grid[0] / grid[1])};
}

}  // namespace

uint32_t occupancy(const DeviceShape& device, const Function& kernel, uint32_t threads,
                   uint32_t dynamic_shared) {
  uint32_t rounded = whole_warps(threads);
  if (rounded == 0) return 0;
  uint32_t blocks = std::min(device.resident_blocks, device.threads_per_multiprocessor / rounded);
  blocks = std::min(
      blocks, device.shared_per_multiprocessor / (kernel.shared_bytes + dynamic_shared + kReservedShared));
  if (kernel.register_estimate != 0 && blocks != 0) {
    uint32_t warp_registers =
        (kernel.register_estimate * kLanes + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    uint32_t by_registers = kRegistersOfMultiprocessor / (warp_registers * (rounded / kLanes));
    blocks = std::min(blocks, std::max(by_registers, 1u));  // a compiler would have spilt
  }
  return blocks;
}

Residency::Residency(Context& context)
    : context_(context), multiprocessors_(context.options.device.multiprocessors) {}

Residency::~Residency() {
  while (!resident_.empty()) remove(*resident_.back());
}

GridRun& Residency::add(Grid& grid) {
  auto run = std::make_unique<GridRun>();
  const Launch& launch = grid.launch;
  run->grid = &grid;
  run->kernel_name = std::make_shared<const std::string>(launch.kernel->name);
  run->depth = nesting(grid);
  run->block_threads = whole_warps(threads_of(launch));
  run->block_shared = launch.kernel->shared_bytes + launch.dynamic_shared + kReservedShared;
  run->blocks_at_once =
      occupancy(context_.options.device, *launch.kernel, threads_of(launch), launch.dynamic_shared);
  runs_.push_back(std::move(run));
  may_have_room_ = true;
  return *runs_.back();
}

// The emptiest multiprocessor that can take a block.
Residency::Multiprocessor* Residency::find_room(const GridRun& run) {
  const DeviceShape& device = context_.options.device;
  Multiprocessor* best = nullptr;
  for (Multiprocessor& one : multiprocessors_) {
    if (one.blocks >= run.blocks_at_once ||
        one.threads + run.block_threads > device.threads_per_multiprocessor ||
        one.shared + run.block_shared > device.shared_per_multiprocessor)
      continue;
    if (!best || one.blocks < best->blocks) best = &one;
  }
  return best;
}

bool Residency::is_full() const {
  return std::all_of(multiprocessors_.begin(), multiprocessors_.end(), [this](const Multiprocessor& one) {
    return one.blocks >= context_.options.device.resident_blocks;
  });
}

// True if the next block is one of `run` rather than of `other`, when both could start one. `other` came
// first.
bool Residency::goes_before(const GridRun& run, const GridRun& other) {
  switch (context_.options.schedule) {
    case ScheduleKind::ChildFirst:
      return run.depth > other.depth;
    case ScheduleKind::ChildLast:
      return run.depth < other.depth;
    case ScheduleKind::Random:
      return context_.random.one_in(2);
    default:
      return false;
  }
}

GridRun* Residency::choose_run() {
  if (is_full()) return nullptr;
  GridRun* best = nullptr;
  for (const auto& run : runs_) {
    if (run->unstarted() == 0 || !find_room(*run)) continue;
    if (context_.steps < run->not_before) {
      some_are_late_ = true;
      continue;
    }
    if (!best || goes_before(*run, *best)) best = run.get();
    if (!context_.adversarial()) break;
  }
  return best;
}

uint64_t Residency::choose_block_number(GridRun& run) {
  bool in_order = !context_.adversarial() || context_.options.schedule == ScheduleKind::OneBlock;
  if (in_order) return run.next++;
  while (run.skipped.size() < kWindow && run.next < run.grid->block_count())
    run.skipped.push_back(run.next++);
  size_t chosen = context_.random.below(run.skipped.size());
  uint64_t number = run.skipped[chosen];
  run.skipped[chosen] = run.skipped.back();
  run.skipped.pop_back();
  return number;
}

void Residency::fill() {
  if (!may_have_room_ && !some_are_late_) return;
  some_are_late_ = false;
  while (GridRun* run = choose_run()) start_block(*run, *find_room(*run));
  may_have_room_ = false;
}

bool Residency::fill_early() {
  if (!some_are_late_) return false;
  for (const auto& run : runs_) run->not_before = 0;
  const size_t before = resident_.size();
  fill();
  return resident_.size() != before;
}

Block& Residency::unused_block() {
  if (unused_.empty()) {
    all_.push_back(std::make_unique<Block>());
    return *all_.back();
  }
  Block* block = unused_.back();
  unused_.pop_back();
  return *block;
}

void Residency::start_block(GridRun& run, Multiprocessor& on) {
  Grid& grid = *run.grid;
  const Launch& launch = grid.launch;
  Block& block = unused_block();
  block.run = &run;
  block.id = next_id_++;
  block.index = index_of(choose_block_number(run), launch.grid);
  block.multiprocessor = static_cast<uint32_t>(&on - multiprocessors_.data());
  block.threads = threads_of(launch);
  block.warp_count = whole_warps(block.threads) / kLanes;
  block.next_warp = 0;
  block.shared_bytes = launch.kernel->shared_bytes + launch.dynamic_shared;
  block.barriers = {};
  block.has_room = true;
  if (block.shared_bytes != 0) {
    auto address = context_.memory.allocate(block.shared_bytes, Owner::Shared);
    if (!address) throw Error(ErrorCode::Driver, "no memory left for a block's shared memory");
    block.shared_address = *address;
    if (context_.ordered) context_.order.allocated(*address, block.shared_bytes);
  }
  ++on.blocks;
  on.threads += run.block_threads;
  on.shared += run.block_shared;
  ++grid.blocks_started;
  if (context_.options.late_blocks != 0)
    run.not_before = context_.steps + context_.random.below(context_.options.late_blocks) + 1;
  ++run.resident;
  start_warps(block);
  resident_.push_back(&block);
}

void Residency::start_warps(Block& block) {
  const Function& kernel = block.kernel();
  while (block.warps.size() < block.warp_count) block.warps.push_back(std::make_unique<Warp>());
  block.live_warps = block.ready_warps = ~0u >> (kLanes - block.warp_count);
  for (uint32_t w = 0; w < block.warp_count; ++w) {
    Warp& warp = *block.warps[w];
    uint32_t threads = std::min(kLanes, block.threads - w * kLanes);
    warp.start(block, w, ~0u >> (kLanes - threads), kernel);
    if (!warp.local.reserve(context_.memory, kernel.local_bytes))
      throw Error(ErrorCode::Driver, "no memory left for the stacks of " + kernel.name);
    if (context_.ordered) start_agents(block, warp);
  }
}

void Residency::start_agents(Block& block, Warp& warp) {
  for_lanes(warp.live, [&](uint32_t lane) {
    auto name = [kernel = block.run->kernel_name, index = block.index,
                 thread = block.thread_index(warp, lane)] {
      auto words = [](const Dim3& at) {
        return "(" + std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2]) +
               ")";
      };
      return "thread " + words(thread) + " of block " + words(index) + " of " + *kernel;
    };
    warp.agents[lane] = context_.order.start(block.id, block.run->grid->after, name);
  });
}

void Residency::give_up_room(Block& block) {
  if (!std::exchange(block.has_room, false)) return;
  Multiprocessor& on = multiprocessors_[block.multiprocessor];
  --on.blocks;
  on.threads -= block.run->block_threads;
  on.shared -= block.run->block_shared;
  may_have_room_ = true;
}

void Residency::remove(Block& block) {
  for (uint32_t w = 0; w < block.warp_count; ++w) {
    Warp& warp = *block.warps[w];
    for (Agent*& agent : warp.agents) {
      if (agent) context_.order.end(agent);
      agent = nullptr;
    }
    warp.local.release(context_.memory);
  }
  if (block.shared_bytes != 0) {
    if (context_.ordered) context_.order.freed(block.shared_address, block.shared_bytes);
    context_.memory.free(block.shared_address, Owner::Shared);
  }
  give_up_room(block);
  --block.run->resident;
  block.run = nullptr;
  std::erase(resident_, &block);
  unused_.push_back(&block);
  may_have_room_ = true;
}

void Residency::forget(GridRun& run) {
  std::erase_if(runs_, [&run](const std::unique_ptr<GridRun>& one) { return one.get() == &run; });
}

}  // namespace klap::emulator::execution
