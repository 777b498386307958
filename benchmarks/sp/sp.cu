// Survey propagation on a random satisfiability problem, with CUDA dynamic parallelism in the decimation.
//
// Survey propagation passes messages between the clauses and the variables of a formula. After some sweeps
// every variable has a bias, and the most biased variables are fixed to the value they lean to: a parent
// thread per variable to fix, in a grid-stride loop over the list of them, launches a child grid over the
// clauses that the variable stands in, and the children mark those that are now satisfied. Then the messages
// of the smaller formula are swept again. The propagation itself needs no launches and is the same in all
// variants.
//
// A survey is the probability that a clause warns a variable that it needs it. All probabilities are
// fixed-point integers and products are taken in a fixed order, so that the CPU's result is the same to the
// last bit.
//
// A run makes a fixed number of steps and reads nothing back: once no variable has a bias, none is fixed any
// more.
//
// `--variant flat` marks the clauses without dynamic parallelism: a group of threads for every variable to
// fix.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_files.h"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "../common/random.h"
#include "../common/sat.h"

constexpr int kBlock = 256;
constexpr int kParentBlock = 384;
constexpr int kChildBlock = 64;
constexpr int kOne = 1 << 15;       // the probability 1
constexpr int kBins = 1024;         // of the histogram of biases, also the block that reads it
constexpr int kFree = -1;           // a variable without a value
constexpr int kLargestWidth = 100;  // literals in a generated clause
constexpr int kMostLiterals = 1 << 28;

// Where everything is. An occurrence is a literal's place in a clause; they are numbered so that those of one
// variable are neighbours, and `place` lists those of each clause. On the device and, for the reference, on
// the CPU.
struct Problem {
  int variables;
  int clauses;
  int occurrences;
  const int* first;              // where each variable's occurrences begin
  const int* variable;           // of an occurrence
  const int* clause;             // of an occurrence
  const unsigned char* negated;  // whether the occurrence is the variable's negation
  const int* clause_first;       // where each clause's literals begin in `place`
  const int* place;              // the occurrence that a clause's literal is
  int* survey;                   // of an occurrence, from its clause to its variable
  int* warning;                  // of an occurrence: how likely its variable can not help its clause
  unsigned char* satisfied;      // of a clause
  int* value;                    // of a variable: 0, 1 or kFree
  int* bias;                     // of a variable, from -kOne (false) to kOne (true)
};

// The variables that one step fixes.
struct Choice {
  int at_least;    // how many, if so many have a bias
  int* histogram;  // how many variables have which bias
  int* list;
  int* size;
};

__host__ __device__ inline int times(int a, int b) { return (a * b) >> 15; }

// A variable is warned by clauses of one side only, or of the other, or by none; both at once is ruled out.
// Returns the share of the second case, where `same` and `opposite` are the probabilities that no clause of
// that side warns.
__host__ __device__ inline int share_warned_by_opposite(int same, int opposite) {
  const int by_opposite = times(kOne - opposite, same);
  const int by_same = times(kOne - same, opposite);
  const int sum = by_opposite + by_same + times(same, opposite);
  return sum == 0 ? 0 : (by_opposite << 15) / sum;
}

// The probability that the clause of occurrence `o` does not warn its variable.
__host__ __device__ inline int quiet_from(const Problem& p, int o) {
  return p.satisfied[p.clause[o]] != 0 ? kOne : kOne - p.survey[o];
}

// Products over a variable's occurrences other than one: those before it, then those behind it from the end.
// The CPU takes them for all occurrences of a variable at once.
__device__ int warning_of(const Problem& p, int o) {
  const int v = p.variable[o];
  const int begin = p.first[v];
  const int end = p.first[v + 1];
  const int sign = p.negated[o];
  int same = kOne;
  int opposite = kOne;
  for (int i = begin; i < o; ++i) {
    int& side = p.negated[i] == sign ? same : opposite;
    side = times(side, quiet_from(p, i));
  }
  int same_behind = kOne;
  int opposite_behind = kOne;
  for (int i = end - 1; i > o; --i) {
    int& side = p.negated[i] == sign ? same_behind : opposite_behind;
    side = times(side, quiet_from(p, i));
  }
  return share_warned_by_opposite(times(same, same_behind), times(opposite, opposite_behind));
}

// A fixed variable can not help a clause that it has not satisfied.
__global__ void update_warnings(Problem p) {
  const int o = blockIdx.x * blockDim.x + threadIdx.x;
  if (o < p.occurrences && p.satisfied[p.clause[o]] == 0) {
    p.warning[o] = p.value[p.variable[o]] != kFree ? kOne : warning_of(p, o);
  }
}

// A clause warns a variable if all its other variables can not help it.
__host__ __device__ inline void update_surveys_of(const Problem& p, int c) {
  const int end = p.clause_first[c + 1];
  for (int i = p.clause_first[c]; i < end; ++i) {
    int product = kOne;
    for (int j = p.clause_first[c]; j < end; ++j) {
      if (j != i) product = times(product, p.warning[p.place[j]]);
    }
    p.survey[p.place[i]] = product;
  }
}

