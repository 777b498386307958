// Which cases the table of forms, forms.md, takes its cells from.
#pragma once

#include <string>

namespace klap::differential {

// True if a row of the table rests on this case, because it is the first of its row. Such a case must run in
// every configuration in every scope of the tests. Otherwise a cell could say "works" without a test that
// fails if it does not.
bool stands_for_a_form(const std::string& name);

}  // namespace klap::differential
