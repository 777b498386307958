// Small kernels for the tests of the analyses: a body in PTX, parsed, with its control flow.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/graph/flow.h"

namespace klap::analysis {

struct Kernel {
  // `body` follows declarations of %r<100>, %rd<100>, %f<100>, %p<10>; `items` are further module items.
  explicit Kernel(const std::string& body, const std::string& items = "");
  // A whole module; its last function is the kernel.
  static Kernel of_module(std::string text);

  std::unique_ptr<ptx::Module> module;
  const ptx::Function* function = nullptr;
  std::unique_ptr<ControlFlow> flow;

 private:
  Kernel() = default;
  void read(std::string text);
};

// A body of `blocks` blocks with random branches, exits and tables; the same for the same seed.
std::string random_body(uint32_t blocks, uint32_t seed);

// A body of about `instructions` instructions: loops, nested conditions and early exits, as generated code
// has them.
std::string long_body(uint32_t instructions);

}  // namespace klap::analysis
