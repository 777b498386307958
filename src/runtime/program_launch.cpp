#include "runtime/program_launch.h"

namespace klap::runtime {

std::optional<std::span<const unsigned char>> packed_parameters(void** extra) {
  const void* buffer = nullptr;
  const size_t* size = nullptr;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(extra[i + 1]);
    } else {
      return std::nullopt;
    }
  }
  if (!buffer || !size) return std::span<const unsigned char>();
  return std::span(static_cast<const unsigned char*>(buffer), *size);
}

}  // namespace klap::runtime
