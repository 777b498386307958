// Agents, and the events that order them: start and end, barriers, fences, acquire and release.
//
// Time stands still between two events that give something away (a release, a snapshot, a barrier). Accesses
// in between carry one time, which is enough to tell them apart from earlier and later ones.
#include "emulator/memory_model/model.h"

#include <algorithm>
#include <utility>

#include "emulator/memory_model/model_state.h"

namespace klap::emulator {
namespace {

constexpr uint32_t kHostNumber = 0;

Scope simplify(Scope scope) { return scope == Scope::Cluster ? Scope::Cta : scope; }  // clusters of one block

Access make_access(Agent* agent, uint64_t address, size_t size, AccessKind kind, Place place) {
  Semantics s = kind.semantics;
  return {.agent = agent,
          .address = address,
          .size = static_cast<uint8_t>(size),
          .strong = kind.is_atomic || (s != Semantics::Weak && s != Semantics::NonCoherent),
          .acquires = s == Semantics::Acquire || s == Semantics::AcquireRelease,
          .releases = s == Semantics::Release || s == Semantics::AcquireRelease,
          .non_coherent = s == Semantics::NonCoherent,
          .is_atomic = kind.is_atomic,
          .scope = s == Semantics::Volatile ? Scope::Sys : simplify(kind.scope),
          .place = place};
}

}  // namespace

bool reach_each_other(uint32_t block_a, Scope a, uint32_t block_b, Scope b) {
  if (block_a == block_b) return true;
  Scope needed = block_a == kHostNumber || block_b == kHostNumber ? Scope::Sys : Scope::Gpu;
  return a >= needed && b >= needed;
}

MemoryModel::MemoryModel(const MemoryModelOptions& options, Report report)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->report = std::move(report);
  state_->random = options.seed;
}

MemoryModel::~MemoryModel() = default;

void MemoryModel::advance(uint64_t steps) { state_->step += steps; }

// ---- agents ----

Block& MemoryModel::State::block_of(uint64_t name) {
  auto& block = blocks[name];
  if (!block) {
    block = std::make_unique<Block>();
    block->name = name;
    block->number = name == kHostBlock ? kHostNumber : ++last_block;
    blocks_by_number[block->number] = block.get();
  }
  return *block;
}

void MemoryModel::State::remove(const Block& block) {
  blocks_by_number.erase(block.number);
  blocks.erase(uint64_t{block.name});  // a copy, since the block goes
}

Agent* MemoryModel::start(uint64_t block_name, const HistoryRef& after, std::function<std::string()> name) {
  Block& block = state_->block_of(block_name);
  auto& agent = block.agents.emplace_back(std::make_unique<Agent>());
  agent->block = &block;
  agent->number = block.number;
  agent->index = static_cast<uint32_t>(block.agents.size() - 1);
  agent->name = std::move(name);
  ++block.living;
  join(agent.get(), after);
  agent->at_start = agent->others;
  return agent.get();
}

HistoryRef MemoryModel::end(Agent* agent) {
  State& state = *state_;
  Block& block = *agent->block;
  if (agent->is_remembered && agent->name)
    state.names[uint64_t{block.number} << 32 | agent->index] = std::move(agent->name);
  if (block.number == kHostNumber) {
    block.ended.join(state.snapshot(*agent));
    ++state.time;
  } else {
    block.ended.join(agent->others);
  }
  block.agents[agent->index].reset();
  if (--block.living) return nullptr;
  if (!state.keeps_order()) {
    state.remove(block);
    return nullptr;
  }
  auto history = std::make_shared<History>();
  if (block.number != kHostNumber) block.ended.include_all_of(block.number);
  history->clock = std::move(block.ended);
  history->era = state.era;
  state.remove(block);
  return history;
}

HistoryRef MemoryModel::now(Agent* agent) {
  if (!state_->keeps_order()) return nullptr;
  auto history = std::make_shared<History>();
  history->clock = state_->snapshot(*agent);
  history->era = state_->era;
  ++state_->time;
  return history;
}

void MemoryModel::join(Agent* agent, const HistoryRef& history) {
  if (history && history->era == state_->era) State::join(*agent, history->clock);
}

HistoryRef MemoryModel::both(const HistoryRef& a, const HistoryRef& b) {
  if (a == b || !b || (a && a->era > b->era)) return a;
  if (!a || b->era > a->era) return b;
  auto history = std::make_shared<History>(*a);
  history->clock.join(b->clock);
  return history;
}

void MemoryModel::synchronise_all() {
  State& state = *state_;
  ++state.era;
  ++state.time;
  state.shadow.clear();
  state.names.clear();
  state.sequential_gpu = state.sequential_sys = Clock();
  for (auto& [name, block] : state.blocks) {
    block->ended = block->sequential = Clock();
    for (auto& agent : block->agents) {
      if (!agent) continue;
      agent->others = agent->at_start = Clock();
      agent->own = ViewRef();
      agent->last_acquired = ReleasedRef();
      agent->fences.reset();
      agent->seen.clear();
    }
  }
}

// ---- events that order them ----

Clock MemoryModel::State::snapshot(const Agent& agent) const {
  Clock clock = agent.others;
  ViewRef self(new View(0, {{agent.index, time}}));
  clock.join(agent.number, emulator::join(agent.own, self));
  return clock;
}

void MemoryModel::State::join(Agent& agent, const Clock& clock) {
  agent.others.join(clock);
  agent.own = emulator::join(agent.own, clock.view(agent.number));
}

