// Loads that only spare an update.
//
//     if (candidate < *best) atomicMin(best, candidate);
//
// The load takes part in nothing but the decision whether to update, and an update that is left out would
// have changed nothing: a minimum only gets smaller, whoever updates it in which order. So such a load and
// the update belong together, and what holds of the update's order holds of the load's. The same is true of a
// maximum.
//
// Shown by these facts: both use one address; what is loaded is read by one comparison with the update's
// operand, in the update's own type; the comparison decides over the update and over nothing else that could
// be noticed; and the update runs whenever its operand is the better one.
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/order/footprint.h"

namespace klap::analysis {

// Makes such loads accesses of the update's kind and operation.
void join_guards(Footprint& footprint, const FunctionFacts& kernel);

}  // namespace klap::analysis
