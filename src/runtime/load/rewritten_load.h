// All loads of rewritten images have this in common: they rewrite, load, log what was done, and end in the
// program's own image where anything goes wrong.
#pragma once

#include <cuda.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "jit/module.h"
#include "runtime/stats.h"

namespace klap::runtime {

using Clock = std::chrono::steady_clock;
// Makes the rewritten module, null if the program's own image is to be loaded.
using Rewrite = std::function<std::shared_ptr<const jit::RewrittenModule>(ModuleRecord&)>;
// Loads the cubin and enters the image into the registry; returns the driver's result.
using LoadCubin = std::function<CUresult(const std::shared_ptr<const jit::RewrittenModule>&)>;

// False, logged once, if the driver lacks functions that klap_jit needs.
bool driver_is_complete();

// Rewrites and loads; nothing if nothing was rewritten. Throws Error when the image could not be rewritten or
// the driver refuses what came out.
std::optional<CUresult> rewrite_and_load(const Rewrite& rewrite, ModuleRecord& record, const LoadCubin& load);
// Does that, but failures end in `record.how`, and in one line of the log.
std::optional<CUresult> attempt(const Rewrite& rewrite, ModuleRecord& record, const LoadCubin& load);

// Rewrites and loads what may not be loaded unchanged (stand_ins.h). If it cannot be rewritten, the result is
// the one with which CUDA refuses code that waits for its children, with one line in the log.
CUresult load_or_refuse(const Rewrite& rewrite, ModuleRecord& record, const LoadCubin& load);

// The reason of a failure, for the log and the statistics.
const char* reason_of(const std::exception& error);

// Logs what was done to an image since `start`, and counts it.
void report_module(ModuleRecord record, Clock::time_point start);

}  // namespace klap::runtime
