// Ranges for profilers that know NVTX, such as Nsight Systems, when KLAP_PROFILER_RANGES is 1.
//
// A profiler shows the kernels that run in place of a parent's launches, and which parent they belong to is
// hard to see among many. So the host's part of each rewritten launch is a range of the domain klap_jit, with
// the parent's name and how its launches are replaced. Profilers show the kernels that a range launched.
#pragma once

namespace klap::runtime {

class ParentKernel;

class LaunchRange {
 public:
  explicit LaunchRange(const ParentKernel& parent) noexcept;
  ~LaunchRange();
  LaunchRange(const LaunchRange&) = delete;
  LaunchRange& operator=(const LaunchRange&) = delete;

 private:
  bool is_begun_ = false;
};

}  // namespace klap::runtime
