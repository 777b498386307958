// Reads the line tables of machine code, as profilers do.
//
// They are DWARF 2 line programs (.debug_line) with two opcodes of NVIDIA's own. These say that the following
// instructions belong to a function that was inlined at the place of an earlier row. The toolkit's own
// reader, nvdisasm, is a package of its own that need not be installed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace klap::test {

struct LineRow {
  std::string function;  // whose machine code it is
  uint64_t address = 0;  // in that function
  std::string file;      // without folders
  int64_t line = 0;
  std::string inlined;     // mangled name of the inlined function; empty where nothing is inlined
  int64_t inlined_at = 0;  // line of the call that was inlined
};

// All rows of a cubin, empty when it has no line tables. At unknown contents, it adds a test failure and
// stops reading.
std::vector<LineRow> read_line_table(const std::string& cubin);

}  // namespace klap::test
