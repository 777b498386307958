// Pictures of what tuning found about a kernel, as SVG.
#pragma once

#include <string>
#include <vector>

#include "klap_ptx/tune/findings.h"

namespace klap::tool {

struct Picture {
  std::string file;  // its name, which is safe whatever the kernel is called
  std::string svg;
};

// Principal components, importance, the tree of clusters, and predicted times against measured ones. Pictures
// that would be empty are left out. `kernel` is a mangled name.
std::vector<Picture> draw(const std::string& kernel, const Findings& found,
                          const std::vector<Candidate>& tried);

}  // namespace klap::tool
