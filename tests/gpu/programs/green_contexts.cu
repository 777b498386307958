// Two green contexts, each with some of the device's multiprocessors: parents run in their streams, while the
// primary context is current and while the green context itself is, beside each other, and in contexts that
// are made and destroyed again and again. Fewer multiprocessors than the device has must be enough for every
// form of a parent. A driver or device without green contexts is said and passes.
#include <cuda.h>

#include <memory>

#include "program.h"

constexpr int kBlocks = 4, kBlockSize = 64, kThreads = kBlocks * kBlockSize, kLaunches = 8, kRounds = 4;
constexpr unsigned kContexts = 2;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x == 0) atomicAdd(cell, amount);
}

__global__ void parent(int* cells, int amount) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t % 3 != 2) add_to<<<t % 4 + 1, 32>>>(cells + t, amount);
}

// Children that launch children, to a depth.
__global__ void tree(int* cells, int node, int depth) {
  if (threadIdx.x == 0) atomicAdd(cells + node, 1);
  if (depth > 0 && threadIdx.x < 2)
    tree<<<1, 32>>>(cells, 2 * node + 1 + static_cast<int>(threadIdx.x), depth - 1);
}

namespace {

struct Functions {
  decltype(&cuDeviceGetDevResource) device_resource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  decltype(&cuGreenCtxDestroy) destroy;
  decltype(&cuGreenCtxStreamCreate) create_stream;
  decltype(&cuCtxFromGreenCtx) context_of;
  decltype(&cuCtxSetCurrent) set_current;
  decltype(&cuCtxGetCurrent) get_current;
};
Functions driver;

template <class Function>
bool find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &found, 12050, cudaEnableDefault, &result) != cudaSuccess)
    (void)cudaGetLastError();
  function = reinterpret_cast<Function>(found);
  return result == cudaDriverEntryPointSuccess && found != nullptr;
}

bool find_all() {
  return find("cuDeviceGetDevResource", driver.device_resource) &&
         find("cuDevSmResourceSplitByCount", driver.split) &&
         find("cuDevResourceGenerateDesc", driver.describe) && find("cuGreenCtxCreate", driver.create) &&
         find("cuGreenCtxDestroy", driver.destroy) && find("cuGreenCtxStreamCreate", driver.create_stream) &&
         find("cuCtxFromGreenCtx", driver.context_of) && find("cuCtxSetCurrent", driver.set_current) &&
         find("cuCtxGetCurrent", driver.get_current);
}

void check_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("FAIL: %s: error %d\n", call, static_cast<int>(result));
  std::exit(3);
}

class GreenContext {
 public:
  explicit GreenContext(CUdevResource& resource) {
    CUdevResourceDesc description = nullptr;
    check_driver(driver.describe(&description, &resource, 1), "cuDevResourceGenerateDesc");
    check_driver(driver.create(&green_, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    check_driver(driver.create_stream(&stream_, green_, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
  }
  ~GreenContext() {
    gpu::check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    check_driver(driver.destroy(green_), "cuGreenCtxDestroy");
  }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  [[nodiscard]] CUstream stream() const { return stream_; }
  [[nodiscard]] CUcontext context() const {
    CUcontext context = nullptr;
    check_driver(driver.context_of(&context, green_), "cuCtxFromGreenCtx");
    return context;
  }

 private:
  CUgreenCtx green_ = nullptr;
  CUstream stream_ = nullptr;
};

std::vector<int> expected_cells(int launches) {
  std::vector<int> cells(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    if (t % 3 != 2) cells[t] = (t % 4 + 1) * launches * (launches + 1) / 2;
  }
  return cells;
}

void run_parents(gpu::Report& report, const char* what, const std::vector<CUstream>& streams) {
  std::vector<std::unique_ptr<gpu::Buffer<int>>> cells;
  for (size_t i = 0; i < streams.size(); ++i) cells.push_back(std::make_unique<gpu::Buffer<int>>(kThreads));
  gpu::wait("clearing");
  for (int i = 1; i <= kLaunches; ++i) {
    for (size_t s = 0; s < streams.size(); ++s)
      parent<<<kBlocks, kBlockSize, 0, streams[s]>>>(cells[s]->data(), i);
  }
  gpu::check(cudaGetLastError(), what);
  for (CUstream stream : streams) gpu::check(cudaStreamSynchronize(stream), what);
  for (const auto& of_stream : cells)
    report.expect_equal(what, of_stream->to_host(), expected_cells(kLaunches));
}

void run_tree(gpu::Report& report, const char* what, CUstream stream) {
  constexpr int kDepth = 7, kNodes = (2 << kDepth) - 1;
  const gpu::Buffer<int> cells(kNodes);
  gpu::wait("clearing");
  tree<<<1, 32, 0, stream>>>(cells.data(), 0, kDepth);
  gpu::check(cudaGetLastError(), what);
  gpu::check(cudaStreamSynchronize(stream), what);
  report.expect_equal(what, cells.to_host(), std::vector<int>(kNodes, 1));
}

void run_round(gpu::Report& report, CUdevResource* groups) {
  GreenContext first(groups[0]), second(groups[1]);
  run_parents(report, "streams of green contexts", {first.stream(), second.stream()});
  run_tree(report, "a tree in a green context's stream", first.stream());
  CUcontext primary = nullptr;
  check_driver(driver.get_current(&primary), "cuCtxGetCurrent");
  for (const GreenContext* green : {&first, &second}) {
    check_driver(driver.set_current(green->context()), "cuCtxSetCurrent");
    run_parents(report, "a green context that is current", {green->stream()});
    run_tree(report, "a tree in a green context", green->stream());
    check_driver(driver.set_current(primary), "cuCtxSetCurrent");
  }
  run_parents(report, "the primary context beside them", {nullptr, second.stream()});
}

}  // namespace

int main() {
  gpu::Report report("green_contexts");
  gpu::check(cudaFree(nullptr), "cudaFree");
  CUdevResource all{}, remaining{}, groups[kContexts];
  unsigned count = kContexts;
  if (!find_all() || driver.device_resource(0, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
      driver.split(groups, &count, &all, &remaining, 0, 8) != CUDA_SUCCESS || count < kContexts) {
    std::printf("no green contexts here\n");
    return report.finish();
  }
  for (int round = 0; round < kRounds; ++round) run_round(report, groups);
  return report.finish();
}
