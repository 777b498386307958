#include "support/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace klap {

std::array<uint64_t, 2> content_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Hasher& Hasher::add(std::string_view part) {
  // Large parts enter by their own hash, so that nothing is copied.
  const XXH128_hash_t hash = XXH3_128bits(part.data(), part.size());
  const uint64_t words[3] = {part.size(), hash.high64, hash.low64};
  bytes_.append(reinterpret_cast<const char*>(words), sizeof(words));
  return *this;
}

std::string Hasher::hex() const {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace klap
