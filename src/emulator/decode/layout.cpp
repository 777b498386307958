// Calls are followed breadth first; an indirect one leads to every function whose address is taken.
#include "emulator/decode/layout.h"

#include <algorithm>

namespace klap::emulator {

namespace {

template <class Visit>
void for_each_callee(const Image& image, const Function& function, Visit&& visit) {
  for (const CallDetail& call : function.calls) {
    if (call.function != CallDetail::kIndirect) {
      visit(call.function);
    } else {
      for (const uint32_t callee : image.indirect_callees) visit(callee);
    }
  }
}

uint64_t aligned(uint64_t offset, uint64_t align) { return (offset + align - 1) / align * align; }

// NVIDIA's linker puts the rest of a block's shared memory at a multiple of so many bytes.
constexpr uint64_t kDynamicAlign = 16;

// Variables of fixed size one after the other, in the order in which they are first met; then, at a common
// place, those that share the rest.
void lay_out(const Image& image, Function& kernel, std::vector<uint32_t> used) {
  std::stable_partition(used.begin(), used.end(),
                        [&](uint32_t v) { return image.shared_variables[v].bytes != 0; });
  kernel.shared_offsets.assign(image.shared_variables.size(), ~uint64_t{0});
  uint64_t end = 0, dynamic_align = 0;
  for (const uint32_t v : used) {
    const SharedVariable& variable = image.shared_variables[v];
    if (variable.bytes == 0)
      dynamic_align = std::max<uint64_t>({dynamic_align, variable.align, kDynamicAlign});
    else
      end = aligned(end, variable.align) + variable.bytes;
    kernel.shared_offsets[v] = end - variable.bytes;
  }
  if (dynamic_align != 0) end = aligned(end, dynamic_align);
  for (const uint32_t v : used) {
    if (image.shared_variables[v].bytes == 0) kernel.shared_offsets[v] = end;
  }
  kernel.shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(end, ~0u));  // no device has that much
  kernel.shared = std::move(used);
}

}  // namespace

std::vector<uint32_t> reachable_functions(const Image& image, uint32_t function) {
  std::vector<uint32_t> out{function};
  std::vector<bool> seen(image.functions.size());
  seen[function] = true;
  for (size_t at = 0; at < out.size(); ++at) {
    for_each_callee(image, *image.functions[out[at]], [&](uint32_t callee) {
      if (!seen[callee]) out.push_back(callee);
      seen[callee] = true;
    });
  }
  return out;
}

void complete_kernels(Image& image) {
  for (uint32_t i = 0; i < image.functions.size(); ++i) {
    Function& kernel = *image.functions[i];
    if (!kernel.is_kernel) continue;
    std::vector<uint32_t> used;
    std::vector<bool> seen(image.shared_variables.size());
    for (const uint32_t f : reachable_functions(image, i)) {
      const Function& function = *image.functions[f];
      if (kernel.unsupported.empty()) kernel.unsupported = function.unsupported;
      for (const uint32_t v : function.shared) {
        if (!seen[v]) used.push_back(v);
        seen[v] = true;
      }
    }
    lay_out(image, kernel, std::move(used));
  }
}

}  // namespace klap::emulator
