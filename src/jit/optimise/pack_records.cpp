// Packed records: a record leaves out what the consumer knows by itself (transform/text/record_layout.h).
//
// Only where nothing but the site's own consumer reads its records. No thread records twice there: such
// launches stand in no loop.
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  return at.site.options.pack_records && !at.site.way.has_own_room() && !at.site.keeps_launches;
}

void apply(SiteToOptimise& at) {
  PlannedSite& planned = at.site;
  planned.shape.layout =
      planned.way.is_at_once()
          ? transform::shared_layout(at.child_module(), *planned.child, *planned.parent, *planned.site)
          : transform::packed_layout(at.child_module(), *planned.child, *planned.parent, *planned.site,
                                     planned.way.group_blocks, planned.shape.split() != nullptr);
}

}  // namespace

const Optimisation kPackRecords{"pack_records", applies, apply};

}  // namespace klap::jit
