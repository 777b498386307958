// This file generates the exits of a parent that launches its children itself (launcher "device").
//
// Every thread is counted as it exits. The last thread of the grid, or of a group of blocks, goes on and
// launches the consumers of the queues.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/synchronisation/exits.h"
#include "ptx/edit.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::transform {

// Makes all threads exit as templates/aggregate/launch_consumer.cu or launch_consumer.cu says. There is one
// of these for each site; the first one counts the threads for all. Returns the declarations of the functions
// that this uses.
std::vector<std::string> add_exits(const analysis::FunctionFacts& parent,
                                   const std::vector<const analysis::Site*>& sites,
                                   const std::vector<DeviceLaunch>& launches, const analysis::Exits& exits,
                                   ptx::Edits& edits, LineTables& lines);

}  // namespace klap::transform
