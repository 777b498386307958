// The host side of the programs about device-side streams; see stream_program.h.
#include "stream_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "random.h"

namespace bench {

void require_at_most(const char* program, const char* option, long long value, long long largest) {
  if (value <= largest) return;
  std::fprintf(stderr, "%s: --%s must be at most %lld\n", program, option, largest);
  std::exit(2);
}

std::vector<int> random_values_below(uint32_t bound, long long count, long long seed) {
  Random random(static_cast<uint64_t>(seed));
  std::vector<int> values(static_cast<size_t>(count));
  for (int& value : values) value = static_cast<int>(random.below(bound));
  return values;
}

std::vector<int> sorted(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return values;
}

void StreamProgram::reset() {
  lost_.fill_bytes(0);
  restore();
}

void StreamProgram::run() {
  if (is_flat_) {
    launch_flat();
  } else {
    launch(false);
  }
  check(cudaGetLastError(), "launching the kernels");
}

long long StreamProgram::count_lost_launches() {
  launch(true);
  check(cudaGetLastError(), "launching the counting kernel");
  return static_cast<long long>(lost_.to_host().front());
}

void StreamProgram::describe(JsonObject& report) const {
  describe_sizes(report);
  const RunFacts of_run = facts();
  report.add("child_launches", is_flat_ ? 0 : of_run.child_launches);
  report.add("bytes_to_move", of_run.bytes_to_move);
}

std::optional<HostWork> StreamProgram::host_work() const {
  if (!is_flat_) return HostWork{.kernels = 1, .parents = 1};
  const RunFacts of_run = facts();
  if (of_run.flat_kernels == RunFacts::kUnknown) return std::nullopt;
  return HostWork{.kernels = of_run.flat_kernels, .fills = of_run.flat_fills, .reads = of_run.flat_reads};
}

}  // namespace bench
