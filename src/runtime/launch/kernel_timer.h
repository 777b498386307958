// This file measures how long rewritten parents and their consumers take on the GPU, when KLAP_TIMING is 1.
//
// Each launch has an event before the parent, one between it and the consumer, and one behind both. These
// cost a few microseconds and keep the two kernels from overlapping, so nothing is measured unless asked for.
// The events of finished launches are read when the next launch is timed, and before the statistics are
// written. Nothing else in the statistics asks the driver, which may by then have no context any more.
// Launches that are still running are not counted.
#pragma once

#include <cuda.h>

#include <string>

namespace klap::runtime {

// One launch of a parent's variant being timed; does nothing unless KLAP_TIMING is 1. Events that cannot be
// made or recorded leave the launch untimed.
class TimedLaunch {
 public:
  // `counts`: one more launch of the program, else a further slice of one (slices.h).
  TimedLaunch(const std::string& parent, CUstream stream, bool counts = true);
  ~TimedLaunch();
  TimedLaunch(const TimedLaunch&) = delete;
  TimedLaunch& operator=(const TimedLaunch&) = delete;

  // The parent's variant is in the stream now.
  void parent_enqueued();
  // All kernels that run its children are in the stream, too.
  void complete();

 private:
  [[nodiscard]] bool record(CUevent& event);

  const std::string& parent_;
  const CUstream stream_;
  const bool counts_;
  bool timed_;
  CUevent before_ = nullptr;
  CUevent between_ = nullptr;
  CUevent after_ = nullptr;
};

// Adds the launches that have finished, in the current CUDA context, to the statistics.
void collect_timed_launches() noexcept;

}  // namespace klap::runtime
