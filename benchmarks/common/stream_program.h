// The programs about device-side streams share their variants, the count of lost launches, and the report.
//
// Each of these programs stands for a form of launching whose order is part of the program: a launch behind
// whole subtrees, a tail launch, a sequence of kernels that touch the same memory. Most of them change one
// array in place, which is then compared with what the CPU makes of the same input.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compare.h"
#include "cuda_check.h"
#include "harness.h"

namespace bench {

// Ends the program with a message and exit code 2 if the value of an option is larger than the program can
// take.
void require_at_most(const char* program, const char* option, long long value, long long largest);

// Numbers in [0, bound), the same for a seed everywhere.
std::vector<int> random_values_below(uint32_t bound, long long count, long long seed);

std::vector<int> sorted(std::vector<int> values);

// A program says this of one run of its problem.
struct RunFacts {
  long long child_launches = 0;  // by its kernels, without copies and fills
  long long bytes_to_move = 0;
  long long flat_kernels = 0;  // that the host launches in the other variant; kUnknown where a library does
  long long flat_fills = 0;    // and its fills and copies of device memory
  long long flat_reads = 0;    // times that the host waits for a number there

  static constexpr long long kUnknown = -1;
};

class StreamProgram : public Benchmark {
 public:
  void reset() final;
  void run() final;
  long long count_lost_launches() final;
  void describe(JsonObject& report) const final;
  [[nodiscard]] std::optional<HostWork> host_work() const final;

 protected:
  explicit StreamProgram(const CommonOptions& options) : is_flat_(options.variant != "cdp"), lost_(1) {}

  // Brings the device memory to its state before a run.
  virtual void restore() = 0;
  // Launches the one parent; with `count` as a kernel that counts the launches that CUDA refuses.
  virtual void launch(bool count) = 0;
  // Solves the problem without device-side launches; only called if the program has that variant.
  virtual void launch_flat() {}
  virtual void describe_sizes(JsonObject& report) const = 0;
  [[nodiscard]] virtual RunFacts facts() const = 0;

  [[nodiscard]] unsigned long long* lost() const { return lost_.data(); }

 private:
  bool is_flat_;
  DeviceArray<unsigned long long> lost_;
};

// A program that changes one array in place.
template <class T>
class ArrayProgram : public StreamProgram {
 public:
  [[nodiscard]] std::string verify() override { return differences(what_, expected_, data_.to_host()); }

 protected:
  // `what` names the elements in a mistake's message.
  ArrayProgram(const CommonOptions& options, const char* what, const std::vector<T>& input,
               std::vector<T> expected)
      : StreamProgram(options),
        what_(what),
        expected_(std::move(expected)),
        input_(input),
        data_(input.size()) {}

  void restore() override {
    check(cudaMemcpy(data_.data(), input_.data(), data_.bytes(), cudaMemcpyDeviceToDevice),
          "restoring the input");
  }
  [[nodiscard]] T* data() const { return data_.data(); }
  [[nodiscard]] const T* input() const { return input_.data(); }
  [[nodiscard]] const std::vector<T>& expected() const { return expected_; }
  [[nodiscard]] const char* what() const { return what_; }

 private:
  const char* what_;
  std::vector<T> expected_;
  DeviceArray<T> input_;
  DeviceArray<T> data_;
};

}  // namespace bench
