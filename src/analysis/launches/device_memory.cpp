#include "analysis/launches/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace klap::analysis {
namespace {

// The first function takes memory from the same heap and free() frees it, but it has an alignment of its own.
// The others are names of the old device runtime for its own memory.
constexpr std::array<std::string_view, 3> kUnchangeable = {"__cuda_syscall_aligned_malloc", "cudaMalloc",
                                                           "cudaFree"};

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool is_device_memory_function(std::string_view name) {
  return is_among(kHeapFunctions, name) || is_among(kRuntimeHeapFunctions, name) ||
         is_among(kUnchangeable, name);
}

bool may_use_device_memory(std::string_view ptx) {
  // Every name ends in one of these.
  return ptx.find("malloc") != std::string_view::npos || ptx.find("free") != std::string_view::npos ||
         ptx.find("Malloc") != std::string_view::npos || ptx.find("Free") != std::string_view::npos;
}

std::set<std::string> device_memory_functions(const ptx::Module& module) {
  std::set<std::string> names;
  for (uint32_t t = 0; t < module.tokens.size(); ++t) {
    if (module.tokens[t].kind == ptx::TokenKind::Identifier && is_device_memory_function(module.text(t)))
      names.emplace(module.text(t));
  }
  return names;
}

std::string check_own_memory(const ptx::Module& module) {
  for (const std::string& name : device_memory_functions(module)) {
    if (is_among(kUnchangeable, name)) return fmt::format("it calls {}", name);
    // Declared as a function everywhere and defined nowhere, or the name means something else here.
    const ptx::Function* const function = module.find_function(name);
    if (function == nullptr || function->is_definition || module.find_variable(name) != nullptr)
      return fmt::format("{} is its own there", name);
  }
  return {};
}

}  // namespace klap::analysis
