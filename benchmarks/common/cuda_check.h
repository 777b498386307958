// CUDA error handling of the benchmark programs: any unexpected error ends the program with exit code 3.
//
// Exit codes are the programs' contract with the harness: 0 the result is right, 1 it is wrong, 2 a wrong
// command line, 3 a CUDA call failed (also when there is no usable device), so that a machine without a GPU
// can never look like a wrong result.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

namespace bench {

void check(cudaError_t error, const char* what);

// Ends the program with a clear line unless a device can be used.
void require_device(const char* program);

// Device memory that frees itself; contents are undefined until set.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    check(cudaMalloc(&data_, (count == 0 ? 1 : count) * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return count_ * sizeof(T); }

  void fill_bytes(int byte) { check(cudaMemset(data_, byte, bytes()), "cudaMemset"); }
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace bench
