// The device memory of a whole module, aggregated by warp or in chunks (the setting aggregate_malloc).
//
// All units' malloc, free, cudaMalloc and cudaFree become those of templates/common/device_memory.cu, in the
// program's own kernels as in their variants: a piece may be freed anywhere. Every unit that mentions them is
// assembled anew, and one more unit defines them. Where that cannot be done for every unit nothing is
// changed.
//
// What cannot be seen from here is another module of the same process. Whoever switches this on says that
// none frees what this one took, nor the other way round.
#pragma once

#include <vector>

#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// Looks through all units, if the settings ask for it.
DeviceMemory find_device_memory(const Program& program, const Request& request, Plan& plan);

// Says at the first site that is rewritten, else at the first, what became of it. Where it was not asked for,
// says that it could be, if some unit takes memory. `is_built`: some launch is rewritten.
void note_device_memory(const Plan& plan, std::vector<SiteRemark>& remarks, bool is_built);

}  // namespace klap::jit