__global__ void update_surveys(Problem p) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < p.clauses && p.satisfied[c] == 0) update_surveys_of(p, c);
}

__host__ __device__ inline int bias_of(const Problem& p, int v) {
  int positive = kOne;
  int negative = kOne;
  for (int i = p.first[v]; i < p.first[v + 1]; ++i) {
    int& side = p.negated[i] != 0 ? negative : positive;
    side = times(side, quiet_from(p, i));
  }
  return share_warned_by_opposite(negative, positive) - share_warned_by_opposite(positive, negative);
}

// The bin of a bias; nothing in bin 0 is ever fixed.
__host__ __device__ inline int bin_of(int bias) {
  const int bin = (bias < 0 ? -bias : bias) / (kOne / kBins);
  return bin < kBins ? bin : kBins - 1;
}

__global__ void update_biases(Problem p, Choice choice) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < p.variables && p.value[v] == kFree) {
    const int bias = bias_of(p, v);
    p.bias[v] = bias;
    if (bin_of(bias) > 0) atomicAdd(&choice.histogram[bin_of(bias)], 1);
  }
}

// The highest bin that, with those above it, holds at least as many variables as asked for, or else bin 1.
// Every thread of a block of kBins threads gets the result.
__device__ int lowest_chosen_bin(const Choice& choice) {
  __shared__ int from[kBins];  // variables in this bin and above
  __shared__ int lowest;
  const int bin = threadIdx.x;
  from[bin] = choice.histogram[bin];
  if (bin == 0) lowest = 1;
  __syncthreads();
  for (int distance = 1; distance < kBins; distance *= 2) {
    const int above = bin + distance < kBins ? from[bin + distance] : 0;
    __syncthreads();
    from[bin] += above;
    __syncthreads();
  }
  const int above = bin + 1 < kBins ? from[bin + 1] : 0;
  if (bin > 0 && from[bin] >= choice.at_least && above < choice.at_least) lowest = bin;
  __syncthreads();
  return lowest;
}

__global__ void choose(Problem p, Choice choice) {
  const int lowest = lowest_chosen_bin(choice);
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < p.variables && p.value[v] == kFree && bin_of(p.bias[v]) >= lowest) {
    choice.list[atomicAdd(choice.size, 1)] = v;
  }
}

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

struct SpOptions {
  long long variables = 10000;
  long long clauses = 42000;
  long long width = 3;
  std::string data;
  long long steps = 54;
  long long first_sweeps = 100;
  long long sweeps = 2;
  long long fix = 0;

  void add_to(bench::Options& options) {
    options.integer("variables", variables, 1, "variables of a random formula");
    options.integer("clauses", clauses, 1, "clauses of a random formula");
    options.integer("width", width, 1, "literals in each clause of a random formula");
    options.text("data", data, "read the formula from this file: DIMACS CNF");
    options.integer("steps", steps, 1, "how often variables are fixed");
    options.integer("first-sweeps", first_sweeps, 1, "sweeps of propagation before the first step");
    options.integer("sweeps", sweeps, 1, "sweeps of propagation before each later step");
    options.integer("fix", fix, 0, "variables to fix in a step, more if equally biased; 0: one in a hundred");
  }
};

// Before step number `step`.
long long sweeps_before(const SpOptions& options, long long step) {
  return step == 0 ? options.first_sweeps : options.sweeps;
}

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

bench::Formula generate(const SpOptions& options, uint64_t seed) {
  if (options.width > options.variables || options.width > kLargestWidth) {
    give_up("sp: a clause has at most " + std::to_string(kLargestWidth) +
            " literals, and no more than there are variables");
  }
  if (options.variables > kMostLiterals || options.clauses > kMostLiterals / options.width) {
    give_up("sp: at most " + std::to_string(kMostLiterals) + " variables and literals");
  }
  return bench::random_formula(static_cast<int>(options.variables), static_cast<int>(options.clauses),
                               static_cast<int>(options.width), seed);
}

bench::Formula load(const SpOptions& options, uint64_t seed) {
  if (std::max({options.steps, options.first_sweeps, options.sweeps}) > 10000) {
    give_up("sp: at most 10000 steps and sweeps");
  }
  if (options.fix > kMostLiterals) give_up("sp: --fix is larger than any formula");
  if (options.data.empty()) return generate(options, seed);
  try {
    bench::Formula formula = bench::read_cnf(options.data);
    if (formula.variables <= kMostLiterals && formula.literals() <= kMostLiterals) return formula;
  } catch (const bench::FileError& error) {
    give_up(error.what());
  }
  give_up(options.data + ": at most " + std::to_string(kMostLiterals) + " variables and literals");
}

// The parts of a problem that a run does not change, on the CPU.
struct Layout {
  explicit Layout(const bench::Formula& formula)
      : first(formula.variables + 1),
        variable(formula.literals()),
        clause(formula.literals()),
        negated(formula.literals()),
        clause_first(formula.first),
        place(formula.literals()) {
    for (const int literal : formula.literal) ++first[std::abs(literal)];
    for (int v = 0; v < formula.variables; ++v) first[v + 1] += first[v];
    std::vector<int> next = first;
    for (int c = 0; c < formula.clauses(); ++c) {
      for (int i = formula.first[c]; i < formula.first[c + 1]; ++i) {
        const int v = std::abs(formula.literal[i]) - 1;
        const int o = next[v]++;
        variable[o] = v;
        clause[o] = c;
        negated[o] = formula.literal[i] < 0 ? 1 : 0;
        place[i] = o;
      }
    }
  }

