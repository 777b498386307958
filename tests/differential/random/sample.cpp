#include "random/sample.h"

#include <utility>

#include "random/program_case.h"
#include "random/reduce.h"
#include "random/waits/generate.h"
#include "random/waits/waits_sample.h"

namespace klap::differential::random {

namespace {

class ProgramSample : public Sample {
 public:
  explicit ProgramSample(Program program) : program_(std::move(program)) {}

  [[nodiscard]] uint64_t seed() const override { return program_.seed; }
  [[nodiscard]] Case to_case() const override { return random::to_case(program_); }
  [[nodiscard]] size_t size() const override { return size_of(program_); }
  [[nodiscard]] std::unique_ptr<Sample> reduced(const Fails& fails, size_t most_tries) const override {
    const auto is_failing = [&](const Program& smaller) { return fails(ProgramSample(smaller)); };
    return std::make_unique<ProgramSample>(reduce(program_, is_failing, most_tries));
  }

 private:
  Program program_;
};

}  // namespace

std::unique_ptr<Sample> make_sample(uint64_t seed, const Mix& mix) {
  if (mix.waits) return waits::make_sample(waits::generate(seed));
  return std::make_unique<ProgramSample>(generate(seed, mix));
}

}  // namespace klap::differential::random
