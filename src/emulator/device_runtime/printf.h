// Device printf: a format and a buffer of arguments, as nvcc lays them out, made into text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace klap::emulator {

struct PrintfSource {
  // Copies the bytes at this offset of the argument buffer.
  std::function<void(uint64_t offset, std::span<std::byte> out)> argument;
  // The text at a device address, for %s.
  std::function<std::string(uint64_t address)> text;
};

struct PrintfResult {
  std::string text;
  int arguments = 0;  // taken; what CUDA's printf returns
};

// Throws Error(Unsupported) for a conversion that CUDA does not have (%n, wide text).
PrintfResult format_printf(std::string_view format, const PrintfSource& source);

}  // namespace klap::emulator
