// A random program of any kind, as a campaign sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "case.h"
#include "random/generate.h"

namespace klap::differential::random {

class Sample {
 public:
  using Fails = std::function<bool(const Sample&)>;

  Sample() = default;
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  virtual ~Sample() = default;

  [[nodiscard]] virtual uint64_t seed() const = 0;
  [[nodiscard]] virtual Case to_case() const = 0;
  [[nodiscard]] virtual size_t size() const = 0;
  // True if smaller programs must be shown to be right natively before it counts that they fail.
  [[nodiscard]] virtual bool may_be_wrong_when_reduced() const { return false; }
  // True if blocks of the original may keep their places until others have run, so that these need some.
  [[nodiscard]] virtual bool needs_places() const { return false; }
  // A smaller one that still fails, after so many tries at most.
  [[nodiscard]] virtual std::unique_ptr<Sample> reduced(const Fails& fails, size_t most_tries) const = 0;
};

std::unique_ptr<Sample> make_sample(uint64_t seed, const Mix& mix);

}  // namespace klap::differential::random
