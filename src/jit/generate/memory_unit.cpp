#include "jit/generate/memory_unit.h"

#include <fmt/format.h>

#include <string_view>

#include "analysis/launches/device_memory.h"
#include "jit/compile/templates.h"
#include "transform/runtime_calls/device_memory.h"

namespace klap::jit {
namespace {

using analysis::kHeapFunctions;
using analysis::kRuntimeHeapFunctions;

std::string own_name(std::string_view function, const DeviceMemory& memory) {
  return fmt::format("{}$klap_{}", function, memory.tag);
}

}  // namespace

std::string with_own_memory(const std::string& ptx, const DeviceMemory& memory, const std::string& name) {
  transform::FunctionNames names;
  for (const auto& functions : {kHeapFunctions, kRuntimeHeapFunctions}) {
    for (const std::string_view function : functions) names.emplace(function, own_name(function, memory));
  }
  return transform::with_functions(ptx, names, name);
}

std::string device_memory_unit(const DeviceMemory& memory, bool lanes_apart) {
  const transform::FunctionNames names = {
      {"__klap_malloc", own_name(kHeapFunctions[0], memory)},
      {"__klap_free", own_name(kHeapFunctions[1], memory)},
      {"__klap_runtime_malloc", own_name(kRuntimeHeapFunctions[0], memory)},
      {"__klap_runtime_free", own_name(kRuntimeHeapFunctions[1], memory)},
      {"__klap_native_malloc", std::string(kHeapFunctions[0])},
      {"__klap_native_free", std::string(kHeapFunctions[1])},
      {"__klap_native_runtime_malloc", std::string(kRuntimeHeapFunctions[0])},
      {"__klap_native_runtime_free", std::string(kRuntimeHeapFunctions[1])}};
  const auto unit = device_memory_template(memory.has_runtime, memory.in_chunks, lanes_apart);
  return transform::with_functions(unit->source, names, unit->name);
}

}  // namespace klap::jit
