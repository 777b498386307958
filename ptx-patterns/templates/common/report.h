// The process sees here how many children there were (KLAP_STATS), also when their context is gone by then.
// The place is host memory that kernels write to.
//
// A kernel needs as long to read that memory as a small consumer takes in all, and it would end that much
// later. So the counting code knows the total from device memory and only writes it to the host's. That works
// if one kernel of a stream counts after the other. Kernels that count at the same time add in host memory,
// in words of their own.
//
// This file is compiled by NVRTC into the templates and by the host compiler into the runtime.
#ifndef KLAP_REPORT_H
#define KLAP_REPORT_H

// A stream's words in host memory.
#define KLAP_REPORT_WORDS 8
#define KLAP_REPORT_CHILDREN 0  // children run
#define KLAP_REPORT_NATIVE 1    // launches of a parent or child that the queue had no room for (work_queue.h)
#define KLAP_REPORT_LINKS 2     // links of promoted chains but the first (promote.h)
#define KLAP_REPORT_FAILURES 3  // set when children could not be launched from the device
#define KLAP_REPORT_ADDED 4     // from here on the same again, added to

// In device memory, for each stream.
struct KlapReport {
  unsigned long long* words;  // [KLAP_REPORT_WORDS]
  unsigned long long total[KLAP_REPORT_FAILURES];
};

#ifdef __CUDACC_RTC__

// All of these do nothing if no report is asked for.

// For code that is alone in the stream.
static __device__ __forceinline__ void report_next(KlapReport* report, unsigned int word,
                                                   unsigned long long more) {
  if (report == nullptr || more == 0) return;
  const unsigned long long total = report->total[word] + more;
  report->total[word] = total;
  reinterpret_cast<volatile unsigned long long*>(report->words)[word] = total;
}

static __device__ __forceinline__ void report_beside_others(KlapReport* report, unsigned int word,
                                                            unsigned long long more) {
  if (report != nullptr && more != 0) atomicAdd(report->words + KLAP_REPORT_ADDED + word, more);
}

// For code that ends the grid directly behind it.
static __device__ __forceinline__ void report_failure(KlapReport* report) {
  if (report == nullptr) return;
  reinterpret_cast<volatile unsigned long long*>(report->words)[KLAP_REPORT_FAILURES] = 1;
  __threadfence_system();
}

#endif

#endif
