#include "litmus.h"

#include <cstring>
#include <random>

namespace klap::emulator::test {
namespace {

constexpr size_t kWords = 64;

struct Runner {
  MemoryModel& order;
  std::array<uint32_t, kWords>& memory;
  uint32_t spread;
  Outcome& outcome;

  void step(size_t thread, Agent* agent, const Step& step) {
    Event event{thread, step, 0, 0};
    auto* cell = &memory[size_t{step.location} * spread];
    auto address = reinterpret_cast<uint64_t>(cell);
    std::array<std::byte, 4> bytes{};
    std::memcpy(bytes.data(), cell, step.bytes);
    std::span<std::byte> value(bytes.data(), step.bytes);
    switch (step.what) {
      case Step::Do::Read:
        order.load(agent, address, value, step.kind, {nullptr, line(thread)});
        std::memcpy(&event.read, bytes.data(), step.bytes);
        break;
      case Step::Do::Write:
        event.written = step.value;
        std::memcpy(bytes.data(), &event.written, step.bytes);
        order.store(agent, address, value, step.kind, {nullptr, line(thread)});
        std::memcpy(cell, bytes.data(), step.bytes);
        break;
      case Step::Do::Add:
        event.read = *cell;
        event.written = *cell + step.value;
        std::memcpy(bytes.data(), &event.written, step.bytes);
        order.update(agent, address, value, true, step.kind, {nullptr, line(thread)});
        std::memcpy(cell, bytes.data(), step.bytes);
        break;
      case Step::Do::Fence:
        order.fence(agent, step.sequential, step.kind.scope);
        break;
    }
    if (step.reg >= 0)
      outcome.registers.at(static_cast<size_t>(step.reg)) = static_cast<uint32_t>(event.read);
    outcome.events.push_back(event);
  }
  static uint32_t line(size_t thread) { return static_cast<uint32_t>(100 * (thread + 1)); }
};

}  // namespace

Step read(uint32_t location, int reg, Semantics semantics, Scope scope) {
  return {.what = Step::Do::Read, .location = location, .reg = reg, .kind = {semantics, scope, false}};
}

Step write(uint32_t location, uint32_t value, Semantics semantics, Scope scope) {
  return {.what = Step::Do::Write, .location = location, .value = value, .kind = {semantics, scope, false}};
}

Step add(uint32_t location, uint32_t value, int reg, Semantics semantics, Scope scope) {
  return {.what = Step::Do::Add,
          .location = location,
          .value = value,
          .reg = reg,
          .kind = {semantics, scope, true}};
}

Step fence(bool sequential, Scope scope) {
  return {
      .what = Step::Do::Fence, .kind = {Semantics::AcquireRelease, scope, false}, .sequential = sequential};
}

Outcome run(const std::vector<Thread>& threads, const MemoryModelOptions& options, uint32_t spread) {
  alignas(64) std::array<uint32_t, kWords> memory{};
  Outcome outcome;
  MemoryModel order(options, [&](const std::string& finding) { outcome.findings.push_back(finding); });
  std::vector<Agent*> agents;
  std::vector<size_t> next(threads.size()), ready;
  for (size_t i = 0; i < threads.size(); ++i) {
    agents.push_back(order.start(threads[i].block, nullptr, [i] { return "thread " + std::to_string(i); }));
    ready.push_back(i);
  }
  std::mt19937_64 random(options.seed);
  Runner runner{order, memory, spread, outcome};
  while (!ready.empty()) {
    size_t which = random() % ready.size(), thread = ready[which];
    runner.step(thread, agents[thread], threads[thread].steps[next[thread]]);
    order.advance(1);
    if (++next[thread] == threads[thread].steps.size()) ready.erase(ready.begin() + static_cast<long>(which));
  }
  return outcome;
}

std::map<std::vector<uint32_t>, int> outcomes(const std::vector<Thread>& threads, size_t registers,
                                              int seeds) {
  std::map<std::vector<uint32_t>, int> seen;
  for (int seed = 1; seed <= seeds; ++seed) {
    MemoryModelOptions options{.weak_memory = true, .seed = static_cast<uint64_t>(seed), .stale_percent = 60};
    Outcome outcome = run(threads, options);
    ++seen[{outcome.registers.begin(), outcome.registers.begin() + static_cast<long>(registers)}];
  }
  return seen;
}

}  // namespace klap::emulator::test
