#include "analysis/facts/rejection.h"

namespace klap::analysis {

const char* to_string(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return text;
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  }
  return "unknown";
}

const char* meaning(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return meaning;
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  }
  return "unknown";
}

}  // namespace klap::analysis
