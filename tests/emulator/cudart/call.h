// Every function of the stand-in uses this: the context it runs in, and the last error.
//
// The runtime's error numbers are the driver's wherever both have a meaning, so a driver's answer is passed
// on as it is. The few numbers of the runtime's own are made where the function knows better.
#pragma once

#include <cuda_runtime_api.h>

#include "driver.h"

namespace klap::cudart {

inline cudaError_t runtime_error(CUresult result) { return static_cast<cudaError_t>(result); }

// Makes it the calling thread's last error unless it is success, and returns it.
cudaError_t note(cudaError_t error);

// Opens the driver and initialises it; says why if that is not possible.
cudaError_t initialise();
// The calling thread has the device's primary context afterwards.
cudaError_t enter_context();
// The device that the calling thread uses, by the driver's number.
CUdevice current_device();
// Its context is gone: each thread fetches the next one when it needs it.
void forget_context();

// Runs `body(driver)`, which returns a cudaError_t, in the context.
template <class Body>
cudaError_t in_context(Body body) {
  const cudaError_t error = enter_context();
  return note(error == cudaSuccess ? body(*driver()) : error);
}

// Runs a body that is one call of the driver.
template <class Body>
cudaError_t drive(Body body) {
  return in_context([&](const Driver& cu) { return runtime_error(body(cu)); });
}

}  // namespace klap::cudart
