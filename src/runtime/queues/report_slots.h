// Kernels report in these slots how many children they ran (templates/common/report.h). There is a slot for
// each stream, which is a few words of host memory, and the totals beside them in device memory.
//
// Slots are not used again. A stream's totals stay in them. Each takes less than a hundred bytes of processes
// that ask for statistics.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>

namespace klap::runtime {

// The slots of one CUDA context, which is current whenever one is taken.
class ReportSlots {
 public:
  // Device address of a KlapReport that is ready for the kernels that are enqueued into `stream` from now on.
  // It is 0 if statistics are not asked for, or if there is no memory, which is logged once.
  CUdeviceptr take(CUstream stream);
  // Takes the memory for the slots if statistics are asked for.
  void make_ready();

 private:
  bool make_page();

  std::mutex mutex_;
  CUdeviceptr words_ = 0;    // the page's slots, as kernels see them
  CUdeviceptr reports_ = 0;  // an array of KlapReport, one for each
  size_t left_ = 0;          // slots of the page
  bool failed_ = false;
};

// Adds what the slots of all CUDA contexts say to the statistics. Each slot is counted once, so this is
// called at exit.
void add_reports_to_statistics();

}  // namespace klap::runtime
