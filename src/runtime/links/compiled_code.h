// Relocatable machine code that NVRTC compiled in this process, and the PTX of the same program.
//
// A program may compile to machine code and link that (program_links.h). Nothing of machine code can be
// rewritten, but NVRTC still has the PTX that it made on the way.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace klap::runtime {

class CompiledCode {
 public:
  // The PTX that is kept: as much as programs that compile while they run are known to have.
  static constexpr size_t kMostBytes = size_t{32} << 20;

  explicit CompiledCode(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  static CompiledCode& instance();

  void keep(std::string_view machine_code, std::string ptx);
  // Empty if it is not known.
  std::string ptx_of(std::string_view machine_code);

 private:
  struct Compiled {
    std::array<uint64_t, 2> hash{};
    std::string ptx;
  };
  const size_t most_bytes_;
  std::mutex mutex_;
  std::deque<Compiled> all_;  // the oldest first
  size_t bytes_ = 0;
};

}  // namespace klap::runtime
