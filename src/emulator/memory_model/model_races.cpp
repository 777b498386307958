// Findings: two accesses that nothing orders, and reads of bytes that were never written.
//
// An earlier access to a location is dropped when a later one is ordered after it and collides with at least
// as much. An agent that is not ordered after the first is not ordered after the second either, so a race is
// still found. Only where very many accesses are not ordered with each other is a sample kept.
#include <algorithm>
#include <utility>

#include "emulator/memory_model/model_state.h"

namespace klap::emulator {
namespace {

std::string in_words(const Place& place) {
  std::string line = "line " + std::to_string(place.line);
  if (!place.function) return line;
  std::string unit = place.function->unit.empty() ? "" : " of " + place.function->unit;
  return place.function->name + ", " + line + unit;
}

std::string hex(uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), kDigits[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

std::string bytes_at(const Access& access) {
  return std::to_string(access.size) + (access.size == 1 ? " byte" : " bytes") + " at " + hex(access.address);
}

const char* to_string(Scope scope) {
  return scope == Scope::Sys ? "sys" : scope == Scope::Gpu ? "gpu" : "cta";
}

std::string in_words(const char* does, bool is_atomic, bool strong, Scope scope, const Place& place) {
  std::string text = is_atomic ? std::string("updates atomically") : std::string(does);
  if (strong) text += std::string(" with scope ") + to_string(scope);
  return text + " (" + in_words(place) + ")";
}

// Whatever later access collides with `past` also collides with `access`, if nothing orders it after that.
bool says_no_more(const Past& past, const WordPart& part, const Access& access, bool writes) {
  if (past.mask & ~part.mask || (past.writes && !writes)) return false;
  return !access.strong || (past.strong && past.scope >= access.scope && past.size == access.size);
}

bool is_alike(const Past& past, const Access& access, bool writes) {
  return past.writes == writes && past.strong == access.strong;
}

}  // namespace

std::string MemoryModel::State::name_of(const Stamp& stamp) const {
  auto ended = names.find(uint64_t{stamp.block} << 32 | stamp.agent);
  if (ended != names.end()) return ended->second();
  auto block = blocks_by_number.find(stamp.block);
  const Agent* agent = block == blocks_by_number.end() || stamp.agent >= block->second->agents.size()
                           ? nullptr
                           : block->second->agents[stamp.agent].get();
  return agent && agent->name ? agent->name() : "a thread";
}

void MemoryModel::State::report_race(const Past& before, const Access& access, bool writes) {
  std::pair first{static_cast<const void*>(before.place.function), before.place.line};
  std::pair second{static_cast<const void*>(access.place.function), access.place.line};
  if (second < first) std::swap(first, second);
  if (!reported.insert({first.first, first.second, second.first, second.second}).second) return;
  std::string why = "nothing orders them";
  if (before.strong && access.strong)
    why += before.size == access.size ? ", and a scope does not reach the other"
                                      : ", and they are of different size";
  report("data race on " + bytes_at(access) + ": " + name_of(stamp(*access.agent)) + " " +
         in_words(writes ? "writes" : "reads", access.is_atomic, access.strong, access.scope, access.place) +
         ", " + name_of(before.who) + " " +
         in_words(before.writes ? "wrote" : "read", before.is_atomic, before.strong, before.scope,
                  before.place) +
         ", and " + why);
}

MemoryModel::State::Does MemoryModel::State::does(const Access& access,
                                                  std::span<const std::byte> value) const {
  if (!options.ignore_same_value) return Does::Write;
  const auto* now = reinterpret_cast<const std::byte*>(access.address);  // NOLINT(performance-no-int-to-ptr)
  return std::equal(value.begin(), value.end(), now) ? Does::WriteTheSame : Does::Write;
}

// PTX's causality order. An update observes the strong write whose value it reads, and in turn the writes
// that this one observed. They come before everything behind the update, even without a release.
bool MemoryModel::State::is_ordered_by_updates(const Word& word, const Past& past, const Access& access) {
  if (past.chain == word.chain && word.last_update.time != 0 && access.agent->is_after(word.last_update))
    return true;
  return std::ranges::any_of(word.past.all(), [&](const Past& update) {
    return update.is_atomic && update.writes && update.chain == past.chain && update.number > past.number &&
           access.agent->is_after(update.who);
  });
}

// A store of the value that is there already collides with nothing before it. It then counts as a read: a
// later store of another value does collide with it.
void MemoryModel::State::check_races(const Access& access, Does does) {
  access.agent->is_remembered = true;
  bool writes = does == Does::Write;
  each_word(access.address, access.size, [&](const WordPart& part) {
    Word& word = shadow.at(part.address);
    for (size_t i = does == Does::WriteTheSame ? 0 : word.past.count(); i-- > 0;) {
      const Past& past = word.past[i];
      if ((writes || past.writes) && past.mask & part.mask && !morally_strong(past, access) &&
          !is_ordered(word, past, access))
        report_race(past, access, writes);
    }
    remember(word, part, access, writes);
  });
}

// One of the `count` pasts that are like the access, by chance, to be replaced where there is no room for
// more. Going from the newest to the oldest, each takes the place of the one before with a probability of 1
// in 4; so the oldest one that does is asked first. All random numbers are used up in any case, so that other
// random choices do not depend on the room.
Past* MemoryModel::State::draw_alike(Pasts& pasts, size_t count, const Access& access, bool writes) {
  Past* drawn = nullptr;
  size_t left = count;
  for (size_t i = 0; left != 0 && !drawn; ++i) {
    if (!is_alike(pasts[i], access, writes)) continue;
    --left;
    if (left == 0 || random_after(left) % 4 == 0) drawn = &pasts[i];
  }
  if (count > 1) skip_random(count - 1);
  return drawn;
}

// Where the access is to be remembered.
Past& MemoryModel::State::place_for(Word& word, const WordPart& part, const Access& access, bool writes) {
  constexpr size_t kNone = ~size_t{0};
  Pasts& pasts = word.past;
  size_t place = kNone, alike = 0;
  for (size_t i = pasts.count(); i-- > 0;) {
    const Past& past = pasts[i];
    const bool replaced = says_no_more(past, part, access, writes) && is_ordered(word, past, access);
    if (replaced && place != kNone) {
      pasts.remove(i);
      --place;
      continue;
    }
    if (replaced) place = i;
    alike += is_alike(past, access, writes);
  }
  if (place == kNone && pasts.count() >= kMostPast) {
    Past* drawn = draw_alike(pasts, alike, access, writes);
    return drawn ? *drawn : pasts[pasts.count() - 1];
  }
  if (alike > 1) skip_random(alike - 1);
  return place == kNone ? shadow.add_past(word) : pasts[place];
}

void MemoryModel::State::remember(Word& word, const WordPart& part, const Access& access, bool writes) {
  Past& place = place_for(word, part, access, writes);
  if (access.is_atomic && writes) {
    word.last_update = stamp(*access.agent);
  } else if (writes) {
    ++word.chain;
    word.last_update = {};
  }
  static_cast<Touch&>(place) = {stamp(*access.agent), part.mask, access.size, access.strong, access.scope};
  place.chain = word.chain;
  place.number = ++remembered;
  place.place = access.place;
  place.writes = writes;
  place.is_atomic = access.is_atomic;
}

void MemoryModel::State::check_initialised(const Access& access) {
  if (!uninitialised.has_any(access.address, access.size)) return;
  const void* function = access.place.function;
  if (!reported.insert({function, access.place.line, function, UINT32_MAX}).second) return;
  report(name_of(stamp(*access.agent)) + " reads uninitialised memory: " + bytes_at(access) + " (" +
         in_words(access.place) + ")");
}

}  // namespace klap::emulator
