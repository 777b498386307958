// See program.h.
#include "program.h"

#include <cstring>

#include "ptx/tree.h"

namespace klap::emulator::test {
namespace {

std::byte* at(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): device memory is ours
}

}  // namespace

std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
.reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<40>; .reg .f64 %g<10>; .reg .pred %p<40>;
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.u32 %r3, %r1, %r2, %r0;
mov.u32 %r4, %laneid;
ld.param.u64 %d0, [a];
ld.param.u64 %d1, [b];
ld.param.u64 %d2, [c];
ld.param.u64 %d3, [d];
mul.wide.u32 %d5, %r3, 4;
add.u64 %d4, %d0, %d5;
)" + body +
         "\nret;\n}\n";
}

ExecutorOptions with(ScheduleKind schedule, uint64_t seed) {
  ExecutorOptions options;
  options.schedule = schedule;
  options.seed = seed;
  return options;
}

Program::Program(const std::string& text, const ExecutorOptions& chosen)
    : options(chosen),
      memory(256 << 20),
      order(chosen.order, [this](const std::string& finding) { findings.push_back(finding); }),
      executor(chosen, memory, order, *this) {
  ptx::Module module = ptx::parse(".version 8.4\n.target sm_90\n.address_size 64\n" + text, "test.ptx");
  image = link_image({&module}, memory);
}

uint64_t Program::buffer(const std::vector<uint32_t>& words) {
  uint64_t address = memory.allocate(words.size() * 4, Owner::Host).value();
  std::memcpy(at(address), words.data(), words.size() * 4);
  if (options.order.any()) {
    order.allocated(address, words.size() * 4);
    order.initialised(address, words.size() * 4);
  }
  return address;
}

std::vector<uint32_t> Program::words(uint64_t address, size_t count) const {
  std::vector<uint32_t> words(count);
  std::memcpy(words.data(), at(address), count * 4);
  return words;
}

Grid& Program::start(const std::string& name, Dim3 grid, Dim3 block, const std::vector<uint64_t>& parameters,
                     uint32_t dynamic_shared, Grid* parent) {
  auto& started = grids.emplace_back(std::make_unique<Grid>());
  started->id = grids.size();
  started->parent = parent;
  Launch& launch = started->launch;
  launch.image = image;
  launch.kernel = image->functions[image->kernels.at(name)].get();
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared = dynamic_shared;
  launch.parameters.resize(launch.kernel->parameter_bytes);
  std::memcpy(launch.parameters.data(), parameters.data(),
              std::min(parameters.size() * 8, launch.parameters.size()));
  executor.start(*started);
  return *started;
}

Executor::Outcome Program::run() {
  Executor::Outcome outcome = executor.turn();
  while (outcome == Executor::Outcome::Ran) outcome = executor.turn();
  return outcome;
}

std::vector<uint32_t> Program::result(const std::string& name, Dim3 grid, Dim3 block,
                                      const std::vector<uint64_t>& parameters, size_t count) {
  Grid& started = start(name, grid, block, parameters);
  if (run() != Executor::Outcome::Idle) started.error = executor.deadlock_report();
  return words(parameters[0], count);
}

void Program::block_finished(Grid&, uint64_t) { ++finished_blocks; }

void Program::blocks_finished(Grid& grid) {
  finished_grids.push_back(grid.id);
  on_end(grid);
}

}  // namespace klap::emulator::test
