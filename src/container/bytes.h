// Reading numbers and pieces out of bytes that cannot be trusted.
//
// Images come from other people's programs and files, so every offset in them is a claim. `piece` is the only
// way in this layer to follow one: it checks the claim against the bytes there are, without overflow, and
// says in plain words what pointed where. Fields are often unaligned, hence the copy in `load`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace klap::container {

using Bytes = std::span<const std::byte>;

// "0x1cd538"
std::string hex(uint64_t value);

// Throws Error(Container) with "WHERE: REASON".
[[noreturn]] void damaged(std::string_view where, std::string_view reason);

// The `size` bytes at `offset`, or Error(Container) "WHERE: FIELD at 0x.. (.. bytes) lies outside the ..
// bytes ..".
Bytes piece(Bytes bytes, uint64_t offset, uint64_t size, std::string_view where, std::string_view field);

// A little-endian number. The caller has made sure, usually through piece(), that it lies inside.
template <class T>
T load(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace klap::container
