// A request says what the caller of the pipeline wants to have done, and what it can run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/facts/granularity.h"
#include "jit/data/linker.h"
#include "jit/data/stage.h"

namespace klap::jit {

class DiskCache;

using analysis::Granularity;
using analysis::Launcher;
using analysis::Ordering;
using analysis::to_string;

// Where the memory of a launch's queues is from: kept in the stream for its next launches, or allocated for
// the launch alone.
enum class Buffer : uint8_t { Pool, Malloc };

// Blocks that launch as one at granularity multiblock where nobody says how many.
inline constexpr uint32_t kMultiBlock = 16;

// A value that the caller's settings give, and who gives it: "environment", "config file".
struct GivenValue {
  std::string text, place;
};

// What the caller wants to have done. `granularity` is asked once per parent kernel with its mangled name.
struct Request {
  uint32_t sm = 90;  // compute capability of the device, 90 for 9.0
  // The value of a key (granularity, launcher, multiblock, consumer_threads, buffer, pack_records, flatten,
  // threshold, promotion, assume) for launches of `child`, empty where it is not known, by `parent`. Nothing
  // where the settings do not give it: then the program's own annotation holds, else `auto`. Where one of the
  // three below is set it decides alone.
  std::function<std::optional<GivenValue>(std::string_view key, const std::string& parent,
                                          const std::string& child)>
      setting;
  std::function<Granularity(const std::string& parent)> granularity;
  std::function<Launcher(const std::string& parent)> launcher;  // the same; Auto when not set
  // Blocks of a group at granularity multiblock, 2 or more; kMultiBlock when not set.
  std::function<uint32_t(const std::string& parent)> multiblock;
  std::function<Ordering(const std::string& parent)> ordering;  // the same; Auto when not set
  // Whether the caller can run variants whose queue has a size of its own (ChildQueue::feeds).
  bool feeding = true;
  // Whether queues may have two heads.
  bool two_heads = true;
  // Whether the caller can run variants of granularity warp. If not, that counts as none.
  bool sharing = true;
  // Whether the caller can run variants that take a slice (Variant::in_slices).
  bool slicing = true;
  // Whether the caller can run variants made for some blocks and grids only (Variant::block).
  bool blocks = true;
  // Whether the caller can run promoted chains (Variant::promoted).
  bool promoting = true;
  // Whether the image may have CUDA's device runtime. If not, a launch that is left ends its kernel with an
  // error (transform/aggregate/no_runtime.h).
  bool device_runtime = true;
  bool debug_units = false;  // rewrite units that were compiled for debugging (-G), too
  // Receives every stage of every pass. When set, the disk cache is not used: it has only the last stage.
  Dump dump{};
  const Linker* linker = nullptr;  // null: nvJitLink
  // Where finished modules are kept between processes; null for nowhere.
  DiskCache* cache = nullptr;
  // With `cache`: all settings that the functions above follow, as text, for the cache's key.
  std::string configuration;
};

}  // namespace klap::jit
