#include "runtime/counters/cupti_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/error.h"
#include "support/toolkit_library.h"

namespace klap::runtime {
namespace {

// One of CUPTI's frequent results, with its meaning and the help against it.
struct Explanation {
  CUptiResult result;
  const char* meaning;
  const char* fix;
};

constexpr std::array kExplanations{
    Explanation{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
                "the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM)",
                "run as root, or have the driver's module loaded with NVreg_RestrictProfilingToAdminUsers=0; "
                "a container needs --cap-add=SYS_ADMIN"},
    Explanation{CUPTI_ERROR_OUT_OF_MEMORY, "there is no memory for performance counters",
                "ask for fewer metrics, or run a smaller input"},
    Explanation{CUPTI_ERROR_HARDWARE_BUSY, "another process reads performance counters of this GPU",
                "end the other profiler"},
    Explanation{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "the program runs under another profiler",
                "run it without the other profiler"},
    Explanation{CUPTI_ERROR_INVALID_CHIP_NAME, "this CUPTI is older than the GPU",
                "install the CUDA toolkit for this GPU, or name its libcupti in KLAP_CUPTI"},
};

Cupti opened() {
  Cupti cupti;
  void* const library = open_toolkit_library("cupti", "KLAP_CUPTI");
#define X(member, symbol, type) resolve(library, #symbol, cupti.member.function);
  KLAP_CUPTI_FUNCTIONS(X)
#undef X
  return cupti;
}

}  // namespace

void check_cupti(const char* function, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  const auto* const known = std::ranges::find(kExplanations, result, &Explanation::result);
  const std::string call = fmt::format("{} returns {}", function, static_cast<int>(result));
  if (known == kExplanations.end())
    throw Error(ErrorCode::Driver, call)
        .fix("see whether Nsight Compute can profile programs on this machine");
  throw Error(ErrorCode::Driver, fmt::format("{}: {}", call, known->meaning)).fix(known->fix);
}

const Cupti& Cupti::get() {
  static const Cupti cupti = opened();
  return cupti;
}

}  // namespace klap::runtime
