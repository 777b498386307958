// The memory that the program asked the driver for, looked up by address.
#pragma once

#include <cstdint>
#include <map>

namespace klap::emulator::driver {

enum class BlockKind : uint8_t { Device, Managed, Pinned, Registered };

struct Block {
  uint64_t address = 0, bytes = 0;
  BlockKind kind = BlockKind::Device;
  unsigned flags = 0;
  uint64_t id = 0;  // never given twice
  [[nodiscard]] bool is_host() const { return kind != BlockKind::Device; }
};

class Blocks {
 public:
  void add(const Block& block) { blocks_[block.address] = block; }
  void remove(uint64_t address) { blocks_.erase(address); }
  // The one that begins at the address; null if none does.
  [[nodiscard]] const Block* at(uint64_t address) const;
  // The one that holds the address.
  [[nodiscard]] const Block* around(uint64_t address) const;

 private:
  std::map<uint64_t, Block> blocks_;
};

}  // namespace klap::emulator::driver
