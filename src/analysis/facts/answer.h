// The three answers of an analysis that asks whether something can happen.
//
// `No` and `Yes` are proven from the text; `Unknown` is everything else, and clients treat it as the worse of
// the two. `detail` is one sentence with the deciding place.
#pragma once

#include <string>

namespace klap::analysis {

enum class Answer { No, Yes, Unknown };

inline const char* to_string(Answer answer) {
  return answer == Answer::No ? "no" : answer == Answer::Yes ? "yes" : "unknown";
}

struct Finding {
  Answer answer = Answer::Unknown;
  std::string detail;
};

// "yes: DETAIL", or the answer alone.
inline std::string to_text(const Finding& finding) {
  return to_string(finding.answer) + (finding.detail.empty() ? "" : ": " + finding.detail);
}

}  // namespace klap::analysis