  std::vector<int> first;
  std::vector<int> variable;
  std::vector<int> clause;
  std::vector<unsigned char> negated;
  std::vector<int> clause_first;
  std::vector<int> place;
};

std::vector<int> random_surveys(int count, uint64_t seed) {
  std::vector<int> surveys(count);
  bench::parallel_for(surveys.size(), [&](size_t o) {
    surveys[o] = static_cast<int>(bench::Random(~seed, o).below(kOne + 1));
  });
  return surveys;
}

// Calls body(i) from several threads for every i with first[i] < first[i + 1], in pieces of equal work.
template <class Body>
void parallel_for_owners(const std::vector<int>& first, const Body& body) {
  bench::parallel_ranges(static_cast<size_t>(first.back()), [&](size_t begin, size_t end) {
    const auto from = std::lower_bound(first.begin(), first.end() - 1, static_cast<int>(begin));
    for (auto i = from; i != first.end() - 1 && *i < static_cast<int>(end); ++i) {
      if (i[0] < i[1]) body(static_cast<int>(i - first.begin()));
    }
  });
}

// The whole run on the CPU.
class Reference {
 public:
  Reference(const Layout& layout, std::vector<int> surveys)
      : survey(std::move(surveys)),
        satisfied(layout.clause_first.size() - 1),
        value(layout.first.size() - 1, kFree),
        bias(layout.first.size() - 1),
        layout_(layout),
        warning_(survey.size()),
        opposite_(survey.size()) {
    p_.variables = static_cast<int>(value.size());
    p_.clauses = static_cast<int>(satisfied.size());
    p_.occurrences = static_cast<int>(survey.size());
    p_.first = layout.first.data();
    p_.variable = layout.variable.data();
    p_.clause = layout.clause.data();
    p_.negated = layout.negated.data();
    p_.clause_first = layout.clause_first.data();
    p_.place = layout.place.data();
    p_.survey = survey.data();
    p_.warning = warning_.data();
    p_.satisfied = satisfied.data();
    p_.value = value.data();
    p_.bias = bias.data();
  }

  void step(long long sweeps, int at_least) {
    for (long long sweep = 0; sweep < sweeps; ++sweep) {
      parallel_for_owners(layout_.first, [this](int v) { update_warnings_of(v); });
      parallel_for_owners(layout_.clause_first, [this](int c) {
        if (satisfied[c] == 0) update_surveys_of(p_, c);
      });
    }
    parallel_for_owners(layout_.first, [this](int v) {
      if (value[v] == kFree) bias[v] = bias_of(p_, v);
    });
    fix(lowest_bin(at_least));
  }

  std::vector<int> survey;
  std::vector<unsigned char> satisfied;
  std::vector<int> value;
  std::vector<int> bias;
  int fixed = 0;

 private:
  // The products before each occurrence are left in its warning until those behind it are known.
  void update_warnings_of(int v) {
    const int begin = p_.first[v];
    const int end = p_.first[v + 1];
    if (value[v] != kFree) return std::fill(&warning_[begin], &warning_[begin] + (end - begin), kOne);
    int product[2] = {kOne, kOne};
    for (int o = begin; o < end; ++o) {
      const int sign = p_.negated[o];
      warning_[o] = product[sign];
      opposite_[o] = product[1 - sign];
      product[sign] = times(product[sign], quiet_from(p_, o));
    }
    product[0] = product[1] = kOne;
    for (int o = end - 1; o >= begin; --o) {
      const int sign = p_.negated[o];
      warning_[o] =
          share_warned_by_opposite(times(warning_[o], product[sign]), times(opposite_[o], product[1 - sign]));
      product[sign] = times(product[sign], quiet_from(p_, o));
    }
  }

  [[nodiscard]] int lowest_bin(int at_least) const {
    std::vector<int> histogram(kBins);
    for (size_t v = 0; v < value.size(); ++v) {
      if (value[v] == kFree) ++histogram[bin_of(bias[v])];
    }
    int bin = kBins - 1;
    for (int found = histogram[bin]; found < at_least && bin > 1; found += histogram[bin]) --bin;
    return bin;
  }

  void fix(int lowest) {
    for (size_t v = 0; v < value.size(); ++v) {
      if (value[v] != kFree || bin_of(bias[v]) < lowest) continue;
      ++fixed;
      value[v] = bias[v] > 0 ? 1 : 0;
      for (int o = p_.first[v]; o < p_.first[v + 1]; ++o) {
        if (p_.negated[o] != value[v]) p_.satisfied[p_.clause[o]] = 1;
      }
    }
  }

  const Layout& layout_;
  std::vector<int> warning_;
  std::vector<int> opposite_;
  Problem p_ = {};
};

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
