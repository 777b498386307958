// How long the passes took that do the work, for statistics.
#pragma once

namespace klap::jit {

struct Timings {  // milliseconds
  double parse = 0, analyse = 0, templates = 0, transform = 0, link = 0;
};

// Adds the wall time of its own life to a field of Timings, in milliseconds.
class Stopwatch {
 public:
  explicit Stopwatch(double* milliseconds);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* milliseconds_;
  double start_;
};

}  // namespace klap::jit
