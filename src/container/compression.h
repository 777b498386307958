// Unpacking of fatbin payloads.
//
// nvcc compresses the entries of relocatable code by default. Up to toolkit 12 (and with -compress-mode=speed
// in 13) each is one raw LZ4 block, in toolkit 13 a zstd frame. Neither the sizes in the header nor the
// compressed bytes can be trusted. So the memory that is taken stays in proportion to the bytes that are
// really there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "container/bytes.h"
#include "container/image.h"

namespace klap::container {

// The payload unpacked, exactly `size` bytes long. Throws Error(Container) that begins with `where`.
std::string decompress(Compression method, Bytes stored, uint64_t size, std::string_view where);

// The first `bytes` of it, of which there are at least so many. Throws likewise for damage within these.
std::string decompress_beginning(Compression method, Bytes stored, uint64_t size, uint64_t bytes,
                                 std::string_view where);

}  // namespace klap::container
