// Small concurrent programs, run step by step in a random order against MemoryModel, as the executor would.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/memory_model/model.h"

namespace klap::emulator::test {

struct Step {
  enum class Do : uint8_t { Read, Write, Add, Fence } what;
  uint32_t location = 0;  // a word
  uint32_t value = 0;     // written or added
  int reg = -1;           // receives what is read
  AccessKind kind;
  bool sequential = false;  // of a fence
  uint8_t bytes = 4;
};

Step read(uint32_t location, int reg, Semantics semantics = Semantics::Relaxed, Scope scope = Scope::Gpu);
Step write(uint32_t location, uint32_t value, Semantics semantics = Semantics::Relaxed,
           Scope scope = Scope::Gpu);
Step add(uint32_t location, uint32_t value, int reg, Semantics semantics = Semantics::Relaxed,
         Scope scope = Scope::Gpu);
Step fence(bool sequential, Scope scope = Scope::Gpu);

struct Thread {
  uint64_t block = 0;
  std::vector<Step> steps;
};

// One executed step.
struct Event {
  size_t thread = 0;
  Step step;
  uint64_t read = 0, written = 0;  // values
};

struct Outcome {
  std::vector<Event> events;  // as they ran
  std::array<uint32_t, 8> registers{};
  std::vector<std::string> findings;
};

// Locations begin as 0. `spread` words lie between two locations.
Outcome run(const std::vector<Thread>& threads, const MemoryModelOptions& options, uint32_t spread = 1);

// How often each assignment of the first `registers` registers came out, over seeds 1 to `seeds`.
std::map<std::vector<uint32_t>, int> outcomes(const std::vector<Thread>& threads, size_t registers,
                                              int seeds = 3000);

}  // namespace klap::emulator::test
