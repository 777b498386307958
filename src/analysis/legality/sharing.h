// Legality of launching the children at once, by one of the lanes of a warp that arrive at the site together.
//
// Nothing is put off, and the launch goes into the stream that the program named, at the place where the
// program launches: loops, barriers, several sites and other work in streams keep their order by themselves.
// What is left to check is what belongs to a thread rather than to its block: its own stream and its last
// error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"

namespace klap::analysis {

// The first objection to sharing the launches of a site, beside those that stand against any rewrite of it.
// Its stream is one that can be aggregated at all.
std::optional<Objection> object_to_sharing(const FunctionFacts& parent, const Site& site);

// What a kernel asks of the device runtime besides launching.
std::optional<Objection> object_to_calls_beside(const FunctionFacts& parent);

}  // namespace klap::analysis
