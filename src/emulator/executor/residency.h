// Which blocks are on the device: grids wait here, and their blocks start as multiprocessors have room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/grids/block.h"
#include "emulator/grids/context.h"

namespace klap::emulator::execution {

// Blocks of this launch that fit on one multiprocessor at a time.
uint32_t occupancy(const DeviceShape& device, const Function& kernel, uint32_t threads,
                   uint32_t dynamic_shared);

class Residency {
 public:
  explicit Residency(Context& context);
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  GridRun& add(Grid& grid);
  // Starts blocks that fit, and late blocks as far as they may start.
  void fill();
  // Starts blocks however late they are to. False if there are none, or no room.
  bool fill_early();
  // Others may have the block's room: it waits for its children, which may need it.
  void give_up_room(Block& block);
  // The block has ended, or is thrown away.
  void remove(Block& block);
  // Its blocks must be gone.
  void forget(GridRun& run);
  [[nodiscard]] const std::vector<Block*>& blocks() const { return resident_; }
  [[nodiscard]] const std::vector<std::unique_ptr<GridRun>>& grids() const { return runs_; }

 private:
  struct Multiprocessor {
    uint32_t blocks = 0, threads = 0, shared = 0;
  };
  [[nodiscard]] Multiprocessor* find_room(const GridRun& run);
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] bool goes_before(const GridRun& run, const GridRun& other);
  GridRun* choose_run();
  uint64_t choose_block_number(GridRun& run);
  Block& unused_block();
  void start_block(GridRun& run, Multiprocessor& on);
  void start_warps(Block& block);
  void start_agents(Block& block, Warp& warp);

  Context& context_;
  std::vector<Multiprocessor> multiprocessors_;
  std::vector<std::unique_ptr<GridRun>> runs_;  // in the order of their start
  std::vector<Block*> resident_;
  std::vector<std::unique_ptr<Block>> all_;  // blocks that are not resident are kept for their memory
  std::vector<Block*> unused_;
  bool may_have_room_ = false;
  bool some_are_late_ = false;  // they alone kept fill() from starting more
  uint64_t next_id_ = 1;
};

}  // namespace klap::emulator::execution
