#include "runtime/graphs/idle_nodes.h"

#include <map>
#include <mutex>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"

namespace klap::runtime {

namespace {

// The oldest version and target that CUDA 13 takes.
constexpr char kIdlePtx[] = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .global .align 4 .u32 klap_idle_word;
.visible .entry klap_idle() { ret; }
)";

IdleNodes load() {
  const Driver& cuda = *driver();
  IdleNodes idle;
  CUmodule module = nullptr;
  size_t bytes = 0;
  require(cuda.module_load_data(&module, kIdlePtx), "cuModuleLoadData");
  require(cuda.module_get_function(&idle.kernel, module, "klap_idle"), "cuModuleGetFunction");
  require(cuda.module_get_global(&idle.word, &bytes, module, "klap_idle_word"), "cuModuleGetGlobal");
  return idle;
}

// Never destroyed: exit handlers use them.
std::mutex& idle_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::map<uint64_t, IdleNodes>& known_nodes() {
  static auto& nodes = *new std::map<uint64_t, IdleNodes>;
  return nodes;
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS IdleNodes::launch() const {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = kernel;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  return params;
}

CUDA_MEMSET_NODE_PARAMS IdleNodes::fill() const {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = word;
  params.elementSize = sizeof(unsigned);
  params.width = params.height = 1;
  return params;
}

IdleNodes idle_nodes(uint64_t context_id) {
  const std::lock_guard lock(idle_mutex());
  const auto found = known_nodes().find(context_id);
  return found != known_nodes().end() ? found->second : known_nodes()[context_id] = load();
}

void forget_idle_nodes(uint64_t context_id) {
  const std::lock_guard lock(idle_mutex());
  known_nodes().erase(context_id);
}

}  // namespace klap::runtime
