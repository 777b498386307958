// The state of MemoryModel. Its parts are spread over model.cpp (agents and their order), model_access.cpp
// (loads and stores) and model_races.cpp (findings).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "emulator/memory_model/model.h"
#include "emulator/memory_model/model_clock.h"
#include "emulator/memory_model/model_initialised.h"
#include "emulator/memory_model/model_shadow.h"

namespace klap::emulator {

class History {
 public:
  Clock clock;
  uint64_t era = 0;  // synchronise_all() begins a new one, in which older histories say nothing
};

// The data that fences need; few agents use any.
struct Fences {
  ReleasedRef released;  // carried by a strong write because of the fences before it
  struct Pending {
    uint64_t address;  // 0: of several locations
    ReleasedRef released;
  };
  // The histories of strong reads, until a later fence, or an acquire of that location, completes them.
  std::vector<Pending> pending;
};

struct Block {
  uint32_t number = 0;                         // never used again; the host's is 0
  uint64_t name = 0;                           // MemoryModel::start's
  std::vector<std::unique_ptr<Agent>> agents;  // null once ended
  size_t living = 0;
  Clock ended;       // joined clocks of those that have ended
  Clock sequential;  // of its fence.sc
};

class Agent {
 public:
  Block* block = nullptr;
  uint32_t number = 0;  // the block's
  uint32_t index = 0;
  Clock others;  // other blocks' accesses that happened before
  ViewRef own;   // its block's
  Clock at_start;
  ReleasedRef last_acquired;  // joined already, with this scope
  Scope last_acquired_scope = Scope::Cta;
  std::unique_ptr<Fences> fences;
  std::unordered_map<uint64_t, OwnSeen> seen;  // by word
  std::function<std::string()> name;
  bool is_remembered = false;  // it made an access that a later finding may name

  [[nodiscard]] bool is_after(const Stamp& stamp) const {
    if (stamp.block != number) return others.covers(stamp);
    return stamp.agent == index || (own && own->covers(stamp.agent, stamp.time));
  }
};

// An AccessKind taken apart.
struct Access {
  Agent* agent;
  uint64_t address;
  uint8_t size;
  bool strong, acquires, releases, non_coherent, is_atomic;
  Scope scope;
  Place place;
};

// The part of an access that lies in one word.
struct WordPart {
  uint64_t address;  // of the word
  uint8_t mask;
  uint8_t from;  // the first byte in the word
  uint8_t bytes;
  uint8_t at;  // where it lies in the access's value
};

// Both scopes reach from one block to the other.
bool reach_each_other(uint32_t block_a, Scope a, uint32_t block_b, Scope b);
// PTX's "morally strong": neither races with the other, and one can observe the other.
bool morally_strong(const Touch& touch, const Access& access);

struct MemoryModel::State {
  // splitmix64: a counter in steps, and a mix of its bits.
  static constexpr uint64_t kRandomStep = 0x9e3779b97f4a7c15;
  static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  MemoryModelOptions options;
  Report report;
  uint64_t time = 1;        // of the next access; goes on whenever something is released
  uint64_t step = 0;        // advance()
  uint64_t index = 0;       // of the last store
  uint64_t remembered = 0;  // accesses so far
  uint64_t era = 1;
  uint64_t random = 1;
  uint32_t last_block = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks;  // by MemoryModel::start's
  std::unordered_map<uint32_t, Block*> blocks_by_number;
  std::unordered_map<uint64_t, std::function<std::string()>>
      names;                             // of agents that ended: block number << 32 | index
  Clock sequential_gpu, sequential_sys;  // of fence.sc of scope gpu and sys
  Shadow shadow;
  Uninitialised uninitialised;
  std::set<std::tuple<const void*, uint32_t, const void*, uint32_t>> reported;

  uint64_t next_random() { return mixed(random += kRandomStep); }
  // The number that would be drawn as the n-th from here.
  [[nodiscard]] uint64_t random_after(uint64_t n) const { return mixed(random + n * kRandomStep); }
  void skip_random(uint64_t numbers) { random += numbers * kRandomStep; }
  [[nodiscard]] Stamp stamp(const Agent& agent) const { return {agent.number, agent.index, time}; }
  // ---- order ----
  [[nodiscard]] bool keeps_order() const { return options.weak_memory || options.detect_races; }
  Block& block_of(uint64_t name);
  void remove(const Block& block);
  [[nodiscard]] Clock snapshot(const Agent& agent) const;  // the history up to now: giving it away moves time
  static void join(Agent& agent, const Clock& clock);
  static void acquire(Agent& agent, const ReleasedRef& released, Scope scope);
  ReleasedRef release_now(const Agent& agent, Scope scope);
  // ---- accesses ----
  void choose(const Access& access, std::span<std::byte> value);
  void observe(const Access& access, uint64_t cut);
  void observe(const Access& access, const Write& write);
  void write(const Access& access, std::span<const std::byte> value, bool is_update);
  void add_to(Word& word, const WordPart& part, const Write& common);
  void prune(Word& word);
  [[nodiscard]] ReleasedRef released_by(const Access& access, bool is_update, ReleasedRef& own);
  [[nodiscard]] bool is_hidden_from(const Write& write, const Access& access) const;
  [[nodiscard]] uint64_t floor_of(const Word& word, const WordPart& part, const Access& access) const;
  void remember_seen(const Access& access, uint64_t cut);
  void remember_for_others(Word& word, const WordPart& part, const Access& access, uint64_t seen);
  // ---- findings ----
  enum class Does : uint8_t { Read, Write, WriteTheSame };
  [[nodiscard]] Does does(const Access& access, std::span<const std::byte> value) const;  // a store
  void check_races(const Access& access, Does does);
  [[nodiscard]] static bool is_ordered(const Word& word, const Past& past, const Access& access) {
    if (access.agent->is_after(past.who)) return true;
    return past.strong && past.writes && is_ordered_by_updates(word, past, access);
  }
  [[nodiscard]] static bool is_ordered_by_updates(const Word& word, const Past& past, const Access& access);
  void remember(Word& word, const WordPart& part, const Access& access, bool writes);
  Past& place_for(Word& word, const WordPart& part, const Access& access, bool writes);
  Past* draw_alike(Pasts& pasts, size_t count, const Access& access, bool writes);
  void check_initialised(const Access& access);
  void report_race(const Past& before, const Access& access, bool writes);
  [[nodiscard]] std::string name_of(const Stamp& stamp) const;
};

template <typename Visit>
void each_word(uint64_t address, uint64_t size, Visit visit) {
  for (uint64_t at = 0; at < size;) {
    uint64_t from = (address + at) % kWord, bytes = std::min(kWord - from, size - at);
    visit(WordPart{address + at - from, static_cast<uint8_t>(((1u << bytes) - 1) << from),
                   static_cast<uint8_t>(from), static_cast<uint8_t>(bytes), static_cast<uint8_t>(at)});
    at += bytes;
  }
}

}  // namespace klap::emulator
