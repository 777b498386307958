// What the line of sight is about; shared by the program and the library's variant.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

// The slope from the observer, at place 0, to the top of place `i`, which grows with the viewing angle. One
// subtraction and one division, both rounded alike on the host and the device, so results can be compared for
// equality. The observer's own place has the lowest slope.
__host__ __device__ inline float slope_to(float height, float observer, int i) {
  return i == 0 ? -INFINITY : (height - observer) / static_cast<float>(i);
}
