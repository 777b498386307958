// A program that runs for as long as it is told: ten host threads with four streams each launch parents of
// every form at random, in streams and from graphs, and load and unload a module; between rounds the device
// is reset. Each sequence of launches is compared with what it must leave. After each round a line says how
// much memory process and device have in use while nothing runs, so that what grows can be seen.
//
//   soak [seconds] [seed] [graphs|streams]
//
// Natively, graphs of such launches go wrong (graphs.cu), so they can be left out.
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "graphs.h"

namespace {

constexpr int kHostThreads = 10, kStreams = 4, kMostJobs = 10;
constexpr double kRoundSeconds = 5;
constexpr int kParents = 24, kCount = 40, kBias = 5;  // of driver_module.cu

using Random = std::mt19937;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Job {
  void (*launch)(int* cells, int amount, cudaStream_t stream);
  void (*expect)(Cells& cells, int amount);
};

int blocks_of(int amount) { return 1 + amount % kMostBlocks; }

const Job kJobs[] = {
    {[](int* c, int n, cudaStream_t s) { parent<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {[](int* c, int n, cudaStream_t s) { parent_forget<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {[](int* c, int n, cudaStream_t s) { parent_of_two<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {[](int* c, int, cudaStream_t s) { square<<<kBlocks, kBlockSize, 0, s>>>(c); },
     [](Cells& c, int) { c.expect_square(); }},
    {[](int* c, int n, cudaStream_t s) { in_order<<<1 + n % 4, kBlockSize, 0, s>>>(c); },
     [](Cells& c, int n) { c.expect_in_order(1 + n % 4); }},
    {[](int* c, int n, cudaStream_t s) { descend<<<1, 1, 0, s>>>(c, n % 5); },
     [](Cells& c, int n) { c.expect_descent(n % 5); }},
    {[](int* c, int n, cudaStream_t s) { links<<<1, kBlockSize, 0, s>>>(c, 0, 1 + n % 9); },
     [](Cells& c, int n) { c.expect_links(1 + n % 9); }},
    {[](int* c, int n, cudaStream_t s) { passing<<<1, kBlockSize, 0, s>>>(c, 0, 1 + n % 9, 1); },
     [](Cells& c, int n) { c.expect_passing(1 + n % 9); }},
};

// What all threads share.
class Soak {
 public:
  Soak(const char* program, bool graphs) : graphs_(graphs) {
    const std::string path(program);
    module_ = path.substr(0, path.rfind('/') + 1) + "driver_module.fatbin";
  }
  [[nodiscard]] bool graphs() const { return graphs_; }
  [[nodiscard]] const std::string& module() const { return module_; }
  [[nodiscard]] long sequences() const { return sequences_; }
  [[nodiscard]] std::string why() {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  void judge(bool right, const char* what) {
    ++sequences_;
    if (right) return;
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = std::string(what) + ", sequence " + std::to_string(sequences_.load());
  }

 private:
  const bool graphs_;
  std::string module_;
  std::atomic<long> sequences_ = 0;
  std::mutex mutex_;
  std::string why_;
};

struct Step {
  const Job* job;
  int amount;
};

std::vector<Step> random_steps(Random& random) {
  std::vector<Step> steps(1 + random() % kMostJobs);
  for (Step& step : steps) step = {kJobs + random() % std::size(kJobs), 1 + static_cast<int>(random() % 50)};
  return steps;
}

void launch(const std::vector<Step>& steps, Cells& cells, cudaStream_t stream) {
  for (const Step& step : steps) step.job->launch(cells.data(), step.amount, stream);
  gpu::check(cudaGetLastError(), "launching");
}

void expect(const std::vector<Step>& steps, Cells& cells) {
  for (const Step& step : steps) step.job->expect(cells, step.amount);
}

void run_graph(Random& random, Cells& cells, cudaStream_t stream) {
  const std::vector<Step> steps = random_steps(random);
  cudaGraph_t graph = capture(
      stream, [&] { launch(steps, cells, stream); }, cudaStreamCaptureModeRelaxed);
  cudaGraphExec_t executable = instantiate(graph);
  const int replays = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < replays; ++i) {
    gpu::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    expect(steps, cells);
  }
  gpu::check(cudaStreamSynchronize(stream), "waiting for a graph");
  gpu::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  gpu::check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// Sequences in all streams of the thread at once.
void run_streams(Soak& soak, Random& random, const std::vector<Stream>& streams, std::vector<Cells>& cells) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (soak.graphs() && random() % 4 == 0) {
      run_graph(random, cells[i], streams[i]);
      continue;
    }
    const std::vector<Step> steps = random_steps(random);
    launch(steps, cells[i], streams[i]);
    expect(steps, cells[i]);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    streams[i].synchronize();
    soak.judge(cells[i].is_as_expected(), "launches of one stream");
  }
}

void run_module(Soak& soak, const Stream& stream) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  gpu::check(
      cudaLibraryLoadFromFile(&library, soak.module().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      "cudaLibraryLoadFromFile");
  gpu::check(cudaLibraryGetKernel(&kernel, library, "launch_all"), "cudaLibraryGetKernel");
  const gpu::Buffer<int> cells(kParents * kCount);
  gpu::check(cudaStreamSynchronize(cudaStreamLegacy), "clearing");
  int* data = cells.data();
  int count = kCount, parents = kParents;
  void* arguments[] = {&data, &count, &parents};
  gpu::check(cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, stream),
             "launching a module's kernel");
  stream.synchronize();
  std::vector<int> expected;
  for (int i = 0; i < kParents * kCount; ++i) expected.push_back(i / kCount + kBias);
  soak.judge(cells.to_host() == expected, "a module's kernel");
  gpu::check(cudaLibraryUnload(library), "cudaLibraryUnload");
}

void work(Soak& soak, uint32_t seed) {
  Random random(seed);
  const std::vector<Stream> streams(kStreams);
  std::vector<Cells> cells(kStreams);
  const Clock::time_point begin = Clock::now();
  while (seconds_since(begin) < kRoundSeconds) {
    run_streams(soak, random, streams, cells);
    if (random() % 16 == 0) run_module(soak, streams[0]);
  }
}

long resident_kib() {
  malloc_trim(0);
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4;
}

void print_sample(Soak& soak, Clock::time_point begin) {
  size_t free = 0, all = 0;
  gpu::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::printf("SAMPLE %.1f %ld %ld %zu\n", seconds_since(begin), soak.sequences(), resident_kib(),
              (all - free) >> 10);
  std::fflush(stdout);
}

void run_round(Soak& soak, Random& random) {
  // Without it native runs lose launches, since all streams' parents share the device.
  gpu::check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 1 << 16), "cudaDeviceSetLimit");
  std::vector<std::thread> threads;
  for (int i = 0; i < kHostThreads; ++i) threads.emplace_back(work, std::ref(soak), random());
  for (std::thread& thread : threads) thread.join();
  gpu::wait("a round");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  Random random(argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1);
  gpu::Report report("soak");
  Soak soak(argv[0], argc <= 3 || std::string(argv[3]) == "graphs");
  const Clock::time_point begin = Clock::now();
  for (int round = 0; seconds_since(begin) < seconds && soak.why().empty(); ++round) {
    run_round(soak, random);
    print_sample(soak, begin);
    if (round % 2 == 1) gpu::check(cudaDeviceReset(), "cudaDeviceReset");
  }
  report.expect(soak.why().empty(), "%s", soak.why().c_str());
  return report.finish();
}
