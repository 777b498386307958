// The launch site of a recording parent whose children are not all recorded
// (analysis/optimise/thresholding.h).
//
// The record step (templates/aggregate/record.cu, thresholding.h) answers with an address, where the
// arguments go, or with the number of threads that the child has. In the latter case the thread runs their
// code itself, with the arguments where it has them, and stores nothing.
#pragma once

#include <string>

#include "ptx/edit.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// The text behind the record step. It runs the child and goes on behind the code for recorded children. All
// of it, to the end, stands in one scope.
std::string serial_child_text(const ptx::Module& module, const RecordingSite& site, LineTables& lines);
std::string serial_child_end();

// Makes all loads of the parent coherent, because its own threads may have written the memory that they read.
void read_coherently(const analysis::FunctionFacts& parent, ptx::Edits& edits);

}  // namespace klap::transform
