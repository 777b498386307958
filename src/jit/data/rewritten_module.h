// The result of the pipeline: an image to load, the variants in it, and what became of every launch site.
#pragma once

#include <string>
#include <vector>

#include "jit/data/cache_use.h"
#include "jit/data/remark.h"
#include "jit/data/timings.h"
#include "jit/data/variant.h"

namespace klap::jit {

struct RewrittenModule {
  std::string cubin;  // the image to load; empty when nothing was rewritten
  std::vector<Variant> variants;
  std::vector<SiteRemark> remarks;  // one per launch site, in program order
  Timings timings;
  bool from_memory_cache = false;
  CacheUse cache = CacheUse::Off;
  std::string key;  // hash of all that it was made from (cache/cache_key.h); empty where there is no cache
};

}  // namespace klap::jit
