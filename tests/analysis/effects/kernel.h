// Kernels for the tests of the analyses: parsed text with the facts of one function.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "analysis/facts/facts.h"
#include "support/file.h"

namespace klap::test {

struct Kernel {
  Kernel(const std::string& text, const std::string& name) : module(ptx::parse(text, "test")) {
    const ptx::Function* function = module.find_function(name);
    if (function == nullptr || !function->is_definition) throw std::runtime_error("no function " + name);
    facts = std::make_unique<analysis::FunctionFacts>(module, *function);
  }
  // The index of the first instruction with this opcode, modifiers included.
  [[nodiscard]] uint32_t find(const std::string& opcode) const {
    const auto& instructions = facts->flow.instructions();
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      if (module.full_opcode(*instructions[i].statement) == opcode) return i;
    }
    throw std::runtime_error("no instruction " + opcode);
  }
  ptx::Module module;
  std::unique_ptr<analysis::FunctionFacts> facts;
};

// A module with one kernel `k` of this body.
inline std::string kernel_text(const std::string& body) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n) {\n"
         ".reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n" +
         body + "\n}\n";
}
inline Kernel kernel(const std::string& body) { return {kernel_text(body), "k"}; }

inline std::string fixture(const std::string& name) {
  return read_file(std::string(KLAP_EFFECTS_FIXTURES) + "/" + name);
}

}  // namespace klap::test
