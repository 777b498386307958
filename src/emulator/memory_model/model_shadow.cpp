#include "emulator/memory_model/model_shadow.h"

#include <algorithm>

namespace klap::emulator {
namespace {

constexpr size_t kMostBlocks = 8;       // in Released::by_block
constexpr size_t kMostSpare = 1 << 16;  // unused records that are kept

template <typename Record>
Record* take(std::vector<Record*>& spare) {
  if (spare.empty()) return new Record;
  Record* record = spare.back();
  spare.pop_back();
  return record;
}

Past* take_room(std::vector<Past*>& spare, size_t room) {
  if (spare.empty()) return new Past[room];
  Past* first = spare.back();
  spare.pop_back();
  return first;
}

template <typename Record>
void give_back(std::vector<Record*>& spare, Record* record) {
  if (spare.size() >= kMostSpare) {
    delete record;
    return;
  }
  *record = Record();
  spare.push_back(record);
}

}  // namespace

ReleasedRef merge(const ReleasedRef& a, const ReleasedRef& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  Ref<Released> both(new Released);
  both->gpu = a->gpu;
  both->gpu.join(b->gpu);
  both->sys = a->sys;
  both->sys.join(b->sys);
  both->by_block = a->by_block;
  both->blocks_left_out = a->blocks_left_out || b->blocks_left_out;
  for (const Released::OfBlock& more : b->by_block) {
    auto same = std::ranges::find(both->by_block, more.block, &Released::OfBlock::block);
    if (same == both->by_block.end()) {
      both->by_block.push_back(more);
    } else {
      same->clock.join(more.clock);
    }
  }
  if (both->by_block.size() > kMostBlocks) {
    both->by_block.erase(both->by_block.begin(), both->by_block.end() - kMostBlocks);
    both->blocks_left_out = true;
  }
  return ReleasedRef(both.get());
}

void OwnSeen::add(uint8_t mask, uint64_t index) {
  for (Entry& entry : entries_)
    if (!(entry.mask & ~mask) && entry.index <= index) {  // also an empty one
      entry = {mask, index};
      return;
    }
  for (const Entry& entry : entries_) index = std::max(index, entry.index);
  entries_.fill({});
  entries_[0] = {0xff, index};  // more than what was seen, which never allows too much
}

uint64_t OwnSeen::newest(uint8_t mask) const {
  uint64_t index = 0;
  for (const Entry& entry : entries_)
    if (entry.mask & mask) index = std::max(index, entry.index);
  return index;
}

Shadow::Page* Shadow::look_up(uint64_t number, Recent& recent) {
  auto found = pages_.find(number);
  if (found == pages_.end()) return nullptr;
  recent = {number, found->second.get()};
  return recent.page;
}

Word& Shadow::at(uint64_t address) {
  Page* page = page_of(address);
  if (!page) {
    auto& made = pages_[address / kPageBytes];
    made = std::make_unique<Page>();
    page = made.get();
  }
  return page->words[address / kWord % kPageWords];
}

Write* Shadow::add_write(Word& word) {
  Write* write = take(free_writes_);
  write->older = word.newest;
  word.newest = write;
  return write;
}

// Adds a past access as the newest one; there must be fewer than kMostPast.
Past& Shadow::add_past(Word& word) {
  Pasts& pasts = word.past;
  if (pasts.count_ == pasts.room_) {
    const size_t room = pasts.room_ == 0 ? kFewPast : kMostPast;
    Pasts more;
    more.first_ = take_room(room == kFewPast ? free_few_ : free_most_, room);
    more.count_ = pasts.count_;
    more.room_ = static_cast<uint8_t>(room);
    std::ranges::copy(pasts.all(), more.first_);
    give_back(pasts);
    pasts = more;
  }
  return pasts.first_[pasts.count_++];
}

void Shadow::give_back(Pasts& pasts) {
  std::vector<Past*>& spare = pasts.room_ == kFewPast ? free_few_ : free_most_;
  if (spare.size() < kMostSpare && pasts.first_) {
    spare.push_back(pasts.first_);
  } else {
    delete[] pasts.first_;
  }
  pasts = Pasts();
}

void Shadow::drop_older(Word& word, Write* newer) {
  Write* dropped = newer->older;
  newer->older = dropped->older;
  for (uint64_t i = 0; i < kWord; ++i)
    if (dropped->mask >> i & 1) word.before[i] = dropped->value[i];
  emulator::give_back(free_writes_, dropped);
}

void Shadow::drop_writes(Word& word, uint8_t mask) {
  for (Write** link = &word.newest; Write* write = *link;) {
    if (write->mask & ~mask) {
      link = &write->older;
    } else {
      *link = write->older;
      emulator::give_back(free_writes_, write);
    }
  }
}

void Shadow::forget(Word& word) {
  while (Write* write = word.newest) {
    word.newest = write->older;
    emulator::give_back(free_writes_, write);
  }
  if (word.past.room_ != 0) give_back(word.past);
  word.seen.reset();
  word.chain = 0;
  word.last_update = {};
}

void Shadow::forget_in_page(Page& page, uint64_t first, uint64_t last) {
  for (uint64_t i = first; i <= last; ++i) forget(page.words[i]);
}

// Words that are only partly in the range are forgotten whole.
void Shadow::forget(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || pages_.empty()) return;
  uint64_t first = address / kWord, last = (address + bytes - 1) / kWord;
  auto forget_page = [&](uint64_t number, Page& page) {
    uint64_t begin = number * kPageWords;
    forget_in_page(page, std::max(first, begin) - begin, std::min(last, begin + kPageWords - 1) - begin);
  };
  uint64_t first_page = first / kPageWords, last_page = last / kPageWords;
  if (last_page - first_page > pages_.size()) {
    for (auto& [number, page] : pages_)
      if (number >= first_page && number <= last_page) forget_page(number, *page);
    return;
  }
  for (uint64_t number = first_page; number <= last_page; ++number)
    if (auto found = pages_.find(number); found != pages_.end()) forget_page(number, *found->second);
}

void Shadow::clear() {
  for (auto& [number, page] : pages_) forget_in_page(*page, 0, kPageWords - 1);
  pages_.clear();
  recent_.fill({});
  for (Write* write : free_writes_) delete write;
  for (std::vector<Past*>* spare : {&free_few_, &free_most_}) {
    for (const Past* first : *spare) delete[] first;
    spare->clear();
  }
  free_writes_.clear();
}

}  // namespace klap::emulator
