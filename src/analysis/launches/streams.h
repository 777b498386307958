// Which stream a launch goes into: what its stream operand can be.
//
// The operand is followed to all its possible values (origins.h), and each is put into a class. The first
// three classes are only ever given to literal values, so they are certain; what comes from memory is named
// as well as the code shows it, and is never one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/launches/idioms.h"
#include "analysis/launches/origins.h"

namespace klap::analysis {

enum class StreamClass {
  Null,           // the block's NULL stream
  PerThread,      // the thread's own default stream
  FireAndForget,  // no order at all
  TailLaunch,     // after the parent's grid
  Created,        // by the same function
  Private,        // created by the same thread and kept to itself: given by private_streams.h only
  Passed,         // a parameter
  Array,          // an element of an array, chosen by thread or block index
  Loaded,         // from memory, whose content is not known
  Illegal,        // a literal that is no stream
  Unknown,
};

struct StreamValue {
  StreamClass kind = StreamClass::Unknown;
  std::string text;  // completes "the stream is ..."
};

// All values the operand can have, each once; at least one.
std::vector<StreamValue> stream_values(const OriginQuery& query, std::string_view operand,
                                       const Idiom& idiom);

// "the NULL stream or the fire-and-forget stream".
std::string print(const std::vector<StreamValue>& streams);

}  // namespace klap::analysis
