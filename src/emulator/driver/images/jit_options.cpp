#include "emulator/driver/images/jit_options.h"

#include <algorithm>
#include <cstring>

namespace klap::emulator::driver {

JitOptions::JitOptions(unsigned count, CUjit_option* names, void** values) {
  require(count == 0 || (names != nullptr && values != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    Buffer* const buffer = names[i] == CU_JIT_INFO_LOG_BUFFER || names[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
                               ? &infos_
                               : &errors_;
    switch (names[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
      case CU_JIT_ERROR_LOG_BUFFER:
        buffer->text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        buffer->size = &values[i];
        buffer->bytes = reinterpret_cast<size_t>(values[i]) & UINT32_MAX;
        break;
      case CU_JIT_WALL_TIME: {  // a float in the place of the value
        const float none = 0;
        std::memcpy(&values[i], &none, sizeof none);
        break;
      }
      default:  // of the compiler, which there is none of here
        require(names[i] >= 0 && names[i] < CU_JIT_NUM_OPTIONS);
        break;
    }
  }
  write(errors_, "");
  write(infos_, "");
}

void JitOptions::write(const Buffer& buffer, std::string_view text) {
  if (buffer.text == nullptr || buffer.size == nullptr || buffer.bytes == 0) return;
  const size_t length = std::min(text.size(), buffer.bytes - 1);
  std::memcpy(buffer.text, text.data(), length);
  buffer.text[length] = '\0';
  const auto written = static_cast<unsigned>(length);
  std::memcpy(buffer.size, &written, sizeof written);
}

void JitOptions::write_error(std::string_view text) const { write(errors_, text); }
void JitOptions::write_info(std::string_view text) const { write(infos_, text); }

}  // namespace klap::emulator::driver
