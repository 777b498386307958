// Values that a program's text gives: numbers, addresses of symbols, and expressions of them.
//
// They stand as immediate operands, inside addresses and in the initialisers of variables. A symbol has no
// value before the program is linked. So the value is a number, or a symbol with an offset and the operation
// on its address.
#pragma once

#include <cstdint>

#include "emulator/alu/alu.h"
#include "ptx/tree.h"

namespace klap::emulator {

// An error with its place in the text and the line itself.
Error error_at(ErrorCode code, const ptx::Module& module, uint32_t token, const std::string& reason);

struct ConstantValue {
  enum class Kind : uint8_t { Integer, Single, Double, Symbol } kind = Kind::Integer;
  uint64_t bits = 0;        // of the number; of a symbol: the offset
  uint32_t token = 0;       // where it stands; of a symbol: its name
  bool is_generic = false;  // generic(symbol): its address in the generic space
  uint64_t mask = ~0ull;    // 0xff00(symbol): these bits of the address, moved down to bit 0
};

class ConstantReader {
 public:
  ConstantReader(const ptx::Module& module, ptx::TokenRange range)
      : module_(module), at_(range.first), last_(range.last) {}

  // Reads one expression. Throws Error(Parse) where there is none, and Error(Unsupported) for an expression
  // that is not a number or a symbol with an offset.
  ConstantValue read() { return binary(0); }
  [[nodiscard]] bool at_end() const { return at_ == last_; }
  [[nodiscard]] uint32_t at() const { return at_; }
  bool accept(std::string_view text);

 private:
  ConstantValue binary(int lowest);
  ConstantValue unary();
  ConstantValue signed_value();
  ConstantValue primary();
  ConstantValue number();
  [[nodiscard]] std::string_view binary_operator(uint32_t& tokens) const;
  [[nodiscard]] bool is(uint32_t token, std::string_view text) const {
    return token < last_ && module_.is(token, text);
  }
  [[noreturn]] void fail(ErrorCode code, const std::string& reason) const;
  [[nodiscard]] ConstantValue combined(std::string_view op, const ConstantValue& a,
                                       const ConstantValue& b) const;

  const ptx::Module& module_;
  uint32_t at_, last_;
  int depth_ = 0;  // nesting of the expression that is being read
};

// The bit pattern of a number in the form that an operand or a variable wants it. Throws Error(Parse) for a
// floating-point number where an integer is wanted, unless it is written as a bit pattern of the same size.
uint64_t bits_of(const ptx::Module& module, const ConstantValue& value, OperandForm form);

}  // namespace klap::emulator
