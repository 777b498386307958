// Launch sites for people, as they stand in the PTX before any verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace klap::jit {

// One value that the parent stores into the child's parameter block.
struct ArgumentInfo {
  uint32_t offset = 0, bytes = 0;  // place in the child's parameter block
  std::string source;  // "register %rd3", "immediate 5", "argument 2 of parent (int)", "not stored"
};

// One launch site as it stands in the PTX, before any verdict. Operands are printed as in the PTX ("%r5",
// "32").
struct SiteInfo {
  std::string parent, child;  // mangled; child empty when the callee is not a direct symbol
  std::string idiom;          // name of the launch idiom in ptx-patterns/ that recognised it, "cdp2" for one,
                              // and whether local wrappers stand for its functions
  int line = 0, column = 0;   // of the launch's first call in the unit's PTX
  std::string grid, block;    // three operands, "%r5, 1, 1"
  std::string shared_bytes;   // dynamic shared memory
  std::string stream;         // "NULL", "per-thread", "tail launch", "fire-and-forget" or what it can be
  bool in_loop = false;
  std::vector<ArgumentInfo> arguments;  // by offset
};

}  // namespace klap::jit
