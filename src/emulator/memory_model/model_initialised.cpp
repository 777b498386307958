#include "emulator/memory_model/model_initialised.h"

#include <algorithm>
#include <bit>

namespace klap::emulator {

void Uninitialised::Bits::set(uint64_t first, uint64_t last, bool to) {
  for (uint64_t word = first / 64; word <= last / 64; ++word) {
    uint64_t low = word == first / 64 ? first % 64 : 0, high = word == last / 64 ? last % 64 : 63;
    uint64_t bits = (~0ull >> (63 - (high - low))) << low;
    uint64_t before = words[word];
    words[word] = to ? before | bits : before & ~bits;
    count += static_cast<uint64_t>(std::popcount(words[word])) - static_cast<uint64_t>(std::popcount(before));
  }
}

// Calls whole(page number), or part(page number, first byte in it, last byte in it).
template <typename Whole, typename Part>
void Uninitialised::each_page(uint64_t address, uint64_t bytes, Whole whole, Part part) {
  if (bytes == 0) return;
  uint64_t last_byte = address + bytes - 1;
  for (uint64_t number = address / kPage; number <= last_byte / kPage; ++number) {
    uint64_t first = number == address / kPage ? address % kPage : 0;
    uint64_t last = number == last_byte / kPage ? last_byte % kPage : kPage - 1;
    if (first == 0 && last == kPage - 1) {
      whole(number);
    } else {
      part(number, first, last);
    }
  }
}

void Uninitialised::add(uint64_t address, uint64_t bytes) {
  each_page(
      address, bytes, [&](uint64_t number) { pages_[number] = nullptr; },
      [&](uint64_t number, uint64_t first, uint64_t last) {
        auto [page, is_new] = pages_.try_emplace(number);
        if (is_new) page->second = std::make_unique<Bits>();
        if (page->second) page->second->set(first, last, true);
      });
}

void Uninitialised::remove(uint64_t address, uint64_t bytes) {
  if (pages_.empty()) return;
  each_page(
      address, bytes, [&](uint64_t number) { pages_.erase(number); },
      [&](uint64_t number, uint64_t first, uint64_t last) {
        auto page = pages_.find(number);
        if (page == pages_.end()) return;
        auto& bits = page->second;
        if (!bits) {
          bits = std::make_unique<Bits>();
          bits->set(0, kPage - 1, true);
        }
        bits->set(first, last, false);
        if (bits->count == 0) pages_.erase(page);
      });
}

bool Uninitialised::has_any(uint64_t address, uint64_t bytes) const {
  auto page = pages_.find(address / kPage);
  if (page == pages_.end()) return false;
  if (!page->second) return true;
  uint64_t at = address % kPage;
  return page->second->words[at / 64] >> at % 64 & ((1ull << bytes) - 1);
}

}  // namespace klap::emulator
