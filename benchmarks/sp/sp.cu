// Survey propagation on a random satisfiability problem, with CUDA dynamic parallelism in the decimation.
//
// Survey propagation passes messages between the clauses and the variables of a formula. After some sweeps
// every variable has a bias, and the most biased variables are fixed to the value they lean to: a parent
// thread per variable to fix, in a grid-stride loop over the list of them, launches a child grid over the
// clauses that the variable stands in, and the children mark those that are now satisfied. Then the messages
// of the smaller formula are swept again. The propagation itself needs no launches and is the same in all
// variants.
//
// A run makes a fixed number of steps and reads nothing back: once no variable has a bias, none is fixed any
// more.
//
// `--variant flat` marks the clauses without dynamic parallelism: a group of threads for every variable to
// fix.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"
#include "../common/sat.h"
#include "formula.h"
#include "messages.cuh"
#include "reference.h"

constexpr int kBlock = 256;
constexpr int kParentBlock = 384;
constexpr int kChildBlock = 64;

__global__ void satisfy(const int* clause, const unsigned char* negated, int begin, int degree, int value,
                        unsigned char* satisfied) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree && negated[begin + i] != value) satisfied[clause[begin + i]] = 1;
}

// Only variables that stand in some clause have a bias.
template <bool kCount>
__global__ void decimate(Problem p, Choice choice, unsigned long long* lost) {
  const int size = *choice.size;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
    const int v = choice.list[i];
    const int value = p.bias[v] > 0 ? 1 : 0;
    p.value[v] = value;
    const int begin = p.first[v];
    const int degree = p.first[v + 1] - begin;
    satisfy<<<(degree + kChildBlock - 1) / kChildBlock, kChildBlock>>>(p.clause, p.negated, begin, degree,
                                                                       value, p.satisfied);
    bench::count_if_lost<kCount>(lost);
  }
}

// 2^lane_bits threads for each variable.
__global__ void decimate_flat(Problem p, Choice choice, int lane_bits) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int lanes = 1 << lane_bits;
  const int lane = thread & (lanes - 1);
  const int size = *choice.size;
  for (int i = thread >> lane_bits; i < size; i += static_cast<int>(gridDim.x * blockDim.x) >> lane_bits) {
    const int v = choice.list[i];
    const int value = p.bias[v] > 0 ? 1 : 0;
    if (lane == 0) p.value[v] = value;
    const int end = p.first[v + 1];
    for (int o = p.first[v] + lane; o < end; o += lanes) {
      if (p.negated[o] != value) p.satisfied[p.clause[o]] = 1;
    }
  }
}

namespace {

// About as many threads as a variable has occurrences, 4 to 32.
int lane_bits_for(long long average_degree) {
  int bits = 2;
  while (bits < 5 && (1LL << bits) < average_degree) ++bits;
  return bits;
}

int multiprocessors() {
  int count = 0;
  bench::check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  return count;
}

class SurveyPropagation : public bench::Benchmark {
 public:
  SurveyPropagation(const SpOptions& options, const bench::CommonOptions& common)
      : options_(options),
        formula_(load(options, static_cast<uint64_t>(common.seed))),
        layout_(formula_),
        start_(random_surveys(formula_.literals(), static_cast<uint64_t>(common.seed))),
        expected_(layout_, start_),
        variant_(common.variant),
        at_least_(options.fix > 0 ? static_cast<int>(options.fix) : std::max(1, formula_.variables / 100)),
        lane_bits_(lane_bits_for(formula_.literals() / formula_.variables)),
        parent_blocks_(multiprocessors()),
        first_(layout_.first),
        variable_(layout_.variable),
        clause_(layout_.clause),
        negated_(layout_.negated),
        clause_first_(layout_.clause_first),
        place_(layout_.place),
        start_on_device_(start_),
        survey_(start_.size()),
        warning_(start_.size()),
        satisfied_(formula_.clauses()),
        value_(formula_.variables),
        bias_(formula_.variables),
        histograms_(static_cast<size_t>(options.steps) * kBins),
        list_(formula_.variables),
        sizes_(static_cast<size_t>(options.steps)),
        lost_(1) {
    for (long long step = 0; step < options_.steps; ++step) {
      expected_.step(sweeps_before(options_, step), at_least_);
    }
  }

