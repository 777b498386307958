// Loops that end only by the writes of another thread: polling with ordinary loads.
//
// waiting.h knows loads, atomics and fences by which a program says that it looks at what other threads do. A
// program may also wait with a plain load, or with one that merely passes a cache (`ld`, `ld.cg`). The value
// may go through local, shared or global memory or a function before it decides. Searches, walks and
// iterations look alike. The difference is whether the loop would ever end if memory were left alone.
//
// It would not end if nothing that its exits go by changes from one iteration to the next. A value changes if
// it depends on one that the loop carries around and computes anew (a counter, a pointer that walks). It
// changes if it depends on an atomic, a clock, or a call that may change memory. It changes if it depends on
// memory that the loop reads, computes with, and writes back. It also changes if it was chosen by a branch
// that goes by such a value. Registers that only collect (`found |= ...`) do not change by themselves. If no
// such value changes, the loop waits for the loads that an exit goes by. These read memory that the loop does
// not write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"

namespace klap::analysis {

// The space by which an instruction accesses memory: ".global", ".shared", ".local", ".const", ".param";
// empty for a generic address.
std::string_view memory_space(const ptx::Module& module, const ptx::Statement& instruction);

class Polling {
 public:
  // The arguments must outlive this object.
  Polling(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data, const LoopParts& loops)
      : module_(module), flow_(flow), data_(data), loops_(loops), dominance_(flow) {}

  // The loads and the calls, in text order, by which a loop (an index into all of them) waits; none if it
  // would end with memory left alone.
  [[nodiscard]] const std::vector<uint32_t>& watched(uint32_t loop);

 private:
  const ptx::Module& module_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const LoopParts& loops_;
  const Dominance dominance_;
  std::map<uint32_t, std::vector<uint32_t>> known_;
};

}  // namespace klap::analysis
