// The rename-everything pass: the hardest use of the tree that needs no knowledge of any instruction.
//
// Registers (also ranges such as %r<13>), labels, parameters and variables of functions, and the labels of
// debug sections get new names everywhere, by the scoping rules of PTX. Only names that have a meaning
// outside of the module (functions and module variables) are left. So ptxas must make the same machine code
// of both texts. If the parser misread a scope, a label or an operand, it does not.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::test {

std::string rename_everything(const ptx::Module& module);

}  // namespace klap::test
