// A remark says what became of one launch site: rewritten and how, or left and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/source_place.h"

namespace klap::jit {

struct Fact {
  std::string key, value;
};

struct SiteRemark {
  std::string unit, parent, child;  // child empty when the callee is not known
  int line = 0, column = 0;         // of the launch's first call in the unit's PTX
  ptx::SourcePlace source;  // of the launch in the program's source; line 0 where the PTX does not say
  bool rewritten = false;
  std::string granularity;    // rewritten: "grid", "block", "multiblock", "warp", "promotion"
  std::string launcher;       // rewritten: "host" or "device"
  uint32_t group_blocks = 0;  // rewritten: as in analysis::Aggregation
  std::string reason;         // left: stable short name of the reason, from analysis/facts/reasons.def
  std::string detail;         // one sentence: the deciding facts, or why the reason applies
  std::string brief;          // rewritten: how the children run, in a few words of the detail
  // The detail in parts, by keys such as "block": for `--verbose` and for programs.
  std::vector<Fact> facts;
  std::vector<std::string> notes;  // relaxations and the like
};

}  // namespace klap::jit
