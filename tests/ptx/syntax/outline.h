// The tree as text, for golden files: what the parser took each piece of a module for.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::test {

std::string outline(const ptx::Module& module);

}  // namespace klap::test
