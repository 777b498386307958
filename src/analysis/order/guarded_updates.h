// Loads that only spare an update.
//
//     if (candidate < *best) atomicMin(best, candidate);
//
// The load takes part in nothing but the decision whether to update. An update that is left out would have
// changed nothing: a minimum only gets smaller, whichever threads update it in which order. So such a load
// and the update belong together, and the load may have any order that the update may have. A maximum is
// treated alike.
//
// Four facts show it. Both use one address. The loaded value is read by one comparison with the update's
// operand, in the update's own type. The comparison decides over the update and over nothing else that could
// be noticed. The update runs whenever its operand is the better one.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/order/footprint.h"

namespace klap::analysis {

// Makes such loads accesses of the update's kind and operation.
void join_guards(Footprint& footprint, const FunctionFacts& kernel);

}  // namespace klap::analysis
