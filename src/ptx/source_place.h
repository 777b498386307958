// A place in the source from which PTX was compiled.
#pragma once

#include <string>

namespace klap::ptx {

struct SourcePlace {
  std::string file;
  int line = 0, column = 0;  // from 1; a line of 0 is no place
  [[nodiscard]] bool is_known() const { return line != 0; }
};

}  // namespace klap::ptx
