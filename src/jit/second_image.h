// Whether a program's image may be loaded twice: as it is, and rewritten beside it while the program runs.
#pragma once

#include <optional>
#include <string>

#include "jit/data/unit.h"

namespace klap::jit {

// Nothing if kernels of both images do the same, whichever of them runs. Otherwise the reason why they may
// not.
//
// Each image has its own copy of the module's variables and of its functions. So there must be no variable
// that outlives a kernel, nor any call by an address, which may have been taken in the other image. The texts
// that printf() is given are no such variables: nothing writes them, and only printf() reads them.
std::optional<std::string> obstacle_to_second_image(const Program& program);

}  // namespace klap::jit
