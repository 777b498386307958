// Children written by hand, whose registers have the names that generated code gives to its own.
#include "case.h"

constexpr int kThreads = 8;  // of the parent's only block
constexpr int kBlocks = 3, kChildThreads = 32;

#ifdef __CUDACC__

__global__ void name_registers(int* out, int factor) {
  int place, thread;
  asm("{\n\t"
      ".reg .s32 %%tid_x, %%ctaid_x, %%arguments, %%once, %%begin, %%end, %%own<3>;\n\t"
      "mov.u32 %%tid_x, %%ctaid.x;\n\t"
      "mov.u32 %%ctaid_x, %%tid.x;\n\t"
      "mov.u32 %%own1, %%ntid.x;\n\t"
      "mad.lo.s32 %%begin, %%tid_x, %%own1, %%ctaid_x;\n\t"
      "mov.u32 %%end, %%tid.x;\n\t"
      "mov.u32 %%arguments, %%nctaid.x;\n\t"
      "mad.lo.s32 %%once, %%arguments, 100, %%end;\n\t"
      "mov.u32 %0, %%begin;\n\t"
      "mov.u32 %1, %%once;\n\t"
      "}"
      : "=r"(place), "=r"(thread));
  out[place] += factor * thread;
}
extern "C" __global__ void names_parent(int* out) {
  const int t = threadIdx.x;
  name_registers<<<kBlocks, kChildThreads>>>(out + t * kBlocks * kChildThreads, t + 1);
}

#else

namespace klap::differential {

KLAP_CASE(names_of_registers, "a register is taken for another one of the same name") {
  std::vector<int> want;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kBlocks * kChildThreads; ++i)
      want.push_back(5 + (t + 1) * (100 * kBlocks + i % kChildThreads));
  }
  const auto out = c.buffer("out", std::vector<int>(want.size(), 5), want);
  c.launch("names_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(out));
  c.rewritten("names_parent");
}

}  // namespace klap::differential

#endif
