// The headers of a fatbin and of its entries, for readers that have no more of it than these.
#pragma once

#include <cstdint>

#include "container/bytes.h"
#include "container/image.h"

namespace klap::container {

struct FatbinOutline {
  uint32_t header_bytes = 0;
  uint64_t entry_bytes = 0;  // of all entries
};

struct EntryOutline {
  FatbinEntry entry;  // without its payload
  uint32_t header_bytes = 0;
  uint64_t stored_bytes = 0;  // of the payload, which follows the header
  uint64_t padded_bytes = 0;  // of the payload, up to the next entry
};

// Both read what begins at `from`, which may be longer than the header. They throw Error(Container).
FatbinOutline read_fatbin_header(Bytes from);
EntryOutline read_entry_header(Bytes from, uint32_t index);

}  // namespace klap::container
