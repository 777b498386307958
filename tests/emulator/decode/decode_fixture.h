// Helpers for the decoder's tests: linking of short texts, and printing the result.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/decode/decode.h"

namespace klap::emulator {

inline constexpr std::string_view kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

class Linked {
 public:
  // Each text is a unit without its header; they are called a.ptx, b.ptx, ...
  explicit Linked(const std::vector<std::string>& units);

  [[nodiscard]] const Image& image() const { return *image_; }
  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] const Function& function(std::string_view name) const;
  [[nodiscard]] const Variable& variable(std::string_view name) const;
  // A value in a variable.
  template <class T>
  [[nodiscard]] T value(std::string_view name, size_t index = 0) const {
    return reinterpret_cast<const T*>(variable(name).address)[index];
  }

 private:
  Memory memory_{uint64_t{1} << 26};
  std::deque<ptx::Module> modules_;
  std::shared_ptr<Image> image_;
};

// A kernel `k` with these statements, which begin in line 8 of the text. It has registers of all kinds: %p,
// %h, %r, %rd, %f, %fd, %q of 128 bits, %v of .v4 .f32.
std::string kernel(std::string_view statements);

// The code of `k` without numbers and without the Exit at its end: "Alu add.s32 r0 = r1, 0x1".
std::vector<std::string> listing(std::string_view statements);
std::vector<std::string> listing(const Image& image, const Function& function);

// The message of the error that linking throws; empty if it throws none.
std::string link_failure(const std::vector<std::string>& units, ErrorCode code);

}  // namespace klap::emulator
