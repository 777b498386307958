// The failing half of bytes.h, out of line because every reader of this layer uses it and none expects it.
#include "container/bytes.h"

#include <fmt/format.h>

#include <bit>

#include "support/error.h"

namespace klap::container {

// CUDA exists on little-endian hosts only, and so do fatbins: load() copies instead of assembling bytes.
static_assert(std::endian::native == std::endian::little);

std::string hex(uint64_t value) { return fmt::format("{:#x}", value); }

void damaged(std::string_view where, std::string_view reason) {
  throw Error(ErrorCode::Container, fmt::format("{}: {}", where, reason));
}

Bytes piece(Bytes bytes, uint64_t offset, uint64_t size, std::string_view where, std::string_view field) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    damaged(where, fmt::format("{} at {:#x} ({} bytes) would reach beyond the {} bytes there are", field,
                               offset, size, bytes.size()));
  }
  return bytes.subspan(offset, size);
}

}  // namespace klap::container
