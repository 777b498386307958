#include "graph_fixture.h"

#include <fmt/format.h>

#include <random>

namespace klap::analysis {

Kernel::Kernel(const std::string& body, const std::string& items) {
  read(".version 8.8\n.target sm_90\n.address_size 64\n" + items +
       ".visible .entry k(.param .u64 k_param_0) {\n"
       ".reg .b32 %r<100>; .reg .b64 %rd<100>; .reg .f32 %f<100>; .reg .pred %p<10>;\n" +
       body + "\n}\n");
}

Kernel Kernel::of_module(std::string text) {
  Kernel kernel;
  kernel.read(std::move(text));
  return kernel;
}

void Kernel::read(std::string text) {
  module = std::make_unique<ptx::Module>(ptx::parse(std::move(text), "test.ptx"));
  function = &module->functions.back();
  flow = std::make_unique<ControlFlow>(*module, *function);
}

std::string random_body(uint32_t blocks, uint32_t seed) {
  std::mt19937 random(seed);
  const auto any = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  std::string body = "T: .branchtargets ";
  for (int i = 0; i < 3; ++i) body += fmt::format("L{}{}", any(blocks), i < 2 ? ", " : ";\n");
  for (uint32_t b = 0; b < blocks; ++b) {
    body += fmt::format("L{}: mov.u32 %r1, {};\n", b, b);
    switch (any(8)) {
      case 0:
        body += "@%p1 ret;\n";
        break;
      case 1:
        body += any(3) == 0 ? "exit;\n" : "brx.idx %r1, T;\n";
        break;
      case 2:
        body += fmt::format("bra L{};\n", any(blocks));
        break;
      case 3:
        break;
      default:
        body += fmt::format("@%p1 bra L{};\n", any(blocks));
    }
  }
  return body + "ret;";
}

std::string long_body(uint32_t instructions) {
  std::string body;
  uint32_t made = 0;
  for (uint32_t n = 0; made + 16 < instructions; ++n, made += 16) {
    body += fmt::format(
        "LOOP{0}: ld.global.u32 %r1, [%rd1];\n"
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;\n"
        "add.u32 %r2, %r1, %r3;\nmul.lo.u32 %r4, %r2, %r3;\nsetp.lt.u32 %p2, %r4, 9;\n@%p2 bra ELSE{0};\n"
        "add.u32 %r5, %r4, 1;\nmov.u32 %r3, %r5;\nbra JOIN{0};\n"
        "ELSE{0}: sub.u32 %r5, %r4, 1;\nadd.u32 %r3, %r3, 2;\n"
        "JOIN{0}: st.global.u32 [%rd1], %r5;\nadd.u64 %rd1, %rd1, 4;\n"
        "setp.lt.u32 %p3, %r5, 100;\n@%p3 bra LOOP{0};\n",
        n);
  }
  return body + "DONE: ret;";
}

}  // namespace klap::analysis
