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
#include "settings/launch_options.h"

namespace klap::jit {

class DiskCache;

using analysis::Granularity;
using analysis::Launcher;
using analysis::Ordering;
using analysis::to_string;

using settings::Buffer;
using settings::kMultiBlock;

struct Request {
  uint32_t sm = 90;  // compute capability of the device, 90 for 9.0
  // The value of a key or of an optimisation (settings/launch_options.h) for launches of `child`, empty where
  // it is not known, by `parent`. Nothing where the settings do not give it: then the program's own
  // annotation holds, else `auto`. Without the function, launches are aggregated over the grid by the host.
  std::function<std::optional<settings::Given>(std::string_view key, const std::string& parent,
                                               const std::string& child)>
      setting;
  // Whether the caller can run variants whose queue has a size of its own (ChildQueue::is_work_queue).
  bool work_queues = true;
  // Whether queues may be double-buffered.
  bool double_buffered = true;
  // Whether the caller can run variants of granularity warp. If not, that counts as none.
  bool warp_aggregation = true;
  // Whether the caller can run variants that take a slice (Variant::in_slices).
  bool slicing = true;
  // Whether the caller can run variants made for some blocks and grids only (Variant::block).
  bool blocks = true;
  // Whether the caller can run promoted chains (Variant::promoted).
  bool promoting = true;
  // Whether the caller can choose between variants by the sizes of children (Variant::in_blocks).
  bool by_sizes = true;
  // Whether the caller can choose between two kernels and one (Variant::fused_threads).
  bool fusing = true;
  // Whether the image may have CUDA's device runtime. If not, a launch that is left ends its kernel with an
  // error (transform/runtime_calls/no_runtime.h).
  bool device_runtime = true;
  bool debug_units = false;  // rewrite units that were compiled for debugging (-G), too
  // Receives every stage of every pass. When set, the disk cache is not used: it has only the last stage.
  Dump dump{};
  const Linker* linker = nullptr;  // null: nvJitLink
  // Where finished modules are kept between processes; null for nowhere.
  DiskCache* cache = nullptr;
  // With `cache`: all settings that the function above follows (settings::canonical_text), for the cache's
  // key.
  std::string configuration;
};

// The value that the settings give for aggregate_malloc. It is asked once for a whole program, because all
// kernels share one heap.
inline std::optional<settings::Given> heap_setting(const Request& request) {
  return request.setting ? request.setting("aggregate_malloc", "", "") : std::nullopt;
}

}  // namespace klap::jit
