// The launch site of a recording parent whose children are not all recorded
// (analysis/optimise/own_children.h).
//
// The record step (templates/aggregate/record.cu, own_children.h) answers with an address, where the
// arguments go, or with the number of threads that the child has: the thread then runs their code itself,
// with the arguments where it has them, and stores nothing.
#pragma once

#include <string>

#include "ptx/edit.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/aggregate/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// What follows the record step: runs the child and goes on behind what is done for those that are recorded.
// All of it, to the end, stands in one scope.
std::string own_child_text(const ptx::Module& module, const RecordingSite& site, LineTables& lines);
std::string own_child_end();

// No load of the parent may go past the coherent caches: what it reads may have been written by its threads.
void read_coherently(const analysis::FunctionFacts& parent, ptx::Edits& edits);

}  // namespace klap::transform
