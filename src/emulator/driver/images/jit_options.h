// The options of loading and linking, of which an emulator needs few: where the log goes.
#pragma once

#include <string_view>

#include "emulator/driver/api.h"

namespace klap::emulator::driver {

class JitOptions {
 public:
  JitOptions() = default;
  // Keeps the pointers: the driver writes into the values.
  JitOptions(unsigned count, CUjit_option* names, void** values);

  // Puts text into the buffer for it, cut to its size, and the length written into the option that held the
  // size.
  void write_error(std::string_view text) const;
  void write_info(std::string_view text) const;

 private:
  struct Buffer {
    char* text = nullptr;
    void** size = nullptr;  // the option's value: the size on entry, the length on exit
    size_t bytes = 0;
  };
  static void write(const Buffer& buffer, std::string_view text);
  Buffer errors_, infos_;
};

}  // namespace klap::emulator::driver
