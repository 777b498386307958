// The device's memory: one range of this process's addresses, so that a device address is a pointer.
//
// The range is reserved at once and given out in pieces. Every piece is followed by a gap that belongs to no
// allocation, and remembered after it was freed. So a wrong address can be told from a right one and be
// named: out of bounds, freed, never allocated. Shared and local memory of running blocks come from here too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// Device addresses are addresses of this process.
inline std::byte* pointer_to(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

class Memory {
 public:
  // Reserved, not used; throws Error(Io) when there is no such range. The first of a process lies at the same
  // address in every run, wherever the system allows it, so that runs can be repeated exactly.
  explicit Memory(uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Allocates memory. Returns nothing when the device's memory (`bytes` of the constructor) is used up.
  // Pinned, shared, local and the runtime's own memory do not count. Managed memory counts by the pages that
  // are used. It is zero at first, as drivers give it. Other contents are undefined: filled with a
  // pattern, so that their use shows. `align` is a power of two, at least 1. An address is not given out
  // again while there is another one. Shared and Local are exceptions: they come and go with every block and
  // are reused at once.
  std::optional<uint64_t> allocate(uint64_t bytes, Owner owner, uint64_t align = 256, std::string name = {});
  // False if `address` is not the start of a living allocation of this owner.
  bool free(uint64_t address, Owner owner);
  // Memory of the host that the device may use at the same address (cuMemHostRegister).
  void add_foreign(uint64_t address, uint64_t bytes);
  bool remove_foreign(uint64_t address);

  // Shared and local memory is not reused at once either, so that its use after the block is found.
  void quarantine_everything(bool on) { quarantine_everything_ = on; }
  // New memory is filled with the pattern up to so many bytes of each allocation. So a huge allocation that
  // is hardly used costs nothing. The default is 1 MB.
  void set_fill_limit(uint64_t bytes) { fill_limit_ = bytes; }
  static constexpr std::byte kNew{0xcd}, kFreed{0xdd};  // the patterns

  // Cheap: whether the bytes lie in the range or in foreign memory, so that touching them cannot hurt this
  // process.
  [[nodiscard]] bool is_mapped(uint64_t address, uint64_t bytes) const {
    return (bytes <= range_ && address - base_ <= range_ - bytes) || is_foreign(address, bytes);
  }
  // The range, without foreign memory.
  [[nodiscard]] uint64_t range_begin() const { return base_; }
  [[nodiscard]] uint64_t range_bytes() const { return range_; }
  // Exact: the living allocation that holds all the bytes, or null.
  [[nodiscard]] const Allocation* find(uint64_t address, uint64_t bytes) const {
    const Allocation* known = recent_[recent_slot(address)];
    return known && holds(*known, address, bytes) ? known : find_slowly(address, bytes);
  }
  // "4 bytes past the end of 400 bytes allocated by the host at 0x..." for an address for which find() is
  // null.
  [[nodiscard]] std::string describe(uint64_t address, uint64_t bytes) const;
  [[nodiscard]] uint64_t total() const { return bytes_; }
  [[nodiscard]] uint64_t used() const { return used_ + used_of_managed(); }
  // The bytes of managed memory in pages that anyone has touched.
  [[nodiscard]] uint64_t used_of_managed() const;
  // Uses all pages of a piece of managed memory that hold these bytes, which stay as they are.
  static void touch(uint64_t address, uint64_t bytes);

 private:
  using Pieces = std::map<uint64_t, Allocation>;
  static bool holds(const Allocation& piece, uint64_t address, uint64_t bytes) {
    return !piece.freed && bytes <= piece.bytes && address - piece.address <= piece.bytes - bytes;
  }
  static size_t recent_slot(uint64_t address) { return address >> 8 & 511; }
  [[nodiscard]] bool is_foreign(uint64_t address, uint64_t bytes) const;
  [[nodiscard]] const Allocation* find_slowly(uint64_t address, uint64_t bytes) const;
  [[nodiscard]] std::optional<uint64_t> place(uint64_t bytes, uint64_t align);
  [[nodiscard]] std::optional<uint64_t> place_in_hole(uint64_t bytes, uint64_t align);
  Allocation* recycle(uint64_t bytes, Owner owner);
  void collect();

  uint64_t base_ = 0, range_ = 0;  // the range: larger than the device's memory, for gaps and freed pieces
  uint64_t bytes_ = 0, used_ = 0;  // used: without managed memory
  uint64_t next_ = 0;              // nothing has been given out from here on
  uint64_t fill_limit_ = 1 << 20;
  bool quarantine_everything_ = false;
  Pieces pieces_;                            // by address, freed ones too until their place is used again
  Pieces foreign_;                           // by address
  std::set<uint64_t> managed_;               // addresses of living pieces of managed memory
  std::multimap<uint64_t, uint64_t> holes_;  // bytes -> address: places used before that may be used again
  std::map<std::pair<Owner, uint64_t>, std::vector<Allocation*>>
      ready_;                                            // freed, to be reused, by size class
  mutable std::array<const Allocation*, 512> recent_{};  // where find() looks first
};

}  // namespace klap::emulator
