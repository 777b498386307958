#include "analysis/order/block_values.h"

#include <optional>

#include "analysis/graph/dataflow.h"

namespace klap::analysis {
namespace {

// Nothing where the address is not understood.
std::optional<Uniform> uniformity_of_address(const FunctionFacts& kernel, const Values& values,
                                             uint32_t instruction) {
  const ptx::Statement& s = *kernel.flow.instructions()[instruction].statement;
  if (s.operands.size() < 2) return std::nullopt;
  const auto address = parse_address(kernel.module, s.operands[1]);
  if (!address) return std::nullopt;
  return values.uniformity.operand(instruction, address->base);
}

bool is(const FunctionFacts& kernel, uint32_t instruction, const char* opcode) {
  return kernel.module.is(kernel.flow.instructions()[instruction].statement->head, opcode);
}

}  // namespace

bool loads_at_place_of_block(const FunctionFacts& kernel, const Values& values, uint32_t instruction) {
  return is(kernel, instruction, "ld") &&
         uniformity_of_address(kernel, values, instruction) == Uniform::Block;
}

bool draws_among_blocks(const FunctionFacts& kernel, const Values& values, uint32_t instruction) {
  if (!is(kernel, instruction, "atom")) return false;
  return uniformity_of_address(kernel, values, instruction).value_or(Uniform::Grid) == Uniform::Grid;
}

}  // namespace klap::analysis
