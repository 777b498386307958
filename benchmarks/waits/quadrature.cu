// Adaptive quadrature of many integrals by Simpson's rule. A block that is not exact enough launches a block
// for each half of its interval, waits for them and adds their results.
//
// A tail launch adds, too. `--variant flat` has a list of the intervals at each depth. The host reads how
// long the next one is. At the end it goes back through the lists and adds.
//
// Every operation is rounded by itself, so that the CPU gets the same bits.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "waiting_program.h"

namespace {

constexpr int kDeepest = 10;
constexpr int kNodes = 2 << kDeepest;  // of an integral
constexpr double kLow = -3, kHigh = 5;
constexpr int kStarters = 32;  // threads of a block that launches the integrals

// An interval of an integral, whose halves are the nodes 2 * node + 1 and 2 * node + 2.
struct Interval {
  int integral, node, depth;
  double low, high;
};

struct Problem {
  int integrals;
  double tolerance;
  double* areas;  // of the nodes of each integral
};

// What one interval by itself gives.
struct Estimate {
  double area;
  bool is_exact;
};

// Numbers of the CPU and the device, rounded alike.
struct Rounded {
  double value;
};
__host__ __device__ inline Rounded operator+(Rounded a, Rounded b) {
#ifdef __CUDA_ARCH__
  return {__dadd_rn(a.value, b.value)};
#else
  return {a.value + b.value};
#endif
}
__host__ __device__ inline Rounded operator*(Rounded a, Rounded b) {
#ifdef __CUDA_ARCH__
  return {__dmul_rn(a.value, b.value)};
#else
  return {a.value * b.value};
#endif
}
__host__ __device__ inline Rounded operator/(Rounded a, Rounded b) {
#ifdef __CUDA_ARCH__
  return {__ddiv_rn(a.value, b.value)};
#else
  return {a.value / b.value};
#endif
}

__host__ __device__ inline double middle_of(double low, double high) {
  return (Rounded{0.5} * (Rounded{low} + Rounded{high})).value;
}

// A peak at 0 that is narrower for later integrals.
__host__ __device__ inline Rounded peak(int integral, double x) {
  const Rounded width{0.25 / (1 + integral % 61)};
  return Rounded{1} / (Rounded{x} * Rounded{x} + width);
}

__host__ __device__ inline Rounded simpson(int integral, double low, double high) {
  const Rounded ends = peak(integral, low) + peak(integral, high);
  const Rounded middle = Rounded{4} * peak(integral, middle_of(low, high));
  return (Rounded{high} + Rounded{-low}) / Rounded{6} * (ends + middle);
}

__host__ __device__ inline Estimate estimate(const Interval& at, double tolerance) {
  const double middle = middle_of(at.low, at.high);
  const Rounded whole = simpson(at.integral, at.low, at.high);
  const Rounded halves = simpson(at.integral, at.low, middle) + simpson(at.integral, middle, at.high);
  const double error = std::abs((whole + Rounded{-halves.value}).value);
  return {halves.value, at.depth == kDeepest || error <= tolerance / (1 << at.depth)};
}

__host__ __device__ inline Interval whole(int integral) { return {integral, 0, 0, kLow, kHigh}; }

__host__ __device__ inline Interval half(const Interval& of, int which) {
  const double middle = middle_of(of.low, of.high);
  return {of.integral, 2 * of.node + 1 + which, of.depth + 1, which == 0 ? of.low : middle,
          which == 0 ? middle : of.high};
}

__host__ __device__ inline double& area_of(double* areas, const Interval& at) {
  return areas[static_cast<size_t>(at.integral) * kNodes + at.node];
}

__host__ __device__ inline void add_halves(double* areas, const Interval& at) {
  double* const halves = &area_of(areas, at) + at.node + 1;
  area_of(areas, at) = (Rounded{halves[0]} + Rounded{halves[1]}).value;
}

#ifdef BENCH_WAITS

// Block b works on half b.
__global__ void integrate(Problem problem, Interval of) {
  const Interval at = of.depth < 0 ? whole(of.integral) : half(of, static_cast<int>(blockIdx.x));
  const Estimate found = estimate(at, problem.tolerance);
  if (found.is_exact) {
    area_of(problem.areas, at) = found.area;
    return;
  }
  integrate<<<2, 1>>>(problem, at);
  cudaDeviceSynchronize();
  add_halves(problem.areas, at);
}

__global__ void start(Problem problem) {
  const int integral = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (integral < problem.integrals) integrate<<<1, 1>>>(problem, Interval{integral, 0, -1, 0, 0});
}

void launch_start(const Problem& problem, bool, unsigned long long*) {
  start<<<bench::blocks_for(problem.integrals, kStarters), kStarters>>>(problem);
}
class Lists {
 public:
  Lists(const Problem&, int) {}
  void run() {}
};

#else

__global__ void add(Problem problem, Interval at) { add_halves(problem.areas, at); }

// Block b works on half b.
template <bool kCount>
__global__ void integrate(Problem problem, Interval of, unsigned long long* lost) {
  const Interval at = of.depth < 0 ? whole(of.integral) : half(of, static_cast<int>(blockIdx.x));
  const Estimate found = estimate(at, problem.tolerance);
  if (found.is_exact) {
    area_of(problem.areas, at) = found.area;
    return;
  }
  integrate<kCount><<<2, 1, 0, cudaStreamFireAndForget>>>(problem, at, lost);
  bench::count_if_lost<kCount>(lost);
  add<<<1, 1, 0, cudaStreamTailLaunch>>>(problem, at);
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void start(Problem problem, unsigned long long* lost) {
  const int integral = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (integral >= problem.integrals) return;
  integrate<kCount><<<1, 1, 0, cudaStreamFireAndForget>>>(problem, Interval{integral, 0, -1, 0, 0}, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_start(const Problem& problem, bool counts, unsigned long long* lost) {
  const unsigned blocks = bench::blocks_for(problem.integrals, kStarters);
  (counts ? start<true> : start<false>)<<<blocks, kStarters>>>(problem, lost);
}

constexpr int kFlatBlock = 128;

__global__ void list_integrals(Problem problem, Interval* list) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < problem.integrals) list[i] = whole(i);
}

// Intervals that are exact enough are marked by a negative depth.
__global__ void refine(Problem problem, Interval* list, int count, Interval* next, int* next_count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const Interval at = list[i];
  const Estimate found = estimate(at, problem.tolerance);
  if (found.is_exact) {
    area_of(problem.areas, at) = found.area;
    list[i].depth = -1;
    return;
  }
  const int place = atomicAdd(next_count, 2);
  next[place] = half(at, 0);
  next[place + 1] = half(at, 1);
}

__global__ void add_list(Problem problem, const Interval* list, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count && list[i].depth >= 0) add_halves(problem.areas, list[i]);
}

// The intervals at all depths, one list behind the other.
class Lists {
 public:
  Lists(const Problem& problem, int intervals)
      : problem_(problem), intervals_(static_cast<size_t>(intervals)), counts_(kDeepest + 2) {}

