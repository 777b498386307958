#include "random/reference_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "support/error.h"

namespace klap::differential::random {

namespace {

bool is_reading(CellOp op) { return op == CellOp::Read || op == CellOp::Poll; }
bool is_atomic(CellOp op) { return op >= CellOp::AtomicAdd; }
// Equal for accesses that commute; 0 for those that commute with none.
int kind_of(CellOp op) {
  switch (op) {
    case CellOp::Add:
    case CellOp::AtomicAdd:
    case CellOp::AddBySwap:
      return 1;
    case CellOp::Maximum:
    case CellOp::AtomicMaximum:
      return 2;
    case CellOp::Scratch:
      return 3;
    default:
      return 0;
  }
}

uint64_t operand_of(const CellAccess& access, uint32_t operand, uint32_t element) {
  return access.bytes == 8 ? uint64_t{operand} * kWideFactor : uint64_t{operand + element};
}

// An odd number of either sign: no sum is so small that it could be flushed to 0.
float float_of(uint32_t operand) {
  return static_cast<float>(static_cast<int32_t>(operand * kFloatFactor | 1U));
}

uint64_t combined(CellOp op, uint64_t old, uint64_t operand, uint64_t swapped) {
  switch (op) {
    case CellOp::Read:
    case CellOp::Poll:
    case CellOp::Scratch:
      return old;
    case CellOp::Write:
    case CellOp::Exchange:
      return operand;
    case CellOp::Add:
    case CellOp::AtomicAdd:
    case CellOp::AtomicAddUsed:
    case CellOp::AddBySwap:
      return old + operand;
    case CellOp::Maximum:
    case CellOp::AtomicMaximum:
      return std::max(old, operand);
    case CellOp::AtomicAddFloat:
      return std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(old)) +
                                     float_of(static_cast<uint32_t>(operand)));
    case CellOp::Affine:
      return old * 3 + operand;
    case CellOp::CompareSwap:
      return old == swapped ? operand : old;
  }
  return old;
}

// Of Scratch: the four words that were written, folded.
uint32_t folded(uint32_t operand) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) result = result * 31 + operand * (i + 1);
  return result;
}

}  // namespace

uint64_t Cells::read(const CellAccess& access, uint32_t word, uint32_t element) const {
  if (access.bytes == 8) return words_[word] | uint64_t{words_[word + 1]} << 32;
  return words_[word + element] & (access.bytes == 4 ? ~0U : (1U << 8 * access.bytes) - 1);
}

void Cells::write(const CellAccess& access, uint32_t word, uint32_t element, uint64_t value) {
  const auto low = static_cast<uint32_t>(value);
  if (access.bytes >= 4) words_[word + element] = low;
  if (access.bytes == 8) words_[word + 1] = static_cast<uint32_t>(value >> 32);
  if (access.bytes >= 4) return;
  const uint32_t mask = (1U << 8 * access.bytes) - 1;
  words_[word] = (words_[word] & ~mask) | (low & mask);
}

uint32_t Cells::access(const CellAccess& access, uint32_t word, uint32_t operand, uint32_t swapped,
                       const Event& at) {
  for (uint32_t i = 0; i < access.words(); ++i) check(word + i, {at, access.op, access.bytes, operand});
  if (access.op == CellOp::Scratch) {
    std::fill_n(words_.begin() + word, 4, 0);
    return folded(operand);
  }
  uint32_t result = 0;
  for (uint32_t i = 0; i < access.elements; ++i) {
    const uint64_t mask = access.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * access.bytes) - 1;
    const uint64_t old = read(access, word, i);
    const uint64_t changed = combined(access.op, old, operand_of(access, operand, i) & mask,
                                      operand_of(access, swapped, i) & mask) &
                             mask;
    if (!is_reading(access.op)) write(access, word, i, changed);
    const uint64_t seen = access.op == CellOp::Affine ? changed : old;
    result ^= static_cast<uint32_t>(seen) ^ static_cast<uint32_t>(seen >> 32);
  }
  return access.has_result() ? result : 0;
}

void Cells::check(uint32_t word, const Past& now) {
  if (!is_checking_) return;
  for (const Past& past : history_[word]) {
    if (is_reading(past.op) && is_reading(now.op)) continue;
    const Precedence precedence = order_.compare(past.at, now.at);
    if (precedence == Precedence::Ordered) continue;
    const bool is_same = past.op == CellOp::Write && now.op == CellOp::Write && past.value == now.value &&
                         past.bytes == now.bytes;
    const bool commute =
        (kind_of(past.op) != 0 && kind_of(past.op) == kind_of(now.op) && past.bytes == now.bytes) || is_same;
    const bool may_overlap = is_atomic(past.op) && is_atomic(now.op);
    if (commute && (may_overlap || precedence == Precedence::Exclusive)) continue;
    throw Error(ErrorCode::Internal, fmt::format("cell {} is changed in no order", word));
  }
  history_[word].push_back(now);
}

}  // namespace klap::differential::random
