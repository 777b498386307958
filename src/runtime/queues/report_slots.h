// Where kernels report how many children they ran (templates/common/report.h): a slot for each stream, which
// is a few words of host memory, and the totals beside them in device memory.
//
// Slots are not used again. A stream's totals stay in them, and each takes less than a hundred bytes of
// processes that ask for statistics.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>

namespace klap::runtime {

// Those of one CUDA context, which is current whenever one is taken.
class ReportSlots {
 public:
  // Device address of a KlapReport that is ready for what is enqueued into `stream` from now on; 0 where
  // nobody asked for statistics, or where there is no memory, which is logged once.
  CUdeviceptr take(CUstream stream);
  // Takes the memory for that where somebody asked.
  void make_ready();

 private:
  bool make_page();

  std::mutex mutex_;
  CUdeviceptr words_ = 0;    // of the page's slots, as kernels see them
  CUdeviceptr reports_ = 0;  // an array of KlapReport, one for each
  size_t left_ = 0;          // slots of the page
  bool failed_ = false;
};

}  // namespace klap::runtime
