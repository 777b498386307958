#include "jit/data/timings.h"

#include <chrono>

namespace klap::jit {

namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Stopwatch::Stopwatch(double* milliseconds) : milliseconds_(milliseconds), start_(now_ms()) {}
Stopwatch::~Stopwatch() { *milliseconds_ += now_ms() - start_; }

}  // namespace klap::jit
