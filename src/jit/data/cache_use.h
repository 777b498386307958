// CacheUse says what part the disk cache had in making a module.
#pragma once

namespace klap::jit {

// How the disk cache served one module. This process built the module in every case but Hit.
enum class CacheUse {
  Off,       // not asked
  Hit,       // read from the cache
  Miss,      // not in the cache
  Damaged,   // the entry was not what it should be, and was removed
  Outdated,  // the entry was made by other versions of NVRTC or nvJitLink, or for other decisions
  Unusable,  // the folder cannot be used
};
const char* to_string(CacheUse use);  // "off", "hit", "miss", ...

}  // namespace klap::jit
