#include "random/waits/waits_sample.h"

#include <utility>

#include "random/waits/print.h"
#include "random/waits/reduce.h"
#include "random/waits/reference.h"

namespace klap::differential::waits {

namespace {

enum Buffers : uint32_t { kInputBuffer, kWordsBuffer };

template <class T>
Argument value(T what) {
  return {Argument::Kind::Value, bytes_of(std::vector<T>{what}), 0, 0};
}

class WaitsSample : public random::Sample {
 public:
  explicit WaitsSample(Program program) : program_(std::move(program)) {}

  [[nodiscard]] uint64_t seed() const override { return program_.seed; }
  [[nodiscard]] Case to_case() const override { return waits::to_case(program_); }
  [[nodiscard]] size_t size() const override { return size_of(program_); }
  [[nodiscard]] bool may_be_wrong_when_reduced() const override { return true; }
  [[nodiscard]] bool needs_places() const override { return program_.polls; }
  [[nodiscard]] std::unique_ptr<Sample> reduced(const Fails& fails, size_t most_tries) const override {
    const auto is_failing = [&](const Program& smaller) { return fails(WaitsSample(smaller)); };
    return std::make_unique<WaitsSample>(reduce(program_, is_failing, most_tries));
  }

 private:
  Program program_;
};

}  // namespace

Case to_case(const Program& program) {
  Case c;
  c.name = "random_" + std::to_string(program.seed);
  c.about = "a random program that waits";
  c.ptx = print_ptx(program);
  Builder builder(c);
  const Memories before = initial_memories(program), after = run_reference(program);
  const Layout layout = lay_out(program);
  builder.input("input", before.input);
  builder.buffer("words", before.words, after.words);
  const std::vector<uint32_t> begins = step_words(program, layout);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& from = program.steps[i];
    const Kernel& kernel = program.kernels[from.kernel];
    differential::Step step;
    step.launch = {kernel_name(from.kernel), kernel.grid, kernel.block, kernel.shared_bytes(), {}};
    step.launch.arguments = {Builder::address(kInputBuffer),
                             Builder::address(kWordsBuffer, 4ULL * (begins[i] + kAllWords)),
                             Builder::address(kWordsBuffer, 4ULL * begins[i]),
                             value(uint32_t{1}),
                             value(from.depth),
                             value(static_cast<uint32_t>(layout.need(from.kernel, from.depth)))};
    for (const uint32_t argument : from.arguments) step.launch.arguments.push_back(value(argument));
    c.steps.push_back(std::move(step));
  }
  return c;
}

std::unique_ptr<random::Sample> make_sample(Program program) {
  return std::make_unique<WaitsSample>(std::move(program));
}

}  // namespace klap::differential::waits
