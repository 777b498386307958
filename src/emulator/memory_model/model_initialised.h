// This file knows the bytes of the device's memory that have not been written yet.
//
// They are kept by pages of 4 KB. A page that is uninitialised as a whole has no bits, so that an allocation
// of gigabytes costs little before it is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace klap::emulator {

class Uninitialised {
 public:
  void add(uint64_t address, uint64_t bytes);
  void remove(uint64_t address, uint64_t bytes);
  // Whether one of the bytes is. 1 to 16 bytes, aligned.
  [[nodiscard]] bool has_any(uint64_t address, uint64_t bytes) const;
  void clear() { pages_.clear(); }

 private:
  static constexpr uint64_t kPage = 4096;
  struct Bits {
    std::array<uint64_t, kPage / 64> words{};
    uint64_t count = 0;
    void set(uint64_t first, uint64_t last, bool to);
  };
  template <typename Whole, typename Part>
  static void each_page(uint64_t address, uint64_t bytes, Whole whole, Part part);
  std::unordered_map<uint64_t, std::unique_ptr<Bits>> pages_;  // null: all of the page
};

}  // namespace klap::emulator
