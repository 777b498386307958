// One entry of the disk cache as bytes: everything about a module in one file, and all of it checked.
//
// magic, format version, size of the file; then the key's text, the toolchain that made the module, the
// decisions it was made for, and the module; last a 128-bit checksum over all bytes before it. One file a
// module, because groups of files can come apart. Numbers are little-endian, as on every machine that CUDA
// runs on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/compile/toolchain.h"
#include "jit/data/rewritten_module.h"

namespace klap::jit {

struct CacheEntry {
  std::string key;  // CacheKey::text
  uint32_t sm = 0;
  std::vector<ToolFile> tools;
  std::string decisions;
  RewrittenModule module;
};

std::string encode(const CacheEntry& entry);

// Throws Error(Io) that says what is wrong with the bytes.
CacheEntry decode(std::string_view bytes);

}  // namespace klap::jit
