// The inputs of a rewritten module as text: the keys of the caches in the process and on the disk.
//
// The key is made from inputs alone (decompressed PTX and machine code, options, target, settings, and which
// build of this library), so that a warm start needs no analysis. NVRTC and nvJitLink are not in it: their
// versions are only known once they are opened, which a warm start must not do. The entry names the files
// they were instead, and is dropped when those have changed (toolchain_changed). The driver is not in it
// either: a linked image does not depend on the driver.
#pragma once

#include <string>

#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"

namespace klap::jit {

struct CacheKey {
  std::string text;  // one line for each part; compared in full with what the entry says
  std::string hash;  // of the text, names the entry's file
};

// The program alone, as far as it decides what is produced: code by its hash, and options.
std::string program_text(const Program& program);

CacheKey make_cache_key(const Program& program, const Request& request);

// The key in the process: all of make_cache_key(), and what the request decides about the launches that the
// remarks name. On the disk the entry holds these decisions, since nobody knows them before it is read.
std::string memory_key(const Program& program, const Request& request,
                       const std::vector<SiteRemark>& remarks);

// The version of this library and a hash over all of its files that decide what is produced, templates
// included.
std::string build_id();

// The options that `request` gives to every launch that the remarks name, as text.
std::string decisions(const std::vector<SiteRemark>& remarks, const Request& request);

}  // namespace klap::jit
