// See report.h.
#include "emulator/executor/report.h"

#include "emulator/grids/address_map.h"

namespace klap::emulator::execution {
namespace {

std::string in_words(const Dim3& at) {
  return "(" + std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " + std::to_string(at[2]) + ")";
}

std::string lanes_of(uint32_t warp, uint32_t lanes) {
  return "warp " + std::to_string(warp) + " lanes " + hexadecimal(lanes);
}

// Living lanes that are not at the barrier.
std::string missing_at_barrier(const Block& block, uint32_t number) {
  std::string text;
  for (uint32_t w = 0; w < block.warp_count; ++w) {
    const Warp& warp = *block.warps[w];
    uint32_t missing = warp.live;
    for (const Fragment& fragment : warp.fragments)
      if (fragment.state == Fragment::State::AtBarrier && fragment.barrier == number)
        missing &= ~fragment.mask;
    if (missing != 0) text += (text.empty() ? "" : ", ") + lanes_of(w, missing);
  }
  return text.empty() ? "no living thread" : text;
}

std::string waits_for(const Block& block, const Warp& warp, const Fragment& fragment) {
  if (fragment.state == Fragment::State::Ready) return "can run";
  if (fragment.state == Fragment::State::AtBarrier) {
    const Barrier& barrier = block.barriers[fragment.barrier];
    std::string text = "waits at barrier " + std::to_string(fragment.barrier);
    if (barrier.expected != 0)
      text += ", where " + std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
              " threads arrived";
    return text + "; not there: " + missing_at_barrier(block, fragment.barrier);
  }
  uint32_t there = 0;
  for (const Fragment& other : warp.fragments)
    if (other.state == Fragment::State::AtWarpOperation && other.members == fragment.members &&
        other.instruction().kind == fragment.instruction().kind)
      there |= other.mask;
  return "waits at an operation of the lanes " + hexadecimal(fragment.members) + "; not there: lanes " +
         hexadecimal(fragment.members & warp.live & ~there);
}

}  // namespace

std::string describe(const Block& block) {
  std::string text;
  for (uint32_t w = 0; w < block.warp_count; ++w) {
    const Warp& warp = *block.warps[w];
    for (const Fragment& fragment : warp.fragments)
      text += "kernel " + block.kernel().name + " (grid " + std::to_string(block.run->grid->id) +
              "), block " + in_words(block.index) + ", " + lanes_of(w, fragment.mask) + ", " +
              fragment.function->unit + ":" + std::to_string(fragment.instruction().line) + ": " +
              waits_for(block, warp, fragment) + "\n";
  }
  return text;
}

}  // namespace klap::emulator::execution
