// Loads and stores: the write that a load returns, and the data that a write is remembered with.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/memory_model/model_state.h"

namespace klap::emulator {
namespace {

constexpr size_t kMostPending = 8;
constexpr uint8_t kWholeWord = 0xf;

// The newest write that the access sees at least a part of, when it sees nothing newer than `cut`.
Write* seen_at(const Word& word, uint8_t mask, uint64_t cut) {
  for (Write* write = word.newest; write; write = write->older)
    if (write->index <= cut && write->mask & mask) return write;
  return nullptr;
}

// The bytes of the word as they were when the write with index `cut` was the newest.
void read_at(const Word& word, const WordPart& part, uint64_t cut, std::byte* to) {
  for (uint8_t i = 0; i < part.bytes; ++i) {
    uint8_t byte = part.from + i;
    const Write* write = seen_at(word, static_cast<uint8_t>(1u << byte), cut);
    to[i] = write ? write->value[byte] : word.before[byte];
  }
}

void drop_all_older(Shadow& shadow, Word& word, Write* newer) {
  while (newer->older) {  // the oldest first, since Word::before is what came last
    Write* last_but_one = newer;
    while (last_but_one->older->older) last_but_one = last_but_one->older;
    shadow.drop_older(word, last_but_one);
  }
}

void remember_pending(Agent& agent, uint64_t address, const ReleasedRef& released) {
  if (!agent.fences) agent.fences = std::make_unique<Fences>();
  auto& pending = agent.fences->pending;
  for (const Fences::Pending& known : pending)
    if (known.released == released && known.address == address) return;
  pending.push_back({address, released});
  if (pending.size() <= kMostPending) return;
  ReleasedRef all;
  for (const Fences::Pending& one : pending) all = merge(all, one.released);
  pending.assign(1, {0, all});
}

}  // namespace

bool morally_strong(const Touch& touch, const Access& access) {
  return touch.strong && access.strong && touch.size == access.size &&
         reach_each_other(touch.who.block, touch.scope, access.agent->number, access.scope);
}

// ---- loads ----

bool MemoryModel::State::is_hidden_from(const Write& write, const Access& access) const {
  if (write.step + options.hidden_steps <= step) return false;
  if (access.non_coherent) return !access.agent->at_start.covers(write.who);
  return !access.agent->is_after(write.who);
}

// The index of the oldest write that the access may see.
uint64_t MemoryModel::State::floor_of(const Word& word, const WordPart& part, const Access& access) const {
  uint64_t floor = word.seen ? word.seen->floor : 0;
  for (const Write* write = word.newest; write && write->index > floor; write = write->older)
    if (write->mask & part.mask && !is_hidden_from(*write, access)) floor = write->index;
  if (access.non_coherent) return floor;
  const Agent& agent = *access.agent;
  if (auto own = agent.seen.find(part.address); own != agent.seen.end())
    floor = std::max(floor, own->second.newest(part.mask));
  if (!word.seen) return floor;
  for (const Seen& seen : word.seen->list)
    if (seen.index > floor && seen.mask & part.mask && agent.is_after(seen.who)) floor = seen.index;
  return floor;
}

void MemoryModel::State::choose(const Access& access, std::span<std::byte> value) {
  uint64_t floor = 0;
  bool has_writes = false;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word* word = shadow.find(part.address);
    if (!word || !word->newest) return;
    has_writes = true;
    floor = std::max(floor, floor_of(*word, part, access));
  });
  if (!has_writes) return;
  std::array<uint64_t, 5 * kMostWrites> newer;  // indices of the writes that it may see beyond `floor`
  size_t count = 0;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word* word = shadow.find(part.address);
    for (const Write* write = word ? word->newest : nullptr; write && write->index > floor;
         write = write->older)
      if (write->mask & part.mask && std::find(newer.begin(), newer.begin() + count, write->index) ==
                                         newer.begin() + static_cast<std::ptrdiff_t>(count))
        newer[count++] = write->index;
  });
  if (count == 0) return observe(access, UINT64_MAX);
  std::iter_swap(newer.begin(), std::max_element(newer.begin(), newer.begin() + count));
  uint64_t cut = newer[0];
  if (next_random() % 100 < options.stale_percent) {
    newer[0] = floor;
    cut = newer[next_random() % count];
    each_word(access.address, access.size, [&](const WordPart& part) {
      Word* word = shadow.find(part.address);
      if (word && word->newest) read_at(*word, part, cut, value.data() + part.at);
    });
  }
  if (!access.non_coherent) remember_seen(access, cut);
  observe(access, cut);
}

