// A kernel in PTX on a machine of its own, whose parameters are three arrays of words, zero at first. For the
// tests of faults in device code.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/machine/machine.h"

namespace klap::emulator::faults {

inline constexpr size_t kWords = 256;

struct Outcome {
  int error = 0;
  std::string error_text;
  std::vector<std::string> findings;
  std::array<std::vector<uint32_t>, 3> words;
};

inline MachineOptions options(ScheduleKind schedule, uint64_t seed) {
  MachineOptions chosen;
  chosen.executor.schedule = schedule;
  chosen.executor.seed = seed;
  chosen.executor.max_steps = 1'000'000;
  chosen.executor.device.memory_bytes = 16 << 20;
  chosen.executor.order.seed = seed;
  return chosen;
}

// `body` has %d0, %d1 and %d2, the arrays' addresses; %r0 is %tid.x, %r1 %ctaid.x. Registers up to 19 are
// free.
inline Outcome run(const std::string& body, Dim3 grid, Dim3 block, MachineOptions chosen) {
  Outcome outcome;
  chosen.finding = [&](const std::string& finding) { outcome.findings.push_back(finding); };
  Machine machine(chosen);
  const std::string text =
      ".version 8.4\n.target sm_90\n.address_size 64\n"
      ".visible .entry f(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
      ".reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<20>;\n"
      "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
      "ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nld.param.u64 %d2, [c];\n" +
      body + "ret;\n}\n";
  Launch launch;
  launch.image = machine.load({{"test.ptx", text}});
  launch.kernel = launch.image->functions.at(launch.image->kernels.at("f")).get();
  launch.grid = grid;
  launch.block = block;
  std::array<uint64_t, 3> arrays{};
  for (uint64_t& address : arrays) {
    address = machine.memory().allocate(kWords * 4, Owner::Host).value();
    std::memset(pointer_to(address), 0, kWords * 4);
    machine.order().initialised(address, kWords * 4);
  }
  launch.parameters.resize(sizeof arrays);
  std::memcpy(launch.parameters.data(), arrays.data(), sizeof arrays);
  outcome.error = machine.launch(kLegacyStream, launch);
  if (outcome.error == 0) outcome.error = machine.synchronise_all();
  outcome.error_text = machine.error_text();
  for (size_t i = 0; i < arrays.size(); ++i) {
    outcome.words[i].resize(kWords);
    std::memcpy(outcome.words[i].data(), pointer_to(arrays[i]), kWords * 4);
  }
  return outcome;
}

}  // namespace klap::emulator::faults
