// Random programs that wait, as PTX in the form of nvcc's, in the terms of the device runtime's version 1.
#pragma once

#include <string>

#include "random/waits/program.h"

namespace klap::differential::waits {

std::string print_ptx(const Program& program);

// The name of a kernel, and the order of its parameters: these, and then its values of 4 bytes each.
std::string kernel_name(uint32_t kernel);
struct ParameterPlace {
  const char* name;
  uint32_t bytes, offset;
};
enum Parameters : uint32_t { kInput, kOwn, kAbove, kAboveCount, kDepth, kRoom, kParameters };
inline constexpr std::array<ParameterPlace, kParameters> kPlaces = {{{"input", 8, 0},
                                                                     {"own", 8, 8},
                                                                     {"above", 8, 16},
                                                                     {"above_count", 4, 24},
                                                                     {"depth", 4, 28},
                                                                     {"room", 4, 32}}};
inline constexpr uint32_t kFirstValue = 36;

}  // namespace klap::differential::waits
