// Controls of the emulated driver for tests, beside CUDA's own API. A test looks them up with dlsym in
// libcuda.so.1. A real driver has none of these, so their absence tells a program that it runs on a GPU.
#pragma once

#include <stdint.h>  // NOLINT(modernize-deprecated-headers): also for C

#ifdef __cplusplus
extern "C" {
#endif

struct klap_emulator_counters {
  uint64_t device_launches;  // kernels that kernels launched
  uint64_t refused;          // launches by kernels that failed, for whatever reason
  uint64_t over_limit;       // refused because too many were pending
  uint64_t host_launches;
  uint64_t steps;             // instructions, counted once for each thread
  uint64_t heap_allocations;  // by malloc and cudaMalloc in kernels
  uint64_t heap_kept;         // bytes of these that contexts had not freed at their end, or have not now
};

// Contexts made from now on get the settings of the environment, changed by `settings`: "SEED=3
// SCHEDULE=random", the names of the environment variables without KLAP_EMULATOR_, or null. The number of
// findings is set to 0. Returns a CUresult.
int klap_emulator_reset(const char* settings);

// Over all contexts since the process began.
int klap_emulator_counts(struct klap_emulator_counters* counters);

// How many findings the checks made (races, uninitialised reads, ...).
uint64_t klap_emulator_findings(void);

#ifdef __cplusplus
}
#endif
