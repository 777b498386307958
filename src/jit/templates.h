// The rewrite templates of ptx-patterns/templates, compiled for one use and kept for the process.
#pragma once

#include <memory>

#include "ptx/tree.h"
#include "transform/aggregate.h"
#include "transform/warp.h"

namespace klap::jit {

// Compiled and parsed; each specialisation is compiled once per process. Throws Error(Toolchain).
std::shared_ptr<const ptx::Module> record_template(const transform::RecordLayout& layout);
std::shared_ptr<const ptx::Module> consumer_template(const transform::ConsumerShape& shape);
// How the threads of a parent leave that launches its children itself.
std::shared_ptr<const ptx::Module> leave_template(const transform::ConsumerShape& shape);

// What stands at a launch site that the lanes of a warp share.
std::shared_ptr<const ptx::Module> warp_launch_template(const transform::ConsumerShape& shape,
                                                        const transform::SharingShape& sharing);

// All template texts, for cache keys.
std::string template_texts();

}  // namespace klap::jit