  void run() {
    counts_.fill_bytes(0);
    std::vector<int> ends{0, problem_.integrals};
    list_integrals<<<blocks(problem_.integrals), kFlatBlock>>>(problem_, intervals_.data());
    for (size_t depth = 0; ends[depth] < ends[depth + 1]; ++depth) {
      const int begin = ends[depth], end = ends[depth + 1];
      int* const next_count = counts_.data() + depth;
      refine<<<blocks(end - begin), kFlatBlock>>>(problem_, intervals_.data() + begin, end - begin,
                                                  intervals_.data() + end, next_count);
      int next = 0;
      bench::check(cudaMemcpy(&next, next_count, sizeof(next), cudaMemcpyDeviceToHost), "reading a count");
      ends.push_back(end + next);
    }
    for (size_t depth = ends.size() - 3; depth-- > 0;) {
      const int begin = ends[depth], count = ends[depth + 1] - begin;
      add_list<<<blocks(count), kFlatBlock>>>(problem_, intervals_.data() + begin, count);
    }
  }

 private:
  static unsigned blocks(int threads) { return bench::blocks_for(threads, kFlatBlock); }

  Problem problem_;
  bench::DeviceArray<Interval> intervals_;
  bench::DeviceArray<int> counts_;
};

#endif

// Integrates on the CPU, and counts intervals.
struct Reference {
  double tolerance;
  std::vector<double> areas;
  int intervals = 0, depth = 0;

  double integrate(const Interval& at) {
    ++intervals;
    depth = std::max(depth, at.depth);
    const Estimate found = estimate(at, tolerance);
    if (found.is_exact) return found.area;
    const Rounded low{integrate(half(at, 0))};
    const Rounded high{integrate(half(at, 1))};
    return (low + high).value;
  }
  Reference(int integrals, double allowed) : tolerance(allowed) {
    for (int i = 0; i < integrals; ++i) areas.push_back(integrate(whole(i)));
  }
};

class Quadrature final : public bench::StreamProgram {
 public:
  Quadrature(int integrals, double tolerance, const bench::CommonOptions& options)
      : StreamProgram(options),
        integrals_(integrals),
        reference_(integrals, tolerance),
        areas_(static_cast<size_t>(integrals) * kNodes),
        problem_{integrals, tolerance, areas_.data()},
        lists_(problem_, reference_.intervals) {}

  [[nodiscard]] std::string verify() override {
    const std::vector<double> all = areas_.to_host();
    std::vector<double> found;
    for (int i = 0; i < integrals_; ++i) found.push_back(all[static_cast<size_t>(i) * kNodes]);
    return bench::differences("areas", reference_.areas, found);
  }

 private:
  void restore() override { areas_.fill_bytes(0); }
  void launch(bool count) override { launch_start(problem_, count, lost()); }
  void launch_flat() override { lists_.run(); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("integrals", integrals_).add("intervals", reference_.intervals);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const int refined = (reference_.intervals - integrals_) / 2;
    return {.child_launches = integrals_ + (bench::kWaits ? 1LL : 2LL) * refined,
            .bytes_to_move = 8LL * integrals_,
            .flat_kernels = 2 + 2LL * reference_.depth,
            .flat_fills = 1,
            .flat_reads = 1 + reference_.depth};
  }

  int integrals_;
  Reference reference_;
  bench::DeviceArray<double> areas_;
  Problem problem_;
  Lists lists_;
};

}  // namespace

int main(int argc, char** argv) {
  long long integrals = 256, digits = 3;
  bench::WaitingOptions options("quadrature", "adaptive quadrature by blocks that wait for their halves");
  options.integer("integrals", integrals, 1, "integrals to compute");
  options.integer("digits", digits, 0, "decimal places of each that are to be right");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "integrals", integrals, 1 << 16);
  bench::require_at_most(options.name(), "digits", digits, 14);
  Quadrature program(static_cast<int>(integrals), std::pow(10.0, -static_cast<double>(digits)),
                     options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
