// Golden files: the input of a test and the expected result, in one file of tests/jit/golden.
//
// A file starts with comment lines (`#` what it shows, `//` the CUDA source it came from), then has sections
// that each begin with a line `--- name`. Running the tests with KLAP_REBASE=1 writes the result into the
// expected section, to be reviewed and committed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace klap::test {

struct Golden {
  std::filesystem::path path;
  std::string head;                                           // up to the first section
  std::vector<std::pair<std::string, std::string>> sections;  // name, text
  [[nodiscard]] const std::string& section(const std::string& name) const;
  // Its head has a line "# ordering: relaxed": children never meet, which the analysis of their order cannot
  // see.
  [[nodiscard]] bool is_relaxed() const;
  // The values that a line "# optimise: name=value,..." gives optimisations.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> optimisations() const;
};

Golden read_golden(const std::filesystem::path& path);

// All golden files, sorted by name. Fails loudly (throws) if there are none.
std::vector<std::filesystem::path> golden_files();

// Compares `actual` with a section; rewrites the file instead when KLAP_REBASE is set.
void expect_section(const Golden& golden, const std::string& section, const std::string& actual);

// The number of times that `what` stands in `text`.
size_t count(const std::string& text, const std::string& what);

}  // namespace klap::test
