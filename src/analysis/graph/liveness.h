// Liveness of virtual registers and an estimate of the register pressure.
//
// A register is live at a point if some path from there reads it before it is certainly overwritten. A write
// that may not happen (predicated, one lane of a vector register) overwrites nothing for certain. The number
// of live registers estimates what the assembler must hold at once. It may hold less where it can compute a
// value again or read a parameter in place. It may hold more for addresses, alignment of pairs and latency
// hiding. The number serves choices (how much to coarsen, what to merge), never proofs.
//
// Costs one step a register and block that it is live in. Where that exceeds a limit, or a branch has unknown
// targets, nothing is known: every register counts as live everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/graph/flow.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

struct Pressure {
  uint32_t words = 0;  // registers of 32 bits; .b64 takes two
  uint32_t predicates = 0;
  friend bool operator==(const Pressure&, const Pressure&) = default;
};

class Liveness {
 public:
  Liveness(const ControlFlow& flow, const VirtualRegisters& registers);

  [[nodiscard]] bool known() const { return known_; }

  // The registers that are live where a block begins; nothing for unreachable blocks.
  [[nodiscard]] std::span<const uint32_t> live_in(uint32_t block) const;
  // The blocks at whose begin a register is live.
  [[nodiscard]] std::span<const uint32_t> blocks_live_in(uint32_t reg) const;
  // The registers that are live directly before an instruction, in ascending order.
  [[nodiscard]] std::vector<uint32_t> live_before(uint32_t instruction) const;
  [[nodiscard]] bool is_live_before(uint32_t reg, uint32_t instruction) const;

  // The pressure while an instruction runs: of the registers live before it, or of those live after it and
  // its results, whichever is more.
  [[nodiscard]] Pressure pressure(uint32_t instruction) const { return pressure_[instruction]; }
  // The maximum over all instructions, separately for the two kinds, and the first instruction where each is
  // reached (npos where the maximum is 0).
  struct Maximum {
    Pressure pressure;
    uint32_t words_at = ControlFlow::npos, predicates_at = ControlFlow::npos;
  };
  [[nodiscard]] const Maximum& maximum() const { return maximum_; }
  // Steps taken, for showing that the cost is bounded.
  [[nodiscard]] uint64_t steps() const { return steps_; }

 private:
  struct Sparse {  // lists of numbers, one after the other
    std::vector<uint32_t> start, members;
    [[nodiscard]] std::span<const uint32_t> of(uint32_t at) const {
      return {members.data() + start[at], members.data() + start[at + 1]};
    }
  };
  static Sparse inverted(const Sparse& sparse, uint32_t count);

  void summarise_blocks();
  bool spread();
  bool spread(uint32_t reg);
  void assume_all_live();
  void measure();
  void measure_blocks();
  // The registers live at a block's end, into `set`.
  void live_out(uint32_t block, std::vector<uint32_t>& set) const;

  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  bool known_ = false;
  std::vector<uint32_t> everything_, every_block_;
  Sparse exposed_, killing_;    // register -> blocks that read it before writing it; that overwrite it
  Sparse blocks_of_, live_in_;  // register -> blocks, and the other way round
  std::vector<uint32_t> exposed_mark_, killing_mark_;  // block -> register it was last looked at for
  std::vector<uint32_t> work_;
  std::vector<Pressure> pressure_;
  Maximum maximum_;
  uint64_t steps_ = 0;
};

// The pressure at each block's begin and its maximum there, and the whole function's maximum.
std::string print_liveness(const ControlFlow& flow, const VirtualRegisters& registers,
                           const Liveness& liveness);

}  // namespace klap::analysis
