// Taking a function's instructions apart.
//
// Each opcode that is more than arithmetic has its reader (the methods named read_...); find_alu knows
// everything else. An instruction that cannot be read is an Error(Unsupported), which run() catches. The
// function is then marked and the next instruction read, so that other errors of the program are still
// reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/graph/registers.h"
#include "emulator/decode/decode_columns.h"
#include "emulator/decode/decode_scopes.h"
#include "ptx/lines.h"

namespace klap::emulator {

// The modifiers of one instruction. Each reader takes those that it knows; any that are left over are
// unknown.
class Modifiers {
 public:
  Modifiers(const ptx::Module& module, ptx::TokenRange range);
  bool take(std::string_view modifier);
  bool take_prefixed(std::string_view prefix);  // one that begins so
  template <class Value, size_t count>
  std::optional<Value> take_one(const std::pair<std::string_view, Value> (&choices)[count]) {
    for (const auto& [name, value] : choices) {
      if (take(name)) return value;
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::vector<std::string_view>& all() const { return all_; }
  [[nodiscard]] std::string_view left_over() const;  // empty if there is none

 private:
  std::vector<std::string_view> all_;
  std::vector<bool> taken_;
};

class FunctionDecoder {
 public:
  FunctionDecoder(Linker& linker, const ptx::Module& module, const ptx::LineNumbers& lines,
                  const ptx::Function& function, Function& out);
  void run();

 private:
  using TokenRange = ptx::TokenRange;
  using Reader = void (FunctionDecoder::*)();

  // ---- the function ----
  void describe_header();
  void describe_attributes();
  FormalParameter formal(const ptx::Parameter& parameter);
  void read_instruction();
  static Reader reader_of(std::string_view opcode);
  void finish();

  // ---- instructions (at_ is the one that is being read) ----
  [[nodiscard]] const ptx::Statement& statement() const { return *flow_.instructions()[at_].statement; }
  [[nodiscard]] const ptx::Statement* scope() const { return flow_.instructions()[at_].scope; }
  [[nodiscard]] Instruction begin(Kind kind);
  void emit(const Instruction& instruction);
  void expect_operands(size_t least, size_t most);
  void expect_operands(size_t count) { expect_operands(count, count); }
  void finish_modifiers(const Modifiers& modifiers);
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void unsupported_at(uint32_t token, const std::string& reason) const;
  void add_destination(Instruction& i, const Operand& operand) const;
  void add_source(Instruction& i, const Operand& operand) const;

  // ---- operands ----
  [[nodiscard]] TokenRange operand(size_t index) const { return statement().operands[index]; }
  [[nodiscard]] std::vector<TokenRange> split(TokenRange range, std::string_view separator) const;
  // The elements between the brackets of a range, split at its commas.
  [[nodiscard]] std::vector<TokenRange> elements(TokenRange range) const;
  // `p|q` apart.
  [[nodiscard]] std::vector<TokenRange> destinations_of(TokenRange range) const;
  struct RegisterUse {
    uint32_t reg = 0, column = 0, lanes = 1, bits = 0;  // `lanes` of what is named: 1 for `v.x`
  };
  [[nodiscard]] std::optional<RegisterUse> register_use(TokenRange range) const;
  [[nodiscard]] uint8_t register_bits(TokenRange range) const;
  Operand destination(TokenRange range);
  Operand source(TokenRange range, OperandForm form);
  // `!p` says so in `negated` and gives p.
  Operand predicate(TokenRange range, bool& negated);
  // All parts of `{a, b}`, of a vector register, or the operand itself.
  std::vector<Operand> vector_destination(TokenRange range, uint8_t& bits);
  std::vector<Operand> vector_source(TokenRange range, OperandForm form);
  Operand constant(uint64_t value);
  Operand constant128(uint64_t low);
  struct SymbolPlace {
    Operand base;
    Space space = Space::Generic;
    bool is_function = false;
  };
  SymbolPlace place_of(uint32_t token);
  struct AddressPlace {
    Operand base;
    int64_t offset = 0;
    std::optional<Space> space;  // of the symbol that it names
  };
  AddressPlace address(TokenRange range);
  AddressPlace address_inside(TokenRange range);  // without its brackets
  Operand with_offset(const AddressPlace& place);
  uint32_t temporary(uint32_t columns);

  // ---- readers ----
  void read_alu();
  void read_move();
  void read_vector_move();
  void read_load();
  void read_store();
  void read_atomic();
  void read_fence();
  void read_membar();
  void read_hint();
  void read_create_policy();
  void read_copy();
  void emit_copy(uint64_t bytes, uint64_t offset, bool zeros, const Operand& limit = {});
  void read_cvta();
  void read_isspacep();
  void read_mapa();
  void read_barrier();
  void read_shuffle();
  void read_vote();
  void read_match();
  void read_redux();
  void read_active_mask();
  void read_elect();
  void read_branch();
  void read_indexed_branch();
  void read_call();
  void read_return();
  void read_plain();
  void read_nanosleep();
  void read_dependency();
  void read_stack();
  void read_texture();

  void take_space(Modifiers& modifiers, Instruction& i, bool& is_plain_parameter);
  void take_order(Modifiers& modifiers, Instruction& i);
  static void take_cache_hints(Modifiers& modifiers);
  void take_type(Modifiers& modifiers, Instruction& i);
  static bool take_entry_parameter(Modifiers& modifiers);
  void set_address(Instruction& i, TokenRange operand, bool is_plain_parameter);
  void add_vote_predicate(Instruction& i, TokenRange operand);
  CallDetail::Place actual(TokenRange range, uint32_t formal_bytes);
  [[nodiscard]] std::vector<uint32_t> formal_sizes(TokenRange callee, bool is_direct, bool results) const;

  Linker& linker_;
  const ptx::Module& m_;
  const ptx::LineNumbers& lines_;
  const ptx::Function& function_;
  Function& out_;
  analysis::ControlFlow flow_;
  analysis::VirtualRegisters registers_;
  Columns columns_;
  LocalScopes scopes_;

  uint32_t at_ = 0;
  std::vector<uint32_t> places_;  // of each instruction of the flow in the code
  std::unordered_map<uint64_t, uint32_t> constants_;
  std::unordered_map<std::string, uint32_t> opcodes_;
};

}  // namespace klap::emulator
