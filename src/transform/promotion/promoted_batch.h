// A promoted chain's body where a block takes several links (templates/promote/promote.h: parts).
//
// Each link has a copy of the body's text, with registers and shared variables of its own. Before the
// boundary the copies are interleaved, instruction by instruction where no jump leads over one. So a thread
// has the loads and shuffles of all links in flight at once, and all links meet at one barrier. A link's work
// is mostly waiting for one of these. Then the links combine and look back as one, and the code behind the
// boundary follows link by link (analysis/promotion/batching.h).
//
// A block that has fewer links, at the end of the chain, runs the beginning of its first link in place of the
// missing ones: that does nothing that others can see. A block that has a single link, as all have at first,
// runs a text of its own from beginning to end. The values that several links keep in registers while they
// look back would push some of the single link's values into memory.
#pragma once

#include <functional>
#include <string>

#include "transform/promotion/promoted_body.h"
#include "transform/promotion/promoted_shape.h"

namespace klap::transform {

struct LinkCopy {
  LinkBody body;             // without text at the boundary
  std::string store_values;  // of the link, to where they are combined
};
// Makes a copy for a prefix of all names, and for the register with the 32-bit address of the link's part.
using MakeLinkCopy = std::function<LinkCopy(const std::string& prefix, const std::string& link)>;

// The body for a shape with a batch. `block` is the register with the address of the block's state. `combine`
// is the text that combines the values of its links and looks back.
std::string batched_body(const PromotedParts& parts, const PromotedShape& shape, const std::string& block,
                         const MakeLinkCopy& make_copy, const std::string& combine);

}  // namespace klap::transform
