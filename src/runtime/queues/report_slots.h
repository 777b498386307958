// Kernels report in these slots how many children they ran (templates/common/report.h). There is a slot for
// each stream, which is a few words of host memory, and the totals beside them in device memory.
//
// Slots are not used again. A stream's totals stay in them. Each takes less than a hundred bytes of processes
// that ask for statistics, or whose launches are guarded (parents/launch_guard.h).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace klap::runtime {

struct ReportSlot {
  CUdeviceptr address = 0;                   // of a KlapReport; 0 if there is no slot
  const volatile uint64_t* words = nullptr;  // as the host sees them, KLAP_REPORT_WORDS
};

// The slots of one CUDA context, which is current whenever one is taken.
class ReportSlots {
 public:
  // A slot for the kernels that are enqueued into `stream` from now on. There is none if statistics are not
  // asked for, or if there is no memory, which is logged once.
  ReportSlot take(CUstream stream);
  // One for which no memory is taken now, whether or not statistics are asked for. There may be none left.
  ReportSlot take_ready(CUstream stream);
  // Takes the memory for the slots if statistics are asked for, or `guards`.
  void make_ready(bool guards = false);

 private:
  bool make_page();
  ReportSlot take_next(CUstream stream);

  std::mutex mutex_;
  const volatile uint64_t* page_ = nullptr;  // the slots of the page, as the host sees them
  CUdeviceptr words_ = 0;                    // the same, as kernels see them
  CUdeviceptr reports_ = 0;                  // an array of KlapReport, one for each
  size_t left_ = 0;                          // slots of the page
  bool failed_ = false;
};

// Adds what the slots of all CUDA contexts say to the statistics. Each slot is counted once, so this is
// called at exit.
void add_reports_to_statistics();

}  // namespace klap::runtime
