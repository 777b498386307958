// The gain of a run against another one that it is compared with.
#pragma once

#include <optional>
#include <string>

#include "klap/statistics.h"

namespace klap::tool {

struct Gain {
  double before_ms = 0, now_ms = 0;
  [[nodiscard]] double times() const { return now_ms > 0 ? before_ms / now_ms : 0; }
};

class Baseline {
 public:
  // Without a baseline, the native run of klap run --compare is one for the time on the clock.
  explicit Baseline(const Statistics& now, std::optional<Statistics> before = std::nullopt);

  // "natively" if the kernels ran as they are, else "in the baseline".
  [[nodiscard]] std::string name() const;
  // The time on the clock of the whole program, without compiling.
  [[nodiscard]] std::optional<Gain> program() const;
  // A sentence if the runs had different ends, so that their times may be those of different work. Else
  // empty.
  [[nodiscard]] std::string warning() const;
  // The GPU time of all kernels that were timed in both runs, for as many launches as now.
  [[nodiscard]] std::optional<Gain> gpu() const;
  // The GPU time of one launch with its children.
  [[nodiscard]] std::optional<Gain> launch(const std::string& mangled) const;

 private:
  const Statistics& now_;
  std::optional<Statistics> before_;
};

// The gain by the guard, which has measured some launches both ways.
std::optional<Gain> guard_gain(const KernelRecord& kernel);

}  // namespace klap::tool
