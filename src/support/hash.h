// Content hashes for names and cache keys (xxHash, 128 bits; not meant to resist an attacker).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace klap {

// The 128-bit hash of some bytes, high half first.
std::array<uint64_t, 2> content_hash(std::string_view bytes);

class Hasher {
 public:
  // Parts are length-prefixed, so that moving a byte from one part to the next changes the hash.
  Hasher& add(std::string_view part);
  // 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  std::string bytes_;
};

}  // namespace klap
