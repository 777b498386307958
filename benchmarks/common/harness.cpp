// Measuring and reporting for the benchmark programs; see harness.h.
#include "harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "cuda_check.h"

namespace bench {
namespace {

struct Measurement {
  long long limit = 0;
  std::vector<double> ms;
  int right = 0;
  int wrong = 0;
  std::string first_mistake;
  long long lost = -1;           // -1: not counted
  long long host_launches = -1;  // of the last run; likewise

  [[nodiscard]] double median() const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  }
  [[nodiscard]] double smallest() const { return *std::min_element(ms.begin(), ms.end()); }
  [[nodiscard]] double largest() const { return *std::max_element(ms.begin(), ms.end()); }
};

class EventPair {
 public:
  EventPair() {
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~EventPair() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  void start() { check(cudaEventRecord(start_), "cudaEventRecord"); }
  // Milliseconds since start(), once the device has come to this point.
  double stop() {
    check(cudaEventRecord(stop_), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "waiting for the run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start_, stop_), "cudaEventElapsedTime");
    return ms;
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

void note_result(Measurement& measurement, const std::string& mistake) {
  if (mistake.empty()) {
    ++measurement.right;
    return;
  }
  ++measurement.wrong;
  if (measurement.first_mistake.empty()) measurement.first_mistake = mistake;
}

// Launches since the process began; -1 where nobody counts them. Only the emulated driver does, by these
// places in its list (src/emulator/driver/control.h).
enum class LaunchedBy { Kernels = 0, Host = 3 };

long long launches(LaunchedBy by) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  using Counts = std::array<unsigned long long, 16>;
  const auto counts =
      reinterpret_cast<int (*)(Counts*)>(driver == nullptr ? nullptr : dlsym(driver, "klap_emulator_counts"));
  Counts found{};
  if (counts == nullptr || counts(&found) != 0) return -1;
  return static_cast<long long>(found.at(static_cast<size_t>(by)));
}

Measurement measure(const CommonOptions& options, Benchmark& benchmark) {
  Measurement measurement;
  EventPair events;
  for (long long i = 0; i < options.warmup; ++i) {
    benchmark.reset();
    benchmark.run();
  }
  for (long long i = 0; i < options.reps; ++i) {
    benchmark.reset();
    check(cudaDeviceSynchronize(), "resetting the problem");
    const long long before = launches(LaunchedBy::Host);
    events.start();
    benchmark.run();
    measurement.ms.push_back(events.stop());
    if (before >= 0) measurement.host_launches = launches(LaunchedBy::Host) - before;
    check(cudaGetLastError(), "the run");
    note_result(measurement, benchmark.verify());
  }
  if (options.count_failures) {
    benchmark.reset();
    measurement.lost = options.variant == "cdp" ? benchmark.count_lost_launches() : 0;
  }
  return measurement;
}

JsonObject to_json(const Measurement& measurement) {
  JsonObject times;
  times.add("median", measurement.median());
  times.add("min", measurement.smallest());
  times.add("max", measurement.largest());
  times.add("samples", measurement.ms);
  JsonObject object;
  object.add("pending_limit", measurement.limit).add("ms", times);
  object.add("right", measurement.right).add("wrong", measurement.wrong);
  if (!measurement.first_mistake.empty()) object.add("first_mistake", measurement.first_mistake);
  if (measurement.lost < 0) {
    object.add_null("lost_launches");
  } else {
    object.add("lost_launches", measurement.lost);
  }
  if (measurement.host_launches >= 0) object.add("host_launches", measurement.host_launches);
  return object;
}

// Text goes where it cannot mix with JSON on standard output.
FILE* text_output(const CommonOptions& options) { return options.json == "-" ? stderr : stdout; }

void print(const char* program, const CommonOptions& options, const Measurement& measurement) {
  FILE* out = text_output(options);
  std::fprintf(out, "%s %s", program, options.variant.c_str());
  if (measurement.limit > 0) std::fprintf(out, ", pending limit %lld", measurement.limit);
  std::fprintf(out, ": median %.4f ms (min %.4f, max %.4f, %zu runs), %d right, %d wrong",
               measurement.median(), measurement.smallest(), measurement.largest(), measurement.ms.size(),
               measurement.right, measurement.wrong);
  if (measurement.lost >= 0) std::fprintf(out, ", %lld launches lost", measurement.lost);
  if (!measurement.first_mistake.empty()) std::fprintf(out, " (%s)", measurement.first_mistake.c_str());
  std::fprintf(out, "\n");
  std::fflush(out);
}

void write_json(const CommonOptions& options, const JsonObject& report) {
  if (options.json.empty()) return;
  FILE* file = options.json == "-" ? stdout : std::fopen(options.json.c_str(), "w");
  if (file == nullptr) {
    std::perror(options.json.c_str());
    std::exit(2);
  }
  std::fprintf(file, "%s\n", report.line().c_str());
  if (file == stdout) {
    std::fflush(stdout);
  } else if (std::fclose(file) != 0) {
    std::perror(options.json.c_str());
    std::exit(2);
  }
}

JsonObject header(const char* program, const CommonOptions& options, const Benchmark& benchmark) {
  JsonObject report;
  report.add("program", program).add("variant", options.variant);
  benchmark.describe(report);
  if (const std::optional<HostWork> work = benchmark.host_work()) {
    report.add("kernel_launches", work->kernels).add("parent_launches", work->parents);
    report.add("fills", work->fills).add("host_reads", work->reads);
  }
  report.add("seed", options.seed).add("warmup", options.warmup).add("reps", options.reps);
  return report;
}

// Solves once and checks: the answer to "run".
JsonObject serve_run(Benchmark& benchmark, EventPair& events) {
  benchmark.reset();
  check(cudaDeviceSynchronize(), "resetting the problem");
  events.start();
  benchmark.run();
  const double ms = events.stop();
  check(cudaGetLastError(), "the run");
  JsonObject answer;
  answer.add("ms", ms).add("mistake", benchmark.verify());
  return answer;
}

JsonObject serve_lost(const CommonOptions& options, Benchmark& benchmark) {
  JsonObject answer;
  benchmark.reset();
  answer.add("lost_launches", options.variant == "cdp" ? benchmark.count_lost_launches() : 0LL);
  return answer;
}

JsonObject serve_limit(long long limit) {
  JsonObject answer;
  answer.add("limit", limit);
  const cudaError_t error = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, limit);
  if (error != cudaSuccess) {
    answer.add("refused", cudaGetErrorString(error));
    cudaGetLastError();
  }
  return answer;
}

void say(const JsonObject& answer) {
  std::printf("%s\n", answer.line().c_str());
  std::fflush(stdout);
}

int serve(const char* program, const CommonOptions& options, Benchmark& benchmark) {
  EventPair events;
  say(header(program, options, benchmark));
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    if (line == "run") {
      say(serve_run(benchmark, events));
    } else if (line == "lost") {
      say(serve_lost(options, benchmark));
    } else if (line.rfind("limit ", 0) == 0) {
      say(serve_limit(std::atoll(line.c_str() + 6)));
    } else {
      std::fprintf(stderr, "%s: unknown command '%s'; run, lost, limit N and quit are\n", program,
                   line.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace

CommonOptions::CommonOptions(std::vector<std::string> allowed)
    : variants(std::move(allowed)), variant(variants.front()) {}

void CommonOptions::add_to(Options& options) {
  options.choice("variant", variant, variants, "child kernel launches, or the same work without them");
  options.integer("seed", seed, 0, "seed of the random input");
  options.integer("reps", reps, 1, "timed repetitions, each checked");
  options.integer("warmup", warmup, 0, "runs before the timed ones");
  options.integer("pending-limit", pending_limit, 0, "pending-launch limit to set; 0 leaves CUDA's default");
  options.flag("count-failures", count_failures, "also run once with a kernel that counts failed launches");
  options.flag("serve", serve, "take commands from standard input: run, lost, limit N, quit");
  options.text("json", json, "write the result as one line of JSON to this file; - for standard output");
}

int run_benchmark(const char* program, const CommonOptions& options, Benchmark& benchmark) {
  if (options.pending_limit > 0) {
    check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, options.pending_limit),
          "setting the pending-launch limit");
  }
  if (options.serve) return serve(program, options, benchmark);
  Measurement measurement = measure(options, benchmark);
  measurement.limit = options.pending_limit;
  print(program, options, measurement);
  JsonObject report = header(program, options, benchmark);
  report.add("result", to_json(measurement));
  if (const long long by_kernels = launches(LaunchedBy::Kernels); by_kernels >= 0)
    report.add("launches_by_kernels", by_kernels);
  write_json(options, report);
  return measurement.wrong == 0 ? 0 : 1;
}

}  // namespace bench
