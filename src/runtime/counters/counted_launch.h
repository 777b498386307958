// Performance counters of launches, when KLAP_COUNTERS names metrics.
//
// Each launch of a parent with its children is one range of CUPTI's range profiler, up to a number for each
// parent. The GPU is idle before and behind it, so that nothing else is counted. The values are read at
// once. So nothing is left to do at the end of the process, where CUPTI may be gone before the statistics are
// written.
//
// Only launches in one CUDA context are counted, which is that of the first one. While a thread counts a
// launch, those of other threads are not counted.
#pragma once

#include <mutex>
#include <string>

namespace klap::runtime {

// One launch of a parent being counted; does nothing unless KLAP_COUNTERS is set. If counters cannot be read,
// one line says so, and no more launches are counted.
class CountedLaunch {
 public:
  explicit CountedLaunch(const std::string& parent);
  // Gives up a launch that is not complete.
  ~CountedLaunch();
  CountedLaunch(const CountedLaunch&) = delete;
  CountedLaunch& operator=(const CountedLaunch&) = delete;

  // The parent and all kernels that run its children are in the stream.
  void complete() noexcept;

 private:
  const std::string& parent_;
  std::unique_lock<std::mutex> counting_;  // held while this launch is counted
};

}  // namespace klap::runtime
