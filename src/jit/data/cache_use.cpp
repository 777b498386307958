#include "jit/data/cache_use.h"

namespace klap::jit {

const char* to_string(CacheUse use) {
  switch (use) {
    case CacheUse::Off:
      return "off";
    case CacheUse::Hit:
      return "hit";
    case CacheUse::Miss:
      return "miss";
    case CacheUse::Damaged:
      return "damaged";
    case CacheUse::Outdated:
      return "outdated";
    case CacheUse::Unusable:
      return "unusable";
  }
  return "";
}

}  // namespace klap::jit
