// Errors of device code: thrown where they are found, caught where the place is known and the grid ends.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace klap::emulator::execution {

enum FaultCode : int {  // as CUresult and cudaError number them
  kIllegalAddress = 700,
  kTimeout = 702,
  kStackError = 714,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailure = 719,
  kNotSupported = 801,
};

class Fault : public std::exception {
 public:
  Fault(FaultCode code, uint32_t lane, std::string reason)
      : code_(code), lane_(lane), reason_(std::move(reason)) {}
  [[nodiscard]] FaultCode code() const { return code_; }
  [[nodiscard]] uint32_t lane() const { return lane_; }
  [[nodiscard]] const char* what() const noexcept override { return reason_.c_str(); }

 private:
  FaultCode code_;
  uint32_t lane_;
  std::string reason_;
};

}  // namespace klap::emulator::execution
