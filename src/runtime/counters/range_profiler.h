// Counts what the GPU does between two points in time, by CUPTI's range profiler.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "runtime/counters/metric_group.h"

namespace klap::runtime {

// The GPU that a CUDA context is on. Throws Error(Driver).
Chip chip_of(const Cupti& cupti, CUcontext context, CUdevice device);

class RangeProfiler {
 public:
  // Throws Error(Driver), as all of these do.
  RangeProfiler(const Cupti& cupti, CUcontext context);
  // Ends a range that has begun, too.
  ~RangeProfiler();
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // From here on the group's metrics are counted. The context must be idle.
  void begin(const MetricGroup& group);
  // The values of all metrics since begin(). The context must be idle again.
  std::vector<double> end(const MetricGroup& group);

 private:
  void make_room(const MetricGroup& group);

  const Cupti& cupti_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  std::vector<uint8_t> counter_data_;
  bool is_started_ = false, is_pushed_ = false;
};

}  // namespace klap::runtime
