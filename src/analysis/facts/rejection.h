// Why a launch site is left as it is: a reason from the documented list (reasons.def), and what decided.
#pragma once

#include <string>

namespace klap::analysis {

enum class Reason {
#define KLAP_REASON(name, text, meaning) name,
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
};

// The reason's short name, and what it means in one sentence without a full stop.
const char* to_string(Reason reason);
const char* meaning(Reason reason);

struct Rejection {
  Reason reason{};
  std::string detail;  // one sentence with the deciding facts
};

}  // namespace klap::analysis
