// What one checked access costs, by access pattern and by what is looked for, and what agents, barriers and
// grids cost. As a test it runs shortly, and fails if any of the patterns, which are all free of races, is
// reported.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator {
namespace {

bool failed = false;

constexpr AccessKind kWeak{Semantics::Weak, Scope::Sys, false};
constexpr AccessKind kAtomic{Semantics::Relaxed, Scope::Gpu, true};
constexpr uint64_t kBytes = 64 << 20;
constexpr uint64_t kThreads = 256;

enum Mode : int64_t { Races, Weak, Both, Uninitialised };

MemoryModelOptions options_of(int64_t mode) {
  MemoryModelOptions options;
  options.detect_races = mode == Races || mode == Both;
  options.weak_memory = mode == Weak || mode == Both;
  options.detect_uninitialised = mode == Uninitialised;
  return options;
}

class Bench {
 public:
  explicit Bench(benchmark::State& state)
      : order(options_of(state.range(0)), [&state](const std::string& finding) {
          failed = true;
          state.SkipWithError(finding.c_str());
        }) {
    base = memory.allocate(kBytes / 2, Owner::Host).value();
    order.allocated(base, kBytes / 2);
    order.initialised(base, kBytes / 2);
  }
  std::vector<Agent*> block(const HistoryRef& after = nullptr) {
    std::vector<Agent*> agents;
    ++blocks;
    for (uint64_t i = 0; i < kThreads; ++i)
      agents.push_back(order.start(blocks, after, [] { return std::string("thread"); }));
    return agents;
  }
  HistoryRef end(const std::vector<Agent*>& agents) {
    HistoryRef history;
    for (Agent* agent : agents) history = MemoryModel::both(history, order.end(agent));
    return history;
  }
  void load(Agent* agent, uint64_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, at(offset), sizeof value);
    order.load(agent, base + offset, std::as_writable_bytes(std::span(&value, 1)), kWeak, {});
    benchmark::DoNotOptimize(value);
  }
  void store(Agent* agent, uint64_t offset, uint32_t value) {
    order.store(agent, base + offset, std::as_bytes(std::span(&value, 1)), kWeak, {});
    std::memcpy(at(offset), &value, sizeof value);
  }
  void add(Agent* agent, uint64_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, at(offset), sizeof value);
    ++value;
    order.update(agent, base + offset, std::as_bytes(std::span(&value, 1)), true, kAtomic, {});
    std::memcpy(at(offset), &value, sizeof value);
  }

  Memory memory{kBytes};
  uint64_t base = 0;
  MemoryModel order;
  uint64_t blocks = 0;

 private:
  [[nodiscard]] void* at(uint64_t offset) const {
    return reinterpret_cast<void*>(base + offset);  // NOLINT(performance-no-int-to-ptr)
  }
};

constexpr uint64_t kLoads = 16;

// Every thread reads words that nobody writes, the same as its neighbours.
void read_shared(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint64_t i = 0;
  for (auto _ : state) {
    bench.load(agents[i % kThreads], i / kThreads % 1024 * 4);
    ++i;
  }
}
// Every thread reads, changes and writes its own words.
void own_words(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint64_t i = 0;
  for (auto _ : state) {
    uint64_t offset = (i % kThreads + i / kThreads % kLoads * kThreads) * 4;
    bench.load(agents[i % kThreads], offset);
    bench.store(agents[i % kThreads], offset, static_cast<uint32_t>(i));
    bench.order.advance(1);
    ++i;
  }
  state.SetItemsProcessed(static_cast<int64_t>(2 * i));
}
// Words written before a barrier, read by a neighbour after it.
void exchange_over_barriers(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint32_t round = 0;
  for (auto _ : state) {
    ++round;
    for (uint64_t i = 0; i < kThreads; ++i) bench.store(agents[i], i * 4, round);
    bench.order.barrier(agents);
    for (uint64_t i = 0; i < kThreads; ++i) bench.load(agents[i], (i + 1) % kThreads * 4);
    bench.order.barrier(agents);
    bench.order.advance(4 * kThreads);
  }
  state.SetItemsProcessed(static_cast<int64_t>(round) * 2 * kThreads);
}
// Atomics of many threads on few words.
void histogram(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint64_t i = 0;
  for (auto _ : state) {
    bench.add(agents[i % kThreads], i * 7 % 64 * 4);
    bench.order.advance(1);
    ++i;
  }
}
void barrier(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  for (auto _ : state) bench.order.barrier(agents);
}
void warp_barrier(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint64_t warp = 0;
  for (auto _ : state) bench.order.barrier(std::span(agents).subspan(warp++ % (kThreads / 32) * 32, 32));
}
// A fence and an atomic of each thread, as before a last block.
void fence_and_add(benchmark::State& state) {
  Bench bench(state);
  auto agents = bench.block();
  uint64_t i = 0;
  for (auto _ : state) {
    Agent* agent = agents[i++ % kThreads];
    bench.order.fence(agent, true, Scope::Gpu);
    bench.add(agent, 0);
    if (i % kThreads == 0) bench.order.barrier(agents);
  }
}
// Blocks of 256 threads that come and go, each after the one before, as small child grids do.
void chain_of_blocks(benchmark::State& state) {
  Bench bench(state);
  HistoryRef last;
  int64_t i = 0;
  for (auto _ : state) {
    auto agents = bench.block(last);
    for (uint64_t k = 0; k < kThreads; ++k) bench.store(agents[k], k * 4, static_cast<uint32_t>(i));
    last = bench.end(agents);
    if (++i % 4096 == 0) bench.order.synchronise_all();
  }
  state.SetItemsProcessed(i);
}
// A grid of very many blocks, interleaved, joined at the end.
void large_grid(benchmark::State& state) {
  Bench bench(state);
  for (auto _ : state) {
    HistoryRef all;
    std::vector<std::vector<Agent*>> running;
    for (uint64_t i = 0; i < 4096; ++i) {
      running.push_back(bench.block());
      if (running.size() < 32) continue;
      size_t which = i * 2654435761u % running.size();
      all = MemoryModel::both(all, bench.end(running[which]));
      running.erase(running.begin() + static_cast<long>(which));
    }
    for (auto& agents : running) all = MemoryModel::both(all, bench.end(agents));
    benchmark::DoNotOptimize(all);
  }
  state.SetItemsProcessed(state.iterations() * 4096);
}

void modes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("races0_weak1_both2_uninitialised3");
  for (int64_t mode : {Races, Weak, Both, Uninitialised}) benchmark->Arg(mode);
}
void both(benchmark::internal::Benchmark* benchmark) { benchmark->Arg(Both); }

BENCHMARK(read_shared)->Apply(modes);
BENCHMARK(own_words)->Apply(modes);
BENCHMARK(exchange_over_barriers)->Apply(modes);
BENCHMARK(histogram)->Apply(modes);
BENCHMARK(barrier)->Apply(both);
BENCHMARK(warp_barrier)->Apply(both);
BENCHMARK(fence_and_add)->Apply(both);
BENCHMARK(chain_of_blocks)->Apply(both);
BENCHMARK(large_grid)->Apply(both)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace klap::emulator

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return klap::emulator::failed ? 1 : 0;
}
