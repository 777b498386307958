// Text of a module that is made from another one's, piece by piece, with the origin of each piece. So
// messages can name places in the text that people know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap::transform {

class MadeText {
 public:
  // The mark that stands before a piece, which goes up to the next mark. It says that the piece comes from
  // that place of the other module, byte for byte (`copied`) or not. `through` has the meaning of
  // ptx::MadeFrom::Part.
  std::string mark(uint32_t source, bool copied, const std::string& through);
  // The other module with edits, in whose texts marks stand, parsed. Behind an edit, a mark says that copied
  // text follows. Lines keep their numbers up to the first edit. It must not outlive `module`.
  ptx::Module edited(const ptx::Module& module, const ptx::Edits& edits) const;

 private:
  std::string finish(const std::string& text, std::vector<ptx::MadeFrom::Part>& out) const;
  std::vector<ptx::MadeFrom::Part> parts_;
};

}  // namespace klap::transform
