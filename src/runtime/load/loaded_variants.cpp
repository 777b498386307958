#include "runtime/load/loaded_variants.h"

#include "runtime/driver.h"
#include "runtime/links/compiled_code.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/readback.h"
#include "runtime/process.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

void describe(LoadedImage& image, const jit::RewrittenModule& rewritten) {
  image.variants = rewritten.variants;
  image.key = rewritten.key;
  image.uses_sized_memory = uses_sized_memory(rewritten.cubin);
  for (const jit::Variant& variant : image.variants) {
    image.pool_bytes[variant.parent] = config().pool_bytes_for(variant.parent, variant.pool_bytes);
    for (const jit::ChildQueue& queue : variant.queues) {
      image.concurrency[variant.parent].push_back(
          config().concurrency_for(variant.parent, queue.child, queue.concurrency));
    }
    if (!config().dependent_launch_for(variant.parent)) image.no_dependent_launch.insert(variant.parent);
    if (!variant.queues.empty() &&
        asks_for_readback(config(), variant.parent, variant.queues.front().child)) {
      image.readback.insert(variant.parent);
      if (!can_read_back(variant))
        log().info(
            "{}: launched by the host without reading back: how many children there are is known only "
            "when all have run",
            demangle(variant.parent));
    }
    if (!variant.promoted) continue;
    image.chains[variant.parent] = {
        .pool = config().pool_for(variant.parent, variant.pool),
        .concurrency = config().concurrency_for(variant.parent, variant.parent, variant.concurrency)};
  }
}

void try_to_make_ready() {
  try_or_report("load", "kernels are not made ready", [] { make_kernels_ready(); });
}

}  // namespace klap::runtime
