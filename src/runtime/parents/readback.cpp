#include "runtime/parents/readback.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/queues/block_pool.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

constexpr uint64_t kLargestGrid = 0x7fffffff;

// Reads the counters that the parent left in each queue, once it is complete.
CUresult read_counters(const jit::Variant& variant, const LaunchContext& launch,
                       std::vector<KlapCounters>& counters) {
  const RelaxedCapture relaxed;  // another thread may be capturing a stream of its own
  counters.resize(variant.queues.size());
  for (size_t i = 0; i < counters.size(); ++i) {
    const CUresult result = driver()->memcpy_dtoh_async(&counters[i], queue_of(variant, i, launch),
                                                        sizeof counters[i], launch.stream());
    if (result != CUDA_SUCCESS) return result;
  }
  return driver()->stream_synchronize(launch.stream());
}

// Blocks of the consumer: a group of threads for each block of a child. Children of 2^16 blocks or more are
// spread over all groups, so they get enough blocks to fill the device. Children that CUDA would have refused
// have records but no blocks, and one block to count them.
unsigned exact_grid(const KlapCounters& counters, const jit::ChildQueue& queue, unsigned full) {
  const uint64_t blocks = counters.packed >> KLAP_INDEX_BITS;
  const uint64_t pack = std::max(1u, queue.consumer_block_threads / std::max(1u, queue.child_block_threads));
  const uint64_t least = counters.big != 0 ? full : 1;
  return static_cast<unsigned>(std::clamp((blocks + pack - 1) / pack, least, kLargestGrid));
}

bool is_empty(const KlapCounters& counters) { return counters.packed == 0 && counters.big == 0; }

}  // namespace

bool asks_for_readback(const settings::Config& config, const std::string& parent, const std::string& child) {
  return config.value(*settings::find_key(settings::Section::Kernel, "launcher"), &parent, &child).text ==
         settings::kHostReadback;
}

namespace {

// Consumers of as many blocks as the parent recorded; nothing if the count cannot be read back.
std::optional<PreparedVariant> read_back(const PreparedVariant& prepared, const jit::Variant& variant,
                                         const LaunchContext& launch) {
  std::vector<KlapCounters> counters;
  if (const CUresult result = read_counters(variant, launch, counters); result != CUDA_SUCCESS) {
    // The consumer can read the counters itself. If the parent failed, the consumer will fail as well.
    log().info("{}: what it recorded cannot be read back ({})", demangle(variant.parent), error_name(result));
    return std::nullopt;
  }
  PreparedVariant exact = prepared;
  exact.dependent = false;  // the parent is complete
  for (size_t i = 0; i < counters.size(); ++i) {
    PreparedVariant::Consumer& consumer = exact.consumers[i];
    consumer.grid = is_empty(counters[i]) ? 0 : exact_grid(counters[i], variant.queues[i], consumer.grid);
  }
  return exact;
}

}  // namespace

CUresult launch_after_readback(const PreparedVariant& prepared, const jit::Variant& variant,
                               LaunchContext& launch, std::span<const CUlaunchAttribute> attributes) {
  std::optional<PreparedVariant> exact;
  // The parent is in the stream, so its children must follow, whatever fails here.
  try_or_report("host-readback", "a consumer fills the device",
                [&] { exact = read_back(prepared, variant, launch); });
  return launch_consumers(exact ? *exact : prepared, variant, launch, attributes);
}

}  // namespace klap::runtime
