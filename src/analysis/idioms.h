// Launch idioms: what a device-side launch looks like in PTX, per toolchain, read from ptx-patterns/idioms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap::analysis {

struct Idiom {
  std::string name;
  std::string get_buffer;  // buffer = f(callee, grid[12], block[12], shared)
  std::string launch;      // error = f(buffer, stream)
  bool stream_zero_is_per_thread = false;
};

struct IdiomTable {
  std::vector<Idiom> idioms;
  std::vector<std::string> last_error, peek_last_error;
  std::vector<std::string> runtime_prefixes;

  [[nodiscard]] const Idiom* by_launch(std::string_view function) const;
  [[nodiscard]] bool is_get_buffer(std::string_view function) const;
  [[nodiscard]] bool is_last_error(std::string_view function) const;       // reads and clears
  [[nodiscard]] bool is_peek_last_error(std::string_view function) const;  // reads
  // Any call into the device runtime, the ones above included.
  [[nodiscard]] bool is_device_runtime(std::string_view function) const;
};

// The built-in table, parsed once.
const IdiomTable& idioms();

}  // namespace klap::analysis
