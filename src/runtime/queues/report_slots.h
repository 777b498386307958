// Kernels report in these slots how many children they ran (templates/common/report.h). There is a slot for
// each stream, which is a few words of host memory, and the totals beside them in device memory.
//
// Totals stay in a slot for good. So a graph that has ended leaves its slots to later ones, which add to
// them. A stream's slot is not used again: its last kernel may still run when the stream is gone. Each takes
// less than a hundred bytes of processes that ask for statistics, or whose launches are guarded
// (parents/launch_guard.h). Most guards need slots in host memory alone. So they take no memory of the
// device, which is the program's.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/queues/host_page.h"

namespace klap::runtime {

struct ReportSlot {
  CUdeviceptr address = 0;                   // of a KlapReport; 0 if there is no slot
  const volatile uint64_t* words = nullptr;  // as the host sees them, KLAP_REPORT_WORDS
};

// The slots that guards need.
struct GuardReports {
  bool in_device = false;  // take_ready()
  bool in_host = false;    // take_ready_in_host()
};

// The slots of one CUDA context, which is current whenever one is taken.
class ReportSlots {
 public:
  // A slot for the kernels that are enqueued into `stream` from now on. There is none if statistics are not
  // asked for, or if there is no memory, which is logged once.
  ReportSlot take(CUstream stream);
  // One for which no memory is taken now, whether or not statistics are asked for. There may be none left.
  ReportSlot take_ready(CUstream stream);
  // Such a slot with totals in host memory, too: kernels that report there take some microseconds longer.
  ReportSlot take_ready_in_host();
  // No kernel reports to that slot of take() or take_ready() any more. Another stream may have it.
  void give_back(const ReportSlot& slot);
  // Takes the memory for the slots if statistics are asked for, or for guards that need it.
  void make_ready(const GuardReports& guards);

 private:
  // Slots that were not taken yet.
  struct Page : HostPage {
    size_t left = 0;
  };
  static CUresult map(Page& page, bool is_in_statistics);
  bool make_page();
  ReportSlot take_next(CUstream stream);
  ReportSlot take_unused();

  std::mutex mutex_;
  Page page_;                       // of streams
  std::vector<ReportSlot> unused_;  // that streams have given back
  CUdeviceptr reports_ = 0;         // an array of KlapReport, one for each of these slots
  Page guards_;                     // of those with totals in host memory, which take two slots each
  bool failed_ = false;
};

// Adds what the slots of all CUDA contexts say to the statistics. Each slot is counted once, so this is
// called at exit.
void add_reports_to_statistics();

}  // namespace klap::runtime
