// Helpers for the GPU test programs: error checks, device buffers, and the one line of verdict.
//
// Each program is an ordinary CUDA program that compares the device's results with the right ones. It prints
// "PASS name" or "FAIL name: why" last, with exit code 0 or 1 (3 when a CUDA call failed or there is no
// device). It is run natively and preloaded, and the two outputs are compared line by line. So everything
// printed must be the same in both: no addresses and no times. Programs launch at most 1,500 children at
// once, which fits CUDA's default limit on pending launches. So the native run is a valid reference.
#pragma once

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gpu {

class Report {
 public:
  explicit Report(const char* name) : name_(name) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    std::printf("FAIL %s: no usable CUDA device: %s\n", name, cudaGetErrorString(error));
    std::exit(3);
  }

  // Remembers the first expectation that does not hold.
  __attribute__((format(printf, 3, 4))) void expect(bool holds, const char* format, ...) {
    if (holds || !why_.empty()) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    why_ = text;
  }

  template <class T>
  void expect_equal(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    expect(got.size() == want.size(), "%s: %zu values instead of %zu", what, got.size(), want.size());
    for (size_t i = 0; i < got.size() && i < want.size(); ++i) {
      if (got[i] == want[i]) continue;
      expect(false, "%s: value %zu is %s instead of %s", what, i, std::to_string(got[i]).c_str(),
             std::to_string(want[i]).c_str());
      return;
    }
  }

  // Prints the verdict; returns the exit code.
  [[nodiscard]] int finish() const {
    if (why_.empty()) {
      std::printf("PASS %s\n", name_.c_str());
      return 0;
    }
    std::printf("FAIL %s: %s\n", name_.c_str(), why_.c_str());
    return 1;
  }

 private:
  std::string name_;
  std::string why_;
};

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::printf("FAIL: %s: %s (CUDA error %d)\n", call, cudaGetErrorString(error), static_cast<int>(error));
  std::fflush(stdout);
  std::_Exit(3);  // other threads may go on
}

// Waits for the device and reports errors of the kernels before it.
inline void wait(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

// Device memory, zero at first.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    check(cudaMalloc(&data_, bytes()), "cudaMalloc");
    check(cudaMemset(data_, 0, bytes()), "cudaMemset");
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "copy to the device");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return count_ * sizeof(T); }
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace gpu
