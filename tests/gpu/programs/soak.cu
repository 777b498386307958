// A program that runs for as long as it is told: ten host threads with four streams each launch parents of
// every form at random, in streams and from graphs, and load and unload a module; between rounds the device
// is reset. Each sequence of launches is compared with what it must leave. After each round a line says how
// much memory process, device and malloc have in use while nothing runs, so that what grows can be seen.
//
//   soak [seconds] [seed] [all|native|plain]
//
// Natively, graphs of such launches go wrong (graphs.cu), and the module, which nobody has linked, cannot be
// loaded. So these can be left out. "plain" has graphs, too, but only kernels that launch nothing: what grows
// then is the driver's own.
#include <cuda.h>
#include <dlfcn.h>
#include <malloc.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "graphs.h"

namespace {

constexpr int kHostThreads = 10, kStreams = 4, kMostJobs = 10;
constexpr double kRoundSeconds = 5;
constexpr auto kMostRound = std::chrono::seconds(30);
constexpr int kParents = 24, kCount = 40, kBias = 5;  // of driver_module.cu

using Random = std::mt19937;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Job {
  const char* name;
  void (*launch)(int* cells, int amount, cudaStream_t stream);
  void (*expect)(Cells& cells, int amount);
};

enum class What { All, Native, Plain };

What what_of(const std::string& name) {
  return name == "native" ? What::Native : name == "plain" ? What::Plain : What::All;
}

int blocks_of(int amount) { return 1 + amount % kMostBlocks; }

const std::vector<Job> kJobs = {
    {"parent", [](int* c, int n, cudaStream_t s) { parent<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {"parent_forget",
     [](int* c, int n, cudaStream_t s) { parent_forget<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {"parent_of_two",
     [](int* c, int n, cudaStream_t s) { parent_of_two<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    {"square", [](int* c, int, cudaStream_t s) { square<<<kBlocks, kBlockSize, 0, s>>>(c); },
     [](Cells& c, int) { c.expect_square(); }},
    {"in_order", [](int* c, int n, cudaStream_t s) { in_order<<<1 + n % 4, kBlockSize, 0, s>>>(c); },
     [](Cells& c, int n) { c.expect_in_order(1 + n % 4); }},
    {"descend", [](int* c, int n, cudaStream_t s) { descend<<<1, 1, 0, s>>>(c, n % 5); },
     [](Cells& c, int n) { c.expect_descent(n % 5); }},
    {"links", [](int* c, int n, cudaStream_t s) { links<<<1, kBlockSize, 0, s>>>(c, 0, 1 + n % 9); },
     [](Cells& c, int n) { c.expect_links(1 + n % 9); }},
    {"passing", [](int* c, int n, cudaStream_t s) { passing<<<1, kBlockSize, 0, s>>>(c, 0, 1 + n % 9, 1); },
     [](Cells& c, int n) { c.expect_passing(1 + n % 9); }},
};

const std::vector<Job> kPlainJobs = {
    {"alone", [](int* c, int n, cudaStream_t s) { alone<<<blocks_of(n), kBlockSize, 0, s>>>(c, n); },
     [](Cells& c, int n) { c.expect_parent(n, blocks_of(n)); }},
    kJobs[3],  // "square"
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The driver's own functions for modules.
struct ModuleFunctions {
  decltype(&cuModuleLoadData) load;
  decltype(&cuModuleGetFunction) get;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuModuleUnload) unload;

  ModuleFunctions() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    load = reinterpret_cast<decltype(load)>(dlsym(library, "cuModuleLoadData"));
    get = reinterpret_cast<decltype(get)>(dlsym(library, "cuModuleGetFunction"));
    launch = reinterpret_cast<decltype(launch)>(dlsym(library, "cuLaunchKernel"));
    unload = reinterpret_cast<decltype(unload)>(dlsym(library, "cuModuleUnload"));
  }
};

// What all threads share.
class Soak {
 public:
  Soak(const std::string& program, What what)
      : what_(what),
        module_(read_file(program.substr(0, program.rfind('/') + 1) + "../gpu/driver_module.ptx")) {}
  [[nodiscard]] bool has_graphs() const { return what_ != What::Native; }
  [[nodiscard]] bool has_module() const { return what_ == What::All; }
  [[nodiscard]] const std::vector<Job>& jobs() const { return what_ == What::Plain ? kPlainJobs : kJobs; }
  [[nodiscard]] const char* module() const { return module_.c_str(); }
  [[nodiscard]] const ModuleFunctions& functions() const { return functions_; }
  [[nodiscard]] long sequences() const { return sequences_; }
  [[nodiscard]] std::string why() {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  // What is wrong, or nothing.
  void judge(const std::string& mistake) {
    ++sequences_;
    if (mistake.empty()) return;
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = mistake + ", sequence " + std::to_string(sequences_.load());
  }

 private:
  const What what_;
  const std::string module_;
  const ModuleFunctions functions_;
  std::atomic<long> sequences_ = 0;
  std::mutex mutex_;
  std::string why_;
};

struct Step {
  const Job* job;
  int amount;
};

std::string text_of(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps)
    text += (text.empty() ? "" : " ") + std::string(step.job->name) + "(" + std::to_string(step.amount) + ")";
  return text;
}

std::vector<Step> random_steps(const std::vector<Job>& jobs, Random& random) {
  std::vector<Step> steps(1 + random() % kMostJobs);
  for (Step& step : steps) step = {&jobs[random() % jobs.size()], 1 + static_cast<int>(random() % 50)};
  return steps;
}

void launch(const std::vector<Step>& steps, Cells& cells, cudaStream_t stream) {
  for (const Step& step : steps) step.job->launch(cells.data(), step.amount, stream);
  gpu::check(cudaGetLastError(), "launching");
}

void expect(const std::vector<Step>& steps, Cells& cells) {
  for (const Step& step : steps) step.job->expect(cells, step.amount);
}

// A sequence in a stream. It is named if it goes wrong or does not end.
struct Sequence {
  std::vector<Step> steps;
  int replays = 0;  // of a graph; 0: launches

  [[nodiscard]] std::string text() const {
    return replays == 0 ? text_of(steps) : std::to_string(replays) + " replays of " + text_of(steps);
  }
};

void run_graph(const Sequence& sequence, Cells& cells, cudaStream_t stream) {
  cudaGraph_t graph = capture(
      stream, [&] { launch(sequence.steps, cells, stream); }, cudaStreamCaptureModeRelaxed);
  cudaGraphExec_t executable = instantiate(graph);
  for (int i = 0; i < sequence.replays; ++i) {
    gpu::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    expect(sequence.steps, cells);
  }
  gpu::check(cudaStreamSynchronize(stream), "waiting for a graph");
  gpu::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  gpu::check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

// A host thread with what it launches into. It is made before the threads start, since allocations and waits
// for the device are not allowed while another thread captures.
class Worker {
 public:
  Worker(Soak& soak, uint32_t seed) : soak_(soak), random_(seed), streams_(kStreams), cells_(kStreams) {}

  void work() {
    const Clock::time_point begin = Clock::now();
    while (seconds_since(begin) < kRoundSeconds && soak_.why().empty()) {
      run_streams();
      if (soak_.has_module() && random_() % 16 == 0) run_module();
    }
  }

  // What its streams have not ended.
  [[nodiscard]] std::string unfinished() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (is_running_[i] && cudaStreamQuery(streams_[i]) == cudaErrorNotReady)
        text += "; " + sequences_[i].text();
    }
    return text;
  }

 private:
  // Sequences in all of its streams at once.
  void run_streams() {
    for (size_t i = 0; i < streams_.size(); ++i) {
      begin(i);
      if (sequences_[i].replays != 0) {
        run_graph(sequences_[i], cells_[i], streams_[i]);
        continue;
      }
      launch(sequences_[i].steps, cells_[i], streams_[i]);
      expect(sequences_[i].steps, cells_[i]);
    }
    for (size_t i = 0; i < streams_.size(); ++i) {
      streams_[i].synchronize();
      is_running_[i] = false;
      const std::string mistake = cells_[i].mistake();
      soak_.judge(mistake.empty() ? "" : mistake + " behind " + sequences_[i].text());
    }
  }

  void begin(size_t stream) {
    const std::lock_guard lock(mutex_);
    const bool is_graph = soak_.has_graphs() && random_() % 4 == 0;
    sequences_[stream].replays = is_graph ? 1 + static_cast<int>(random_() % 4) : 0;
    sequences_[stream].steps = random_steps(soak_.jobs(), random_);
    is_running_[stream] = true;
  }

  void run_module() {
    const ModuleFunctions& functions = soak_.functions();
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    check(functions.load(&module, soak_.module()), "cuModuleLoadData");
    check(functions.get(&kernel, module, "launch_all"), "cuModuleGetFunction");
    gpu::check(cudaMemsetAsync(of_module_.data(), 0, of_module_.bytes(), streams_[0]), "clearing");
    int* data = of_module_.data();
    int count = kCount, parents = kParents;
    void* arguments[] = {&data, &count, &parents};
    const auto stream = static_cast<cudaStream_t>(streams_[0]);
    check(functions.launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
    streams_[0].synchronize();
    std::vector<int> expected;
    for (int i = 0; i < kParents * kCount; ++i) expected.push_back(i / kCount + kBias);
    soak_.judge(of_module_.to_host() == expected ? "" : "a module's kernel");
    check(functions.unload(module), "cuModuleUnload");
  }

  static void check(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS) return;
    std::printf("FAIL: %s: error %d\n", call, static_cast<int>(result));
    std::exit(3);
  }

  Soak& soak_;
  Random random_;
  const std::vector<Stream> streams_;
  std::vector<Cells> cells_;
  std::mutex mutex_;  // for unfinished()
  std::array<Sequence, kStreams> sequences_;
  std::array<std::atomic<bool>, kStreams> is_running_{};
  const gpu::Buffer<int> of_module_{kParents * kCount};
};

long resident_kib() {
  malloc_trim(0);
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4;
}

// What malloc has given out: the rest of what grows is freed memory in pieces, or was mapped by the driver.
size_t allocated_kib() {
  const struct mallinfo2 info = mallinfo2();
  return (info.uordblks + info.hblkhd) >> 10;
}

void print_sample(Soak& soak, Clock::time_point begin) {
  size_t free = 0, all = 0;
  gpu::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::printf("SAMPLE %.1f %ld %ld %zu %zu\n", seconds_since(begin), soak.sequences(), resident_kib(),
              (all - free) >> 10, allocated_kib());
  std::fflush(stdout);
}

// Ends the process, which waits for what does not end.
[[noreturn]] void give_up(const std::vector<std::unique_ptr<Worker>>& workers) {
  std::string text;
  for (const auto& worker : workers) text += worker->unfinished();
  std::printf("FAIL soak: a round does not end%s\n", text.c_str());
  std::fflush(stdout);
  if (std::getenv("SOAK_STAYS") != nullptr) std::this_thread::sleep_for(std::chrono::minutes(10));
  std::_Exit(1);
}

void run_round(Soak& soak, Random& random) {
  // Without it native runs lose launches, since all streams' parents share the device.
  gpu::check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 1 << 16), "cudaDeviceSetLimit");
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < kHostThreads; ++i) workers.push_back(std::make_unique<Worker>(soak, random()));
  gpu::wait("zeros");
  const Clock::time_point given_up = Clock::now() + kMostRound;
  std::vector<std::future<void>> threads;
  for (const auto& worker : workers)
    threads.push_back(std::async(std::launch::async, [&worker] { worker->work(); }));
  for (const std::future<void>& thread : threads) {
    if (thread.wait_until(given_up) == std::future_status::timeout) give_up(workers);
  }
  gpu::wait("a round");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  Random random(argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1);
  gpu::Report report("soak");
  Soak soak(argv[0], what_of(argc > 3 ? argv[3] : "all"));
  const Clock::time_point begin = Clock::now();
  for (int round = 0; seconds_since(begin) < seconds && soak.why().empty(); ++round) {
    run_round(soak, random);
    print_sample(soak, begin);
    if (round % 2 == 1) gpu::check(cudaDeviceReset(), "cudaDeviceReset");
  }
  report.expect(soak.why().empty(), "%s", soak.why().c_str());
  return report.finish();
}