  void reset() override {
    bench::check(
        cudaMemcpy(survey_.data(), start_on_device_.data(), survey_.bytes(), cudaMemcpyDeviceToDevice),
        "resetting the surveys");
    warning_.fill_bytes(0);
    satisfied_.fill_bytes(0);
    value_.fill_bytes(0xff);  // kFree
    bias_.fill_bytes(0);
    histograms_.fill_bytes(0);
    sizes_.fill_bytes(0);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      propagate([this](const Problem& p, const Choice& choice) {
        decimate_flat<<<parent_blocks_, kParentBlock>>>(p, choice, lane_bits_);
      });
    } else {
      propagate_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    propagate_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    std::string mistake = bench::differences("values", expected_.value, value_.to_host());
    if (mistake.empty()) {
      mistake = bench::differences("satisfied clauses", expected_.satisfied, satisfied_.to_host());
    }
    if (mistake.empty()) mistake = bench::differences("biases", expected_.bias, bias_.to_host());
    if (mistake.empty()) mistake = bench::differences("surveys", expected_.survey, survey_.to_host());
    return mistake;
  }

  void describe(bench::JsonObject& report) const override {
    const auto satisfied = std::count(expected_.satisfied.begin(), expected_.satisfied.end(), 1);
    report.add("formula",
               options_.data.empty() ? "random" : options_.data.substr(options_.data.rfind('/') + 1));
    report.add("variables", formula_.variables).add("clauses", formula_.clauses());
    report.add("literals", formula_.literals());
    report.add("steps", options_.steps)
        .add("first_sweeps", options_.first_sweeps)
        .add("sweeps", options_.sweeps)
        .add("fix", at_least_);
    report.add("fixed", expected_.fixed).add("satisfied", static_cast<long long>(satisfied));
    report.add("child_launches", variant_ == "cdp" ? expected_.fixed : 0);
    // The formula and the starting surveys in, the surveys, biases, values and satisfied clauses out, once.
    report.add("bytes_to_move",
               12LL * formula_.literals() + 8LL * formula_.variables + 5LL * formula_.clauses());
    if (variant_ == "flat") report.add("threads_per_variable", 1 << lane_bits_);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    bench::HostWork work;
    for (long long step = 0; step < options_.steps; ++step)
      work.kernels += 2 * sweeps_before(options_, step) + 3;
    work.parents = variant_ == "cdp" ? options_.steps : 0;
    return work;
  }

 private:
  template <bool kCount>
  void propagate_with_children() {
    propagate([this](const Problem& p, const Choice& choice) {
      decimate<kCount><<<parent_blocks_, kParentBlock>>>(p, choice, lost_.data());
    });
  }

  template <class Decimate>
  void propagate(const Decimate& decimate_chosen) {
    const Problem p = problem();
    const unsigned per_variable = bench::blocks_for(p.variables, kBlock);
    for (long long step = 0; step < options_.steps; ++step) {
      const Choice choice = {at_least_, histograms_.data() + step * kBins, list_.data(),
                             sizes_.data() + step};
      for (long long sweep = 0; sweep < sweeps_before(options_, step); ++sweep) {
        update_warnings<<<bench::blocks_for(p.occurrences, kBlock), kBlock>>>(p);
        update_surveys<<<bench::blocks_for(p.clauses, kBlock), kBlock>>>(p);
      }
      update_biases<<<per_variable, kBlock>>>(p, choice);
      choose<<<bench::blocks_for(p.variables, kBins), kBins>>>(p, choice);
      decimate_chosen(p, choice);
      bench::check(cudaGetLastError(), "launching a step");
    }
  }

  [[nodiscard]] Problem problem() const {
    return {formula_.variables, formula_.clauses(), formula_.literals(),  first_.data(), variable_.data(),
            clause_.data(),     negated_.data(),    clause_first_.data(), place_.data(), survey_.data(),
            warning_.data(),    satisfied_.data(),  value_.data(),        bias_.data()};
  }

  SpOptions options_;
  bench::Formula formula_;
  Layout layout_;
  std::vector<int> start_;
  Reference expected_;
  std::string variant_;
  int at_least_;
  int lane_bits_;
  int parent_blocks_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> variable_;
  bench::DeviceArray<int> clause_;
  bench::DeviceArray<unsigned char> negated_;
  bench::DeviceArray<int> clause_first_;
  bench::DeviceArray<int> place_;
  bench::DeviceArray<int> start_on_device_;
  bench::DeviceArray<int> survey_;
  bench::DeviceArray<int> warning_;
  bench::DeviceArray<unsigned char> satisfied_;
  bench::DeviceArray<int> value_;
  bench::DeviceArray<int> bias_;
  bench::DeviceArray<int> histograms_;  // one for each step
  bench::DeviceArray<int> list_;
  bench::DeviceArray<int> sizes_;  // of the list in each step
  bench::DeviceArray<unsigned long long> lost_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  SpOptions input;
  bench::Options options("sp", "survey propagation with one child kernel per variable that is fixed");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_device("sp");
  SurveyPropagation propagation(input, common);
  return bench::run_benchmark("sp", common, propagation);
}
