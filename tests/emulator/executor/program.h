// A PTX program on the executor alone: no machine, no driver. For the tests of the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/decode/decode.h"
#include "emulator/executor/executor.h"

namespace klap::emulator::test {

inline constexpr std::array kAllSchedules{
    ScheduleKind::Fast,      ScheduleKind::RoundRobin, ScheduleKind::Random,   ScheduleKind::OneBlock,
    ScheduleKind::StarveOne, ScheduleKind::ChildFirst, ScheduleKind::ChildLast};

// A kernel around `body`. On entry %r0 is %tid.x, %r1 %ctaid.x, %r2 %ntid.x, %r3 the thread's number in the
// grid, %r4 the lane; %d0...%d3 are the kernel's parameters; %d4 is %d0 + 4 * %r3, %d5 4 * %r3. Registers %r,
// %d, %f, %p up to 39 are free.
std::string kernel(const std::string& name, const std::string& body);

class Program : public ExecutorListener {
 public:
  // `text` is PTX without its head.
  explicit Program(const std::string& text, const ExecutorOptions& options = {});

  uint64_t buffer(const std::vector<uint32_t>& words);
  uint64_t zeros(size_t words) { return buffer(std::vector<uint32_t>(words)); }
  std::vector<uint32_t> words(uint64_t address, size_t count) const;

  // Every parameter is 8 bytes.
  Grid& start(const std::string& kernel, Dim3 grid, Dim3 block, const std::vector<uint64_t>& parameters,
              uint32_t dynamic_shared = 0, Grid* parent = nullptr);
  Executor::Outcome run();  // until nothing more happens
  // start() and run(), and the words that lie at the first parameter.
  std::vector<uint32_t> result(const std::string& kernel, Dim3 grid, Dim3 block,
                               const std::vector<uint64_t>& parameters, size_t count);

  void call(const ThreadCall& call) override { on_call(call); }
  void block_finished(Grid& grid, uint64_t block) override;
  void blocks_finished(Grid& grid) override;

  ExecutorOptions options;
  Memory memory;
  std::vector<std::string> findings;
  MemoryModel order;
  Executor executor;
  std::shared_ptr<const Image> image;
  std::vector<std::unique_ptr<Grid>> grids;
  std::vector<uint64_t> finished_grids;
  size_t finished_blocks = 0;
  std::function<void(const ThreadCall&)> on_call = [](const ThreadCall&) {};
  std::function<void(Grid&)> on_end = [](Grid&) {};
};

// Names the schedules of a parametrised test.
struct ScheduleName {
  template <typename Info>
  std::string operator()(const Info& test) const {
    std::string name = to_string(test.param);
    std::erase(name, '-');
    return name;
  }
};

ExecutorOptions with(ScheduleKind schedule, uint64_t seed = 1);

}  // namespace klap::emulator::test
