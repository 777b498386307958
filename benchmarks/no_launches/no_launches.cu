// A program without device-side launches, for measuring what a preloaded library costs those it cannot help.
//
// It times the places where an interposed driver could add anything: creating the context, loading the module
// and finding a kernel (both happen at the first use of a kernel), single launches and a long row of them.
// Wall-clock times, because the question is about the host.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/cuda_check.h"
#include "../common/json.h"
#include "../common/options.h"

__global__ void add(const int* a, const int* b, int* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

namespace {

constexpr int kElements = 4096;
constexpr int kBlock = 256;
constexpr int kLaunches = 2000;
constexpr int kRounds = 9;

class Stopwatch {
 public:
  [[nodiscard]] double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Microseconds for one launch in a row of many, waiting for the device only at the end.
double launch_us(const int* a, const int* b, int* sum) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    for (int i = 0; i < kLaunches; ++i) add<<<kElements / kBlock, kBlock>>>(a, b, sum, kElements);
    bench::check(cudaDeviceSynchronize(), "the launches");
    rounds.push_back(watch.ms() * 1000 / kLaunches);
  }
  return median(rounds);
}

}  // namespace

int main(int argc, char** argv) {
  std::string json;
  bench::Options options("no_launches", "times a program that launches nothing from the device");
  options.text("json", json, "- writes one line of JSON to standard output instead of text");
  options.parse(argc, argv);

  const Stopwatch whole;
  bench::require_device("no_launches");
  const Stopwatch context;
  bench::check(cudaFree(nullptr), "creating the context");
  const double context_ms = context.ms();

  std::vector<int> ones(kElements, 1);
  std::vector<int> counting(kElements);
  for (int i = 0; i < kElements; ++i) counting[i] = i;
  const bench::DeviceArray<int> a(ones);
  const bench::DeviceArray<int> b(counting);
  const bench::DeviceArray<int> sum(kElements);

  const Stopwatch load;
  cudaFuncAttributes attributes{};
  bench::check(cudaFuncGetAttributes(&attributes, add), "loading the kernel");
  const double load_ms = load.ms();
  const Stopwatch first;
  add<<<kElements / kBlock, kBlock>>>(a.data(), b.data(), sum.data(), kElements);
  bench::check(cudaDeviceSynchronize(), "the first launch");
  const double first_launch_ms = first.ms();
  const double per_launch_us = launch_us(a.data(), b.data(), sum.data());

  const std::vector<int> result = sum.to_host();
  int wrong = 0;
  for (int i = 0; i < kElements; ++i) wrong += result[i] == i + 1 ? 0 : 1;
  const double whole_ms = whole.ms();

  bench::JsonObject report;
  report.add("program", "no_launches").add("context_ms", context_ms).add("load_ms", load_ms);
  report.add("first_launch_ms", first_launch_ms).add("launch_us", per_launch_us).add("whole_ms", whole_ms);
  report.add("right", wrong == 0);
  if (json == "-") {
    std::printf("%s\n", report.line().c_str());
  } else {
    std::printf("context %.2f ms, load %.3f ms, first launch %.3f ms, then %.3f us a launch: %s\n",
                context_ms, load_ms, first_launch_ms, per_launch_us, wrong == 0 ? "right" : "wrong");
  }
  return wrong == 0 ? 0 : 1;
}
