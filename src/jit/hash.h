// Content hashes for names and cache keys (xxHash, 128 bits; not meant to resist an attacker).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap::jit {

class Hasher {
 public:
  // Parts are length-prefixed, so that moving a byte from one part to the next changes the hash.
  Hasher& add(std::string_view part);
  // 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  std::string bytes_;
};

}  // namespace klap::jit
