// The device's memory: one range of this process's addresses, so that a device address is a pointer.
//
// The range is reserved at once and given out in pieces. Every piece is followed by a gap that belongs to
// nobody, and remembered after it was freed, so that a wrong address can be told from a right one and be
// named: out of bounds, freed, never allocated. Shared and local memory of running blocks come from here too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace klap::emulator {

enum class Owner : uint8_t {
  Host /* cuMemAlloc */,
  Managed,
  Pinned,
  Module,
  DeviceHeap,
  Shared,
  Local,
  Runtime
};

struct Allocation {
  uint64_t address = 0, bytes = 0;
  Owner owner = Owner::Host;
  std::string name;  // of a variable; empty otherwise
  bool freed = false;
};

class Memory {
 public:
  explicit Memory(uint64_t bytes);  // reserved, not used; throws Error(Io) when there is no such range
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Nothing when the device's memory (`bytes` of the constructor) is used up. Contents are undefined: filled
  // with a pattern, so that their use shows. `align` is a power of two, at least 1.
  std::optional<uint64_t> allocate(uint64_t bytes, Owner owner, uint64_t align = 256, std::string name = {});
  // False if `address` is not the start of a living allocation of this owner.
  bool free(uint64_t address, Owner owner);
  // Memory of the host that the device may use at the same address (cuMemHostRegister).
  void add_foreign(uint64_t address, uint64_t bytes);
  bool remove_foreign(uint64_t address);

  // Cheap: whether the bytes lie in the range or in foreign memory, so that touching them cannot hurt this
  // process.
  [[nodiscard]] bool is_mapped(uint64_t address, uint64_t bytes) const {
    return address - base_ < bytes_ - bytes && bytes <= bytes_ ? true : is_foreign(address, bytes);
  }
  // Exact: the living allocation that holds all the bytes, or null.
  [[nodiscard]] const Allocation* find(uint64_t address, uint64_t bytes) const;
  // "4 bytes past the end of 400 bytes allocated by the host at 0x..." for an address for which find() is
  // null.
  [[nodiscard]] std::string describe(uint64_t address, uint64_t bytes) const;
  [[nodiscard]] uint64_t total() const { return bytes_; }
  [[nodiscard]] uint64_t used() const { return used_; }

 private:
  [[nodiscard]] bool is_foreign(uint64_t address, uint64_t bytes) const;

  uint64_t base_ = 0, bytes_ = 0, next_ = 0, used_ = 0;
  std::map<uint64_t, Allocation> pieces_;   // by address, freed ones too until they are used again
  std::map<uint64_t, uint64_t> foreign_;    // address -> bytes
  std::multimap<uint64_t, uint64_t> free_;  // bytes -> address
};

}  // namespace klap::emulator
