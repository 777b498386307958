// The tree as text, for golden files: the kind that the parser gave each piece of a module.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::test {

std::string outline(const ptx::Module& module);

}  // namespace klap::test
