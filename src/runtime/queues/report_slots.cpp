#include "runtime/queues/report_slots.h"

#include <bit>

#include "ptx-patterns/templates/common/report.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "support/log.h"

namespace klap::runtime {

bool ReportSlots::make_page() {
  if (failed_) return false;
  void* const page = new_report_page();
  if (!page) return false;
  const Driver& cuda = *driver();
  CUresult result = cuda.mem_host_register(page, report_page_bytes(), CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS) result = cuda.mem_host_get_device_pointer(&words_, page, 0);
  if (result == CUDA_SUCCESS) result = cuda.mem_alloc(&reports_, report_slots() * sizeof(KlapReport));
  if (result == CUDA_SUCCESS) left_ = report_slots();
  failed_ = left_ == 0;
  if (failed_)
    log().warn("children are not counted: there is no memory for their totals ({})", error_name(result));
  return !failed_;
}

void ReportSlots::make_ready() {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (left_ == 0) make_page();
}

CUdeviceptr ReportSlots::take(CUstream stream) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (left_ == 0 && !make_page()) return 0;
  --left_;
  const KlapReport report{
      std::bit_cast<unsigned long long*>(words_ + left_ * KLAP_REPORT_WORDS * sizeof(unsigned long long)),
      {}};
  const CUdeviceptr at = reports_ + left_ * sizeof report;
  const bool is_written = driver()->memcpy_htod_async(at, &report, sizeof report, stream) == CUDA_SUCCESS;
  return is_written ? at : 0;
}

}  // namespace klap::runtime
