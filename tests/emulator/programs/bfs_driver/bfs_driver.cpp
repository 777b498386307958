// The breadth-first search of benchmarks/bfs as a program of the driver API.
//
// The device code is the benchmark's own, as a fatbin of relocatable code; the host part is what a program
// does that uses CUDA without its runtime library. It runs on any driver: on a GPU, where the image is linked
// with the device runtime first, and on the emulated one, which has the device runtime built in. Prints
// whether the distances are right and, on the emulated driver, how many kernels were launched by kernels; the
// exit code is 0 only for a right result.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../../../benchmarks/common/graph.h"
#include "../../../../benchmarks/common/graph_generators.h"
#include "emulator/driver/control.h"

namespace {

constexpr unsigned kParentBlock = 1024;
constexpr int kSource = 0;
constexpr const char* kExpand = "_Z6expandILb0EEv5LevelPy";  // expand<false>(Level, unsigned long long*)

// As in benchmarks/bfs/bfs.cu, with the driver's addresses.
struct Level {
  CUdeviceptr first, neighbour, frontier;
  int size, next;
  CUdeviceptr distance, next_frontier, next_size;
};

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "bfs_driver: %s\n", why.c_str());
  std::exit(2);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  stop(std::string(what) + ": " + (name != nullptr ? name : "unknown error"));
}
#define CHECK(call) check(call, #call)

struct Options {
  std::string image, device_runtime;
  int vertices = 1500, degree = 12;
  unsigned long long seed = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (!name.starts_with("--")) {
      options.image = name;
      continue;
    }
    if (value == nullptr) stop(name + " needs a value");
    ++i;
    if (name == "--vertices") {
      options.vertices = std::atoi(value);
    } else if (name == "--degree") {
      options.degree = std::atoi(value);
    } else if (name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--device-runtime") {
      options.device_runtime = value;
    } else {
      stop("unknown option " + name);
    }
  }
  if (options.image.empty()) {
    stop("usage: bfs_driver FATBIN [--vertices N] [--degree N] [--seed N] [--device-runtime libcudadevrt.a]");
  }
  return options;
}

// What a program does that has to link its device code with the device runtime itself.
CUresult load_linked(CUmodule* module, const Options& options) {
  CUlinkState link = nullptr;
  CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
  CHECK(cuLinkAddFile(link, CU_JIT_INPUT_FATBINARY, options.image.c_str(), 0, nullptr, nullptr));
  CHECK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, options.device_runtime.c_str(), 0, nullptr, nullptr));
  void* image = nullptr;
  size_t bytes = 0;
  CHECK(cuLinkComplete(link, &image, &bytes));
  const CUresult result = cuModuleLoadData(module, image);
  CHECK(cuLinkDestroy(link));
  return result;
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, bytes));
  return address;
}

CUdeviceptr upload(const std::vector<int>& values) {
  const CUdeviceptr address = allocate(values.size() * sizeof(int));
  CHECK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(int)));
  return address;
}

// The distance of every vertex from the source.
std::vector<int> search(CUfunction expand, const bench::Graph& graph) {
  const auto vertices = static_cast<size_t>(graph.vertices());
  Level level{};
  level.first = upload(graph.first);
  level.neighbour = upload(graph.neighbour);
  level.distance = allocate(vertices * sizeof(int));
  CHECK(cuMemsetD32(level.distance, 0xffffffff, vertices));
  CHECK(cuMemsetD32(level.distance + kSource * sizeof(int), 0, 1));
  const CUdeviceptr frontiers[2] = {allocate(vertices * sizeof(int)), allocate(vertices * sizeof(int))};
  CHECK(cuMemcpyHtoD(frontiers[0], &kSource, sizeof kSource));
  const CUdeviceptr sizes = allocate((vertices + 1) * sizeof(int));
  CHECK(cuMemsetD32(sizes, 0, vertices + 1));
  CUdeviceptr lost = allocate(sizeof(unsigned long long));
  CHECK(cuMemsetD32(lost, 0, 2));
  int size = 1, depth = 0;
  for (; size > 0; ++depth) {
    level.frontier = frontiers[depth % 2];
    level.next_frontier = frontiers[(depth + 1) % 2];
    level.size = size;
    level.next = depth + 1;
    level.next_size = sizes + static_cast<size_t>(depth) * sizeof(int);
    void* arguments[] = {&level, &lost};
    const unsigned blocks = (static_cast<unsigned>(size) + kParentBlock - 1) / kParentBlock;
    CHECK(cuLaunchKernel(expand, blocks, 1, 1, kParentBlock, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cuMemcpyDtoH(&size, level.next_size, sizeof size));
  }
  std::printf("levels: %d\n", depth);
  std::vector<int> distances(vertices);
  CHECK(cuMemcpyDtoH(distances.data(), level.distance, vertices * sizeof(int)));
  return distances;
}

// Nothing is printed on a GPU, which does not count them.
void print_counts() {
  using Counts = int (*)(klap_emulator_counters*);
  const auto counts = reinterpret_cast<Counts>(dlsym(RTLD_DEFAULT, "klap_emulator_counts"));
  klap_emulator_counters counters{};
  if (counts == nullptr || counts(&counters) != 0) return;
  std::printf("kernels launched by the host: %llu\n",
              static_cast<unsigned long long>(counters.host_launches));
  std::printf("kernels launched by kernels: %llu\n",
              static_cast<unsigned long long>(counters.device_launches));
  std::printf("launches by kernels that were lost: %llu\n",
              static_cast<unsigned long long>(counters.refused));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const bench::Graph graph = bench::uniform_graph(options.vertices, options.degree, options.seed);
  std::printf("vertices: %d\nedges: %d\n", graph.vertices(), graph.edges());
  CHECK(cuInit(0));
  CUcontext context = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  CUresult loaded = cuModuleLoad(&module, options.image.c_str());
  if (loaded != CUDA_SUCCESS && !options.device_runtime.empty()) loaded = load_linked(&module, options);
  check(loaded, "cannot load the device code");
  CUfunction expand = nullptr;
  CHECK(cuModuleGetFunction(&expand, module, kExpand));
  const std::vector<int> distances = search(expand, graph), expected = bench::cpu_bfs(graph, kSource);
  size_t wrong = 0;
  for (size_t v = 0; v < distances.size(); ++v) wrong += distances[v] != expected[v] ? 1 : 0;
  if (wrong == 0) {
    std::puts("distances: right");
  } else {
    std::printf("distances: %zu of %zu are wrong\n", wrong, distances.size());
  }
  print_counts();
  CHECK(cuDevicePrimaryCtxRelease(0));
  return wrong == 0 ? 0 : 1;
}
