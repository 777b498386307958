// Which cases the table of forms, forms.md, takes its cells from.
#pragma once

#include <string>

namespace klap::differential {

// Whether a row of the table is what this case says: the first of its row. Such a case must be run in every
// configuration in every scope of the tests, or a cell could say "works" without a test that fails if it does
// not.
bool stands_for_a_form(const std::string& name);

}  // namespace klap::differential
