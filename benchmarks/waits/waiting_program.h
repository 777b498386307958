// What the programs that wait for their children share.
//
// Each source makes two executables. waiting_NAME is a program of dynamic parallelism version 1, whose
// kernels wait by cudaDeviceSynchronize(). CUDA refuses that on devices of compute capability 9.0 and later,
// so there it needs klap_jit. tail_NAME is the same algorithm for today's devices: what stands behind a wait
// is a kernel of its own, in a tail launch. Its `--variant flat` has no device-side launches at all.
#pragma once

#include <string>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

namespace bench {

#ifdef BENCH_WAITS
constexpr bool kWaits = true;
#else
constexpr bool kWaits = false;
#endif

// The command line of one of the two executables.
class WaitingOptions : public Options {
 public:
  WaitingOptions(const char* algorithm, const char* summary) : WaitingOptions(named(algorithm), summary) {}

  // Ends the program on a mistake, or if there is no device.
  void parse(int argc, char** argv) {
    common.add_to(*this);
    Options::parse(argc, argv);
    require_device(name_.c_str());
  }
  [[nodiscard]] const char* name() const { return name_.c_str(); }

  CommonOptions common;

 private:
  WaitingOptions(const std::string& name, const char* summary)
      : Options(name, summary),
        common(kWaits ? std::vector<std::string>{"cdp"} : std::vector<std::string>{"cdp", "flat"}),
        name_(name) {}
  static std::string named(const char* algorithm) {
    return std::string(kWaits ? "waiting_" : "tail_") + algorithm;
  }

  std::string name_;
};

}  // namespace bench