void MemoryModel::State::acquire(Agent& agent, const ReleasedRef& released, Scope scope) {
  if (agent.last_acquired == released && agent.last_acquired_scope == scope) return;
  bool is_host = agent.number == kHostNumber;
  if (scope == Scope::Sys) join(agent, released->sys);
  if (!is_host && (scope >= Scope::Gpu || released->blocks_left_out)) join(agent, released->gpu);
  for (const Released::OfBlock& of : released->by_block)
    if (of.block == agent.number) join(agent, of.clock);
  agent.last_acquired = released;
  agent.last_acquired_scope = scope;
}

ReleasedRef MemoryModel::State::release_now(const Agent& agent, Scope scope) {
  Ref<Released> released(new Released);
  Clock clock = snapshot(agent);
  ++time;
  if (scope == Scope::Sys) released->sys = clock;
  if (scope >= Scope::Gpu && agent.number != kHostNumber) released->gpu = clock;
  released->by_block.push_back({agent.number, std::move(clock)});
  return ReleasedRef(released.get());
}

void MemoryModel::fence(Agent* agent, bool sequentially_consistent, Scope scope) {
  State& state = *state_;
  if (!state.keeps_order()) return;
  Block& block = *agent->block;
  scope = simplify(scope);
  bool on_device = block.number != kHostNumber, wide = scope >= Scope::Gpu && on_device;
  if (!agent->fences) agent->fences = std::make_unique<Fences>();
  Fences& fences = *agent->fences;
  for (const Fences::Pending& pending : fences.pending) State::acquire(*agent, pending.released, scope);
  std::erase_if(fences.pending, [&](const Fences::Pending& pending) {
    return scope == Scope::Sys || (wide && pending.released->sys.is_empty());
  });
  if (sequentially_consistent) {
    State::join(*agent, block.sequential);
    if (wide) State::join(*agent, state.sequential_gpu);
    if (scope == Scope::Sys) State::join(*agent, state.sequential_sys);
  }
  Clock clock = state.snapshot(*agent);
  ++state.time;
  if (sequentially_consistent) {  // the clock holds all that these held
    block.sequential = clock;
    if (wide) state.sequential_gpu = clock;
    if (scope == Scope::Sys) state.sequential_sys = clock;
  }
  Ref<Released> released(new Released);
  if (fences.released) released->gpu = fences.released->gpu;
  if (fences.released) released->sys = fences.released->sys;
  if (wide) released->gpu = clock;
  if (scope == Scope::Sys) released->sys = clock;
  released->by_block.push_back({block.number, std::move(clock)});
  fences.released = ReleasedRef(released.get());
}

void MemoryModel::barrier(std::span<Agent* const> agents) {
  State& state = *state_;
  if (agents.empty() || !state.keeps_order()) return;
  Block& block = *agents[0]->block;
  Clock others;
  ViewRef own;
  std::vector<View::Entry> participants;
  bool whole = agents.size() == block.agents.size();  // and so none has ended
  for (Agent* agent : agents) {
    others.join(agent->others);
    own = emulator::join(own, agent->own);
    if (!whole) participants.push_back({agent->index, state.time});
  }
  std::ranges::sort(participants, {}, &View::Entry::agent);
  own = emulator::join(own, ViewRef(new View(whole ? state.time : 0, std::move(participants))));
  ++state.time;
  for (Agent* agent : agents) {
    agent->others = others;
    agent->own = own;
  }
}

// ---- accesses ----

void MemoryModel::load(Agent* agent, uint64_t address, std::span<std::byte> value, AccessKind kind,
                       Place place) {
  State& state = *state_;
  Access access = make_access(agent, address, value.size(), kind, place);
  if (state.options.detect_uninitialised) state.check_initialised(access);
  if (state.options.detect_races) state.check_races(access, State::Does::Read);
  if (state.options.weak_memory) {
    state.choose(access, value);
  } else if (access.strong && state.options.detect_races) {
    state.observe(access, UINT64_MAX);
  }
}

void MemoryModel::store(Agent* agent, uint64_t address, std::span<const std::byte> value, AccessKind kind,
                        Place place) {
  State& state = *state_;
  Access access = make_access(agent, address, value.size(), kind, place);
  if (state.options.detect_uninitialised) state.uninitialised.remove(address, value.size());
  if (!state.keeps_order()) return;
  if (state.options.detect_races) state.check_races(access, state.does(access, value));
  state.write(access, value, false);
}

void MemoryModel::update(Agent* agent, uint64_t address, std::span<const std::byte> value, bool writes,
                         AccessKind kind, Place place) {
  State& state = *state_;
  Access access = make_access(agent, address, value.size(), kind, place);
  access.strong = access.is_atomic = true;
  if (state.options.detect_uninitialised) state.check_initialised(access);
  if (!state.keeps_order()) return;
  if (state.options.detect_races)
    state.check_races(access, writes ? state.does(access, value) : State::Does::Read);
  state.observe(access, UINT64_MAX);
  if (!writes && state.options.weak_memory) state.remember_seen(access, UINT64_MAX);
  if (writes) state.write(access, value, true);
}

void MemoryModel::allocated(uint64_t address, uint64_t bytes) {
  state_->shadow.forget(address, bytes);
  if (state_->options.detect_uninitialised) state_->uninitialised.add(address, bytes);
}

void MemoryModel::initialised(uint64_t address, uint64_t bytes) {
  state_->shadow.forget(address, bytes);
  state_->uninitialised.remove(address, bytes);
}

void MemoryModel::freed(uint64_t address, uint64_t bytes) { initialised(address, bytes); }

}  // namespace klap::emulator
