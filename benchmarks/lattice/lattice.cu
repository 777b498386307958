// American put options priced on a binomial lattice, by one thread that launches a kernel for each time step.
//
// The first kernel has the options' values on their last day, and each one behind it those of the day before,
// from what its predecessor has written. So the launches form a sequence whose neighbours touch the same
// memory, and each has fewer prices than the one before it. The options are independent: a row of blocks for
// each.
//
// `--variant flat` launches the steps from the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 128;

struct Put {
  double price;   // of what can be sold, today
  double strike;  // for what it can be sold
  double up;      // factor of the price in a step up; a step down takes it back
  double higher;  // weight of the value after a step up, with the interest of a step
  double lower;
};

struct Lattice {
  const Put* puts;
  int count;
  int steps;

  // All values of a day: day and up steps count from 0.
  [[nodiscard]] __host__ __device__ dim3 grid(int day) const {
    return {bench::blocks_for(day + 1, kBlock), static_cast<unsigned>(count)};
  }
};

// The value of using the option on that day.
__host__ __device__ inline double use_value(const Put& put, int day, int ups) {
  const double value = put.strike - put.price * pow(put.up, 2.0 * ups - day);
  return value > 0 ? value : 0;
}

__host__ __device__ inline double keep_or_use(const Put& put, int day, int ups, double lower, double higher) {
  const double kept = put.higher * higher + put.lower * lower;
  const double used = use_value(put, day, ups);
  return kept > used ? kept : used;
}

__global__ void value_on_last_day(Lattice lattice, double* values) {
  const int ups = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const size_t row = static_cast<size_t>(blockIdx.y) * (lattice.steps + 1);
  if (ups <= lattice.steps) values[row + ups] = use_value(lattice.puts[blockIdx.y], lattice.steps, ups);
}

__global__ void value_on_day(Lattice lattice, int day, const double* values, double* values_before) {
  const int ups = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const size_t row = static_cast<size_t>(blockIdx.y) * (lattice.steps + 1);
  if (ups > day) return;
  values_before[row + ups] =
      keep_or_use(lattice.puts[blockIdx.y], day, ups, values[row + ups], values[row + ups + 1]);
}

template <bool kCount>
__global__ void drive(Lattice lattice, double* values, double* others, unsigned long long* lost) {
  value_on_last_day<<<lattice.grid(lattice.steps), kBlock>>>(lattice, values);
  bench::count_if_lost<kCount>(lost);
  for (int day = lattice.steps - 1; day >= 0; --day) {
    const bool is_back = (lattice.steps - day) % 2 == 0;
    value_on_day<<<lattice.grid(day), kBlock>>>(lattice, day, is_back ? others : values,
                                                is_back ? values : others);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

std::vector<Put> random_puts(long long count, long long steps, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Put> puts;
  for (long long i = 0; i < count; ++i) {
    const double price = 50 + 100 * random.uniform();
    const double strike = price * (0.8 + 0.4 * random.uniform());
    const double volatility = 0.1 + 0.4 * random.uniform();
    const double rate = 0.01 + 0.05 * random.uniform();
    const double years = (0.25 + 2 * random.uniform()) / static_cast<double>(steps);  // of a step
    const double up = std::exp(volatility * std::sqrt(years));
    const double weight = (std::exp(rate * years) - 1 / up) / (up - 1 / up);
    const double discount = std::exp(-rate * years);
    puts.push_back({price, strike, up, discount * weight, discount * (1 - weight)});
  }
  return puts;
}

double cpu_value(const Put& put, int steps) {
  std::vector<double> values;
  for (int ups = 0; ups <= steps; ++ups) values.push_back(use_value(put, steps, ups));
  for (int day = steps - 1; day >= 0; --day) {
    for (int ups = 0; ups <= day; ++ups)
      values[ups] = keep_or_use(put, day, ups, values[ups], values[ups + 1]);
  }
  return values.front();
}

class LatticeProgram final : public bench::StreamProgram {
 public:
  LatticeProgram(const std::vector<Put>& puts, int steps, const bench::CommonOptions& options)
      : StreamProgram(options),
        steps_(steps),
        count_(static_cast<int>(puts.size())),
        puts_(puts),
        values_(puts.size() * (steps + 1)),
        others_(puts.size() * (steps + 1)) {
    for (const Put& put : puts) expected_.push_back(cpu_value(put, steps));
  }

  [[nodiscard]] std::string verify() override {
    const std::vector<double> values = (steps_ % 2 == 0 ? values_ : others_).to_host();
    std::vector<double> found;
    for (int i = 0; i < count_; ++i) found.push_back(values[static_cast<size_t>(i) * (steps_ + 1)]);
    return bench::differences_beyond("values of options", expected_, found, 1e-9, 1e-9);
  }

 private:
  [[nodiscard]] Lattice lattice() const { return {puts_.data(), count_, steps_}; }

  void restore() override {
    values_.fill_bytes(0);
    others_.fill_bytes(0);
  }

  void launch(bool count) override {
    (count ? drive<true> : drive<false>)<<<1, 1>>>(lattice(), values_.data(), others_.data(), lost());
  }

  void launch_flat() override {
    value_on_last_day<<<lattice().grid(steps_), kBlock>>>(lattice(), values_.data());
    for (int day = steps_ - 1; day >= 0; --day) {
      const bool is_back = (steps_ - day) % 2 == 0;
      value_on_day<<<lattice().grid(day), kBlock>>>(lattice(), day, is_back ? others_.data() : values_.data(),
                                                    is_back ? values_.data() : others_.data());
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("options", count_).add("steps", steps_);
    // Two multiplications, an addition and the comparison with the value of use, for each price of each day.
    report.add("float_operations", 4LL * count_ * steps_ * (steps_ + 1) / 2);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = steps_ + 1,
            .bytes_to_move = static_cast<long long>(sizeof(Put) + sizeof(double)) * count_,
            .flat_kernels = steps_ + 1};
  }

  int steps_;
  int count_;
  bench::DeviceArray<Put> puts_;
  bench::DeviceArray<double> values_;
  bench::DeviceArray<double> others_;
  std::vector<double> expected_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long puts = 16;
  long long steps = 300;
  bench::Options options("lattice",
                         "American put options on a lattice, with all steps launched by one thread");
  options.integer("options", puts, 1, "options to price");
  options.integer("steps", steps, 1, "time steps");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("lattice", "options", puts, 65535);
  bench::require_at_most("lattice", "steps", steps, 1 << 14);
  bench::require_device("lattice");
  LatticeProgram program(random_puts(puts, steps, common.seed), static_cast<int>(steps), common);
  return bench::run_benchmark("lattice", common, program);
}
