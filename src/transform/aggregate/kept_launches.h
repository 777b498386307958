// Launch sites of a recording parent whose own launch stays, for children that are not recorded there.
//
// If blocks or shared memory differ, CUDA may refuse some launches, or the program may have allowed them in
// ways that its code does not tell. templates/aggregate/record_sizes.cu records all others. For these, the
// program's own two calls stay, each behind a branch, and so does the device runtime's answer. Both ways go
// through the program's null test and argument stores, so records are never packed. A recorded launch cannot
// fail, and leaves the last error alone, as a launch that succeeds does. So the program's queries of it stay
// as they are.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/launches/sites.h"
#include "ptx/tree.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

// One site, of that number in the parent; `queue` is a register with its queue's address.
struct KeptLaunch {
  const analysis::Site& site;
  const ptx::Module& record;
  size_t number = 0;
  std::string queue;
  std::string bound;  // operand: as in RecordingSite

  // The text around the two calls.
  [[nodiscard]] Surroundings around(LineTables& lines) const;
  // This text must stand before the body.
  [[nodiscard]] std::string registers() const;

 private:
  [[nodiscard]] std::string name(const char* what) const;
  [[nodiscard]] std::string landing(const char* what) const;
};

}  // namespace klap::transform
