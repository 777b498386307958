// The limit of the depth at which kernels may wait for their children (CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH).
//
// Devices of compute capability 9.0 and later do not have it, since kernels cannot wait there. A program of
// version 1 whose kernels wait at some depth sets it before its first launch, and most give up if they
// cannot. Rewritten kernels wait at any depth. So the limit may be set and read here as on older devices, and
// nothing depends on it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace klap::runtime {

// The result of the call for the current context; nothing if the driver answers: calls about other limits,
// and all on devices that have this one.
std::optional<CUresult> set_sync_depth(CUlimit limit, size_t value);
std::optional<CUresult> get_sync_depth(size_t* value, CUlimit limit);

// The context with that id has ended.
void forget_sync_depth(uint64_t id);

}  // namespace klap::runtime
