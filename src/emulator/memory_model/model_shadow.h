// The shadow remembers of each location its last writes, and the accesses that a later one may collide with.
//
// Locations are words of 4 bytes. An access of fewer bytes has a mask. A wider access touches several words
// and has one index in all of them. So a load that reads all of them at one index never sees half of a store.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "emulator/memory_model/access.h"
#include "emulator/memory_model/model_clock.h"

namespace klap::emulator {

inline constexpr uint64_t kWord = 4;
inline constexpr size_t kMostWrites = 16;  // remembered of a word
inline constexpr size_t kMostPast = 12;    // of more that nothing orders, a sample
inline constexpr size_t kFewPast = 3;      // most words have no more
inline constexpr size_t kMostSeen = 64;
inline constexpr size_t kMostOwnSeen = 4096;  // words, of one agent

// The history that an acquire gets from the write it reads, by how far its scope reaches.
struct Released : Counted {
  Clock gpu;  // released by device threads with scope gpu or wider
  Clock sys;  // released with scope sys, also by the host
  struct OfBlock {
    uint32_t block;
    Clock clock;
  };
  std::vector<OfBlock> by_block;  // with any scope, for threads of the same block
  bool blocks_left_out = false;   // by_block is not complete
};
using ReleasedRef = Ref<const Released>;
ReleasedRef merge(const ReleasedRef& a, const ReleasedRef& b);

// The agent that touched some bytes of a word, and how.
struct Touch {
  Stamp who;
  uint8_t mask = 0;  // bytes of this word
  uint8_t size = 0;  // of the whole access
  bool strong = false;
  Scope scope = Scope::Sys;
};

// A write whose value some agent may still see, or that carries the history that it releases.
struct Write : Touch {
  Write* older = nullptr;
  uint64_t index = 0;  // rising in time, the same in all words of one store
  uint64_t step = 0;
  ReleasedRef released;  // by this write and the release sequences that it continues
  ReleasedRef own;       // by its own agent
  std::array<std::byte, kWord> value{};
};

// An access that a later one may collide with.
struct Past : Touch {
  uint32_t chain = 0;  // Word::chain at its time
  bool writes = false, is_atomic = false;
  uint64_t number = 0;  // rising in time
  Place place;
};

// The past accesses of one word, the newest last. They lie side by side, since every access looks through all
// of them.
class Pasts {
 public:
  [[nodiscard]] std::span<Past> all() const { return {first_, count_}; }
  [[nodiscard]] size_t count() const { return count_; }
  Past& operator[](size_t i) const { return first_[i]; }
  void remove(size_t i) {
    std::move(first_ + i + 1, first_ + count_, first_ + i);
    --count_;
  }

 private:
  friend class Shadow;
  Past* first_ = nullptr;
  uint8_t count_ = 0, room_ = 0;
};

// A strong read of a strong write that could have read an older one. Every agent that comes after the reader
// sees that write or a newer one.
struct Seen {
  Stamp who;
  uint64_t index = 0;
  uint8_t mask = 0;
};

struct Seens {
  uint64_t floor = 0;  // older writes are never read
  std::vector<Seen> list;
};

// The reads of one reader, of any kind: the newest write that it has seen of a word.
class OwnSeen {
 public:
  void add(uint8_t mask, uint64_t index);
  [[nodiscard]] uint64_t newest(uint8_t mask) const;  // of any of these bytes

 private:
  struct Entry {
    uint8_t mask = 0;
    uint64_t index = 0;
  };
  std::array<Entry, 4> entries_{};
};

struct Word {
  Write* newest = nullptr;
  Pasts past;
  std::unique_ptr<Seens> seen;
  std::array<std::byte, kWord> before{};  // the value before the oldest write in the list
  // Updates one after another read each other's values. An agent that comes after the last one comes after
  // all of them and the store that they began with. No agent need have released those.
  uint32_t chain = 0;  // counts the stores
  Stamp last_update;   // of the chain; of no agent if there is none
};

class Shadow {
 public:
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow() { clear(); }

  // Null where nothing was remembered yet.
  Word* find(uint64_t address) {
    Page* page = page_of(address);
    return page ? &page->words[address / kWord % kPageWords] : nullptr;
  }
  Word& at(uint64_t address);

  Write* add_write(Word& word);  // as the newest
  Past& add_past(Word& word);
  void drop_older(Word& word, Write* newer);   // the write after `newer`; its value goes into Word::before
  void drop_writes(Word& word, uint8_t mask);  // drops the writes of no other bytes
  void forget(uint64_t address, uint64_t bytes);
  void clear();

 private:
  static constexpr uint64_t kPageWords = 64, kPageBytes = kPageWords * kWord;
  struct Page {
    std::array<Word, kPageWords> words;
  };
  struct Recent {
    uint64_t number = ~0ull;
    Page* page = nullptr;
  };
  Page* page_of(uint64_t address) {
    uint64_t number = address / kPageBytes;
    Recent& recent = recent_[number % recent_.size()];
    return recent.number == number ? recent.page : look_up(number, recent);
  }
  Page* look_up(uint64_t number, Recent& recent);
  void forget(Word& word);
  void forget_in_page(Page& page, uint64_t first, uint64_t last);

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Recent, 256> recent_{};  // pages found lately; null pages are not kept
  void give_back(Pasts& pasts);

  std::vector<Write*> free_writes_;
  std::vector<Past*> free_few_, free_most_;  // rooms for pasts
};

}  // namespace klap::emulator
