// The PTX memory model with weak memory, and the checks that need to know which agent wrote what and when.
//
// Memory itself always holds the newest value of each byte. Every access also goes through this class if a
// thread may see an older value, or if races or uninitialised reads are looked for. The class keeps
//   for each agent (a thread of a running grid, or the host) its history, as a vector clock;
//   for each location the last writes, each with its writer, the writer's clock and the history of a release.
// A load may return any write that is not older than one that happened before it. Nor may the write be older
// than one that its thread saw there before. Releases, acquires, fences, barriers, kernel boundaries and the
// end of a grid order agents as the PTX memory model says, as far as the scopes of both sides reach. A write
// stays hidden for a limited number of steps only, so that a thread that waits for it always ends.
//
// Writes to one location are ordered as they run, and a load never returns a later write. So a few outcomes
// that the model allows are never seen (load buffering, 2+2W), but none that it forbids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "emulator/memory_model/access.h"

namespace klap::emulator {

struct MemoryModelOptions {
  bool weak_memory = false;  // loads may return older values
  bool detect_races = false;
  bool detect_uninitialised = false;
  uint64_t seed = 1;
  uint32_t stale_percent = 30;    // how often a load that may return an older value does
  uint64_t hidden_steps = 20000;  // after so many steps a write is seen by everybody
  // A store that leaves the bytes as they are, or stores the other one's value, is no race. The model calls
  // that a race as well. But hardware shows no difference, and programs rely on it (many threads that set one
  // flag).
  bool ignore_same_value = true;
  [[nodiscard]] bool any() const { return weak_memory || detect_races || detect_uninitialised; }
};

// A history is a set of events: all that is ordered before the start of the agent that gets it.
class History;
using HistoryRef = std::shared_ptr<const History>;

class Agent;  // one thread, or the host

inline constexpr uint64_t kHostBlock = ~0ull;  // the host's block: only scope sys reaches from or to it

class MemoryModel {
 public:
  using Report = std::function<void(const std::string& message)>;  // one finding, in a sentence
  MemoryModel(const MemoryModelOptions& options, Report report);
  ~MemoryModel();

  // ---- agents ----
  // `block` is unique over all grids; agents of one block are within scope cta of each other, all agents but
  // the host's within scope gpu. `name` is called for messages only ("thread (3, 0, 0) of block (1, 0, 0) of
  // f"), until the next synchronise_all(). `after` may be null. All agents of a block start before the last
  // one of them ends.
  Agent* start(uint64_t block, const HistoryRef& after, std::function<std::string()> name);
  // The agent makes no further access, and is gone. The last one of its block returns the history before the
  // end of all of them; the others return null. So both() over all results costs one step a block.
  HistoryRef end(Agent* agent);
  // The history before this moment in the agent's life. A grid that it launches gets it. May be null.
  HistoryRef now(Agent* agent);
  void join(Agent* agent, const HistoryRef& history);
  static HistoryRef both(const HistoryRef& a, const HistoryRef& b);
  // Nothing else runs: everything before is ordered before everything after, and is forgotten. Agents that
  // live on (the host's) go on from here.
  void synchronise_all();

  // ---- accesses: machine addresses (also of shared and local memory), 1 to 16 bytes, aligned ----
  // One element of a vector access at a time: the model knows no larger unit. The address must be readable.
  // `value` holds the newest bytes on entry and what the load returns on exit. `kernel_start` is the agent's
  // grid's, for NonCoherent.
  void load(Agent* agent, uint64_t address, std::span<std::byte> value, AccessKind kind, Place place);
  // Called before memory is changed; `value` is the new content.
  void store(Agent* agent, uint64_t address, std::span<const std::byte> value, AccessKind kind, Place place);
  // A read-modify-write: always of the newest value. Called before memory is changed; `writes` is false for a
  // compare-and-swap that failed.
  void update(Agent* agent, uint64_t address, std::span<const std::byte> value, bool writes, AccessKind kind,
              Place place);
  void fence(Agent* agent, bool sequentially_consistent, Scope scope);
  // All that these agents did so far happens before all that they do from now on, within their block.
  void barrier(std::span<Agent* const> agents);
  // For a thread that only arrives: now() when it does, and join() of that for each one that waits.

  // ---- memory that comes and goes ----
  void allocated(uint64_t address, uint64_t bytes);    // contents are uninitialised from now on
  void initialised(uint64_t address, uint64_t bytes);  // by the host or the runtime
  void freed(uint64_t address, uint64_t bytes);

  // Called as time passes; `hidden_steps` counts these steps.
  void advance(uint64_t steps);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace klap::emulator