// That the access has seen the writes up to `cut`.
void MemoryModel::State::remember_seen(const Access& access, uint64_t cut) {
  auto& own = access.agent->seen;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word* word = shadow.find(part.address);
    const Write* seen = word ? seen_at(*word, part.mask, cut) : nullptr;
    if (!seen) return;
    own[part.address].add(part.mask, seen->index);
    if (morally_strong(*seen, access)) remember_for_others(*word, part, access, seen->index);
  });
  if (own.size() <= kMostOwnSeen) return;
  for (auto& [address, seen] : own)
    if (Word* word = shadow.find(address); word && word->newest) {
      if (!word->seen) word->seen = std::make_unique<Seens>();
      word->seen->floor = std::max(word->seen->floor, seen.newest(kWholeWord));
    }
  own.clear();
}

void MemoryModel::State::remember_for_others(Word& word, const WordPart& part, const Access& access,
                                             uint64_t seen) {
  if (!word.seen) word.seen = std::make_unique<Seens>();
  auto& list = word.seen->list;
  Seen now{stamp(*access.agent), seen, part.mask};
  for (const Seen& known : list)
    if (known.who.block == now.who.block && known.who.agent == now.who.agent && known.mask == now.mask &&
        known.index == now.index)
      return;  // the agent's first look holds for more of the others
  const Write* oldest = word.newest;
  while (oldest->older) oldest = oldest->older;
  std::erase_if(list, [&](const Seen& known) { return known.index < oldest->index; });
  list.push_back(now);
  if (list.size() < kMostSeen) return;
  for (const Seen& known : list) word.seen->floor = std::max(word.seen->floor, known.index);
  list.clear();
}

// Adds to a strong access the history of the writes that it reads.
void MemoryModel::State::observe(const Access& access, uint64_t cut) {
  if (!access.strong) return;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word* word = shadow.find(part.address);
    const Write* write = word ? seen_at(*word, part.mask, cut) : nullptr;
    if (write) observe(access, *write);
  });
  if (!access.acquires || !access.agent->fences) return;
  for (const Fences::Pending& pending : access.agent->fences->pending)
    if (pending.address == access.address) acquire(*access.agent, pending.released, access.scope);
}

void MemoryModel::State::observe(const Access& access, const Write& write) {
  if (!write.released || !morally_strong(write, access)) return;
  if (access.acquires) acquire(*access.agent, write.released, access.scope);
  // A fence that follows may reach further than this access did.
  if (!access.acquires || access.scope != Scope::Sys)
    remember_pending(*access.agent, access.address, write.released);
}

// ---- stores ----

// The history that a write carries. `own` is the history that its agent has released, by this write, by a
// fence before it, or by an earlier release of the location. A read-modify-write also continues the sequence
// that it reads.
ReleasedRef MemoryModel::State::released_by(const Access& access, bool is_update, ReleasedRef& own) {
  const Agent& agent = *access.agent;
  if (access.releases) own = release_now(agent, access.scope);
  if (agent.fences) own = merge(own, agent.fences->released);
  ReleasedRef released;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word* word = shadow.find(part.address);
    if (!word) return;
    const Write* newest = seen_at(*word, part.mask, UINT64_MAX);
    if (is_update && newest && morally_strong(*newest, access)) released = merge(released, newest->released);
    for (const Write* write = word->newest; write; write = write->older) {
      if (write->who.block != agent.number || write->who.agent != agent.index) continue;
      own = merge(own, write->own);
      break;
    }
  });
  return merge(released, own);
}

void MemoryModel::State::write(const Access& access, std::span<const std::byte> value, bool is_update) {
  Write common;
  common.who = stamp(*access.agent);
  common.size = access.size;
  common.strong = access.strong;
  common.scope = access.scope;
  common.index = ++index;
  common.step = step;
  if (access.strong) common.released = released_by(access, is_update, common.own);
  each_word(access.address, access.size, [&](const WordPart& part) {
    std::memcpy(common.value.data() + part.from, value.data() + part.at, part.bytes);
    add_to(shadow.at(part.address), part, common);
  });
}

void MemoryModel::State::add_to(Word& word, const WordPart& part, const Write& common) {
  if (!options.weak_memory) {  // only what it carries matters, until the next write
    shadow.drop_writes(word, part.mask);
    if (!common.released) return;
  } else if (word.newest) {
    prune(word);
  } else {
    const auto* memory =
        reinterpret_cast<const std::byte*>(part.address);  // NOLINT(performance-no-int-to-ptr)
    std::memcpy(word.before.data(), memory, kWord);
  }
  Write* write = shadow.add_write(word);
  Write* older = write->older;
  *write = common;
  write->older = older;
  write->mask = part.mask;
}

// Drops writes that no agent can see any more, and writes that are too old for the list.
void MemoryModel::State::prune(Word& word) {
  uint8_t known_to_all = 0;
  size_t count = 0;
  for (Write* write = word.newest; write; write = write->older) {
    if (write->step + options.hidden_steps <= step) known_to_all |= write->mask;
    if (++count == kMostWrites - 1 || known_to_all == kWholeWord) drop_all_older(shadow, word, write);
  }
}

}  // namespace klap::emulator
