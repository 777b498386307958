#include "shim/guard.h"

#include "runtime/process.h"

namespace klap::shim {

bool may_act() noexcept { return libcuda() != nullptr && runtime::active(); }

}  // namespace klap::shim
