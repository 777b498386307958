// Code that can be run elsewhere in the kernel, or twice: it depends on nothing but parameters, special
// registers and constants, or on registers whose values are settled.
//
// Such code is copied elsewhere with the names of its registers. So a register counts only if the body
// itself declares it, under a name that is used once, and one unpredicated instruction writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// Bytes of the kernel's parameter block.
struct ByteRange {
  uint32_t offset = 0, bytes = 0;
  [[nodiscard]] bool overlaps(const ByteRange& other) const {
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Straight-line code that computes a value from parameters, special registers and constants.
struct PureSlice {
  std::vector<uint32_t> instructions;  // ascending
  std::vector<ByteRange> reads;        // of the parameter block
  bool by_thread = false;              // the value may differ between threads of a block
};

class PureCode {
 public:
  explicit PureCode(const FunctionFacts& kernel) : k_(kernel) {}

  // True for an instruction whose results are its operands' alone, parameters among them; its registers
  // fulfil what is said above. Its operands need not be pure.
  [[nodiscard]] bool is_movable(uint32_t instruction) const;

  // All that computes what an instruction reads in an operand; nothing if that is not pure.
  [[nodiscard]] std::optional<PureSlice> slice(uint32_t reader, std::string_view operand) const;

  // The bytes of the parameter block that an instruction loads, or may read once it has their address.
  [[nodiscard]] std::vector<ByteRange> parameter_bytes(uint32_t instruction) const;

 private:
  [[nodiscard]] bool has_settled_results(uint32_t instruction) const;
  [[nodiscard]] bool has_steady_operands(uint32_t instruction) const;
  [[nodiscard]] bool is_parameter_load(uint32_t instruction) const;
  bool add(uint32_t reader, std::string_view operand, PureSlice& out) const;

  const FunctionFacts& k_;
};

}  // namespace klap::analysis
