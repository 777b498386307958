// The columns that an instruction's operands are.
//
// Most are registers or constants, which lie ready; special registers and addresses of variables are written
// into columns of our own when they are read.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/alu/alu.h"
#include "emulator/grids/block.h"
#include "emulator/grids/context.h"

namespace klap::emulator::execution {

class Operands {
 public:
  explicit Operands(const Context& context) : context_(context) {}

  // The frame that operands belong to from now on. To be called again when the warp's registers moved.
  void enter(Warp& warp, const Fragment& fragment) {
    warp_ = &warp;
    frame_ = warp.registers.data() + size_t{fragment.columns} * kLanes;
    constants_ = fragment.function->constants.data();
    local_ = fragment.local;
  }
  [[nodiscard]] ConstColumn source(const Operand& operand, size_t position) {
    switch (operand.from) {
      case Operand::From::Register:
        return frame_ + size_t{operand.index} * kLanes;
      case Operand::From::Constant:
        return constants_ + size_t{operand.index} * kLanes;
      default:
        return made(operand, position);
    }
  }
  // A bit bucket is a column like others, but no instruction reads it.
  [[nodiscard]] Column destination(const Operand& operand) {
    return operand.from == Operand::From::Register ? frame_ + size_t{operand.index} * kLanes : bucket_.data();
  }
  // The lanes whose predicate is set.
  [[nodiscard]] uint32_t predicate(uint32_t column) const;

 private:
  using Pair = std::array<uint64_t, 2 * size_t{kLanes}>;  // a register of 128 bits takes two columns
  ConstColumn made(const Operand& operand, size_t position);
  void make_special(Special special, uint64_t* column) const;

  const Context& context_;
  Warp* warp_ = nullptr;
  uint64_t* frame_ = nullptr;
  const uint64_t* constants_ = nullptr;
  uint32_t local_ = 0;
  Pair bucket_{};
  std::array<Pair, 10> made_{};
};

}  // namespace klap::emulator::execution
