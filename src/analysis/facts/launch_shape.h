// These functions read from the code what is fixed about a launch before anything runs: the child's block,
// its shared memory and its launch bounds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// The constant block of a site, x y z; nothing if a dimension is not constant.
std::optional<std::array<uint32_t, 3>> constant_block(const Site& site, const FunctionFacts& parent);

// The dynamic shared memory that the launch gives each block of the child; nothing if it is not constant.
std::optional<uint32_t> constant_shared_bytes(const Site& site, const FunctionFacts& parent);

// The most threads that a block of the kernel may have by its launch bounds.
uint64_t most_threads_allowed(const ptx::Module& module, const ptx::Function& kernel);
// The place of the directive that demands one block size; nothing if the kernel has none.
std::optional<std::string> required_block(const ptx::Module& module, const ptx::Function& kernel);

// `.maxntid 256, 1, 1` and `.reqntid`: the numbers behind a performance directive of a kernel. A missing
// number is 1. Nothing if the kernel does not have the directive.
struct Dimensions {
  std::array<uint64_t, 3> size = {1, 1, 1};
  std::string place;
};
std::optional<Dimensions> dimensions_attribute(const ptx::Module& module, const ptx::Function& kernel,
                                               std::string_view directive);

// The directive by which a kernel is launched in clusters, with its place.
std::optional<std::string> cluster_directive(const ptx::Module& module, const ptx::Function& kernel);

// Kernel parameters may take 4,096 bytes, or 32,764 from PTX 8.1 on.
uint32_t parameter_limit(const ptx::Module& module);

}  // namespace klap::analysis
