// How wide the registers of a function are.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "ptx/tree.h"

namespace klap::analysis {

// Types of the registers that one function declares.
class RegisterBits {
 public:
  RegisterBits(const ptx::Module& module, const ptx::Function& function);
  // 16, 32 or 64; 0 for anything else and where declarations of the name differ.
  [[nodiscard]] uint32_t of(std::string_view name) const;

 private:
  std::map<std::string_view, uint32_t> names_;
  std::map<std::string_view, std::map<uint32_t, uint32_t>> ranges_;  // "%r" -> count -> bits
};

}  // namespace klap::analysis
