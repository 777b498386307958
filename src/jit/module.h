// The pipeline, as one call: program image in, linked image with originals and variants out.
//
// rewrite_module() is a list of passes: take the image apart, parse the units that launch kernels, find the
// launch sites, decide, build the variants from templates, link them with the program's own machine code, and
// check what came out. klap-ptx, the tests and the shim all call it; none of them knows more than this
// header.
#pragma once

#include <optional>
#include <vector>

#include "jit/data/request.h"
#include "jit/data/rewritten_module.h"
#include "jit/data/unit.h"

namespace klap::jit {

// Sites, verdicts and reasons only: neither NVRTC nor nvJitLink is opened.
std::vector<SiteRemark> explain_module(const Program& program, const Request& request);

// The whole pipeline. Throws Error when nothing usable can be made; a single variant that fails only becomes
// a remark. When no site is rewritten `cubin` is empty and the program's own image is to be used.
RewrittenModule rewrite_module(const Program& program, const Request& request);

// Returns what rewrite_module() would if the cache has it, and nothing otherwise.
std::optional<RewrittenModule> find_rewritten(const Program& program, const Request& request);

}  // namespace klap::jit
