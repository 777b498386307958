// Takes code out of kernels that no thread comes to. The second half of a split kernel begins behind a wait,
// and launches in front of it would look like launches of its own.
#pragma once

#include <string>
#include <vector>

namespace klap::transform {

// The unit without such code in these kernels. Its text stays on its lines. `name` is for messages.
std::string without_unreached(const std::string& ptx, const std::vector<std::string>& kernels,
                              const std::string& name);

}  // namespace klap::transform
