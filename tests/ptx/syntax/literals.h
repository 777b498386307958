// String literals of the project's own sources, for tests that every message is provoked by a case.
#pragma once

#include <string>
#include <vector>

namespace klap::test {

// A source with its string literals taken out and numbers in their place: "0", "1", ... Comments are dropped
// and character literals kept. Quotes in the literals are no longer escaped.
std::string take_literals(const std::string& source, std::vector<std::string>& literals);

}  // namespace klap::test
