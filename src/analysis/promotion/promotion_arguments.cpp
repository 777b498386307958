#include "analysis/promotion/promotion_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/rejection.h"
#include "analysis/inline/parameter_reads.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

uint32_t store_index(const FunctionFacts& k, const ChainArgument& a) { return k.flow.index_of(a.store); }

Expr own_value(const ChainArgument& a) { return Expr::parameter(a.offset, 8 * a.bytes); }

// The stored value is the argument's own with a constant added or multiplied.
void find_step(const Expr& stored, ChainArgument& a) {
  const Expr own = own_value(a);
  if (!stored.known() || stored->bits != own->bits) return;
  if (const auto added = (stored - own).as_constant()) {
    a.kind = *added == 0 ? LinkArgument::Unchanged : LinkArgument::Stepped;
    a.step = *added;
    return;
  }
  const std::vector<Term> terms = terms_of(stored);
  if (terms.size() != 1 || terms[0].factors.size() != 1 || !(terms[0].factors[0] == own)) return;
  a.kind = LinkArgument::Stepped;
  a.multiplies = true;
  a.step = terms[0].coefficient;
}

// The pure code of the stored value, which is the same for all threads of the block.
std::optional<PureSlice> slice_of(const FunctionFacts& k, const ChainArgument& a) {
  auto slice = PureCode(k).slice(store_index(k, a), a.source);
  if (slice && slice->by_thread) slice.reset();
  return slice;
}

ByteRange bytes_of(const ChainArgument& a) { return {a.offset, a.bytes}; }

// Withdraws every value that uses a postponed argument until nothing changes.
void postpone(const FunctionFacts& k, std::vector<ChainArgument>& arguments) {
  for (bool more = true; more;) {
    more = false;
    for (ChainArgument& a : arguments) {
      if (a.kind != LinkArgument::Available) continue;
      const auto slice = slice_of(k, a);
      const bool known = slice && std::ranges::none_of(slice->reads, [&](const ByteRange& bytes) {
                           return touches(arguments, bytes, LinkArgument::Postponed);
                         });
      if (known) continue;
      a.kind = LinkArgument::Postponed;
      more = true;
    }
  }
}

Rejection mismatch(std::string detail) { return {Reason::ArgumentMismatch, std::move(detail)}; }

std::string bytes_text(const ByteRange& bytes) {
  return fmt::format("{} bytes at offset {} of its parameters", bytes.bytes, bytes.offset);
}

// Whether the arguments give all these bytes as they came.
bool is_unchanged(const std::vector<ChainArgument>& arguments, const ByteRange& bytes) {
  for (uint32_t byte = bytes.offset; byte < bytes.offset + bytes.bytes; ++byte) {
    if (!touches(arguments, {byte, 1}, LinkArgument::Unchanged)) return false;
  }
  return true;
}

}  // namespace

bool touches(const std::vector<ChainArgument>& arguments, const ByteRange& bytes, LinkArgument kind) {
  return std::ranges::any_of(
      arguments, [&](const ChainArgument& a) { return a.kind == kind && bytes_of(a).overlaps(bytes); });
}

std::vector<ChainArgument> classify_arguments(const FunctionFacts& kernel, const Site& site) {
  std::vector<ChainArgument> out;
  for (const Argument& argument : site.arguments) {
    ChainArgument a;
    a.offset = argument.offset;
    a.bytes = argument.bytes;
    a.source = argument.source;
    a.type = argument.type;
    a.store = argument.store;
    a.kind = LinkArgument::Available;
    find_step(kernel.values().symbolic.read(store_index(kernel, a), a.source, 8 * a.bytes), a);
    out.push_back(std::move(a));
  }
  std::ranges::stable_sort(out, {}, &ChainArgument::offset);
  postpone(kernel, out);
  return out;
}

Slice slice_of_available(const FunctionFacts& kernel, const std::vector<ChainArgument>& arguments) {
  std::vector<uint32_t> all;
  for (const ChainArgument& a : arguments) {
    if (a.kind != LinkArgument::Available) continue;
    const auto slice = slice_of(kernel, a);
    all.insert(all.end(), slice->instructions.begin(), slice->instructions.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Slice out;
  for (const uint32_t i : all) out.push_back(kernel.flow.instructions()[i].statement);
  return out;
}

std::optional<Rejection> check_parameters(const FunctionFacts& kernel,
                                          const std::vector<ChainArgument>& arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (bytes_of(arguments[i]).overlaps(bytes_of(arguments[i - 1])))
      return mismatch(fmt::format("two arguments for offset {} ({})", arguments[i].offset,
                                  kernel.module.place(arguments[i].store->head)));
  }
  for (const ptx::Parameter& p : kernel.function.parameters) {
    if (kernel.data.names().contains(p.name))
      return mismatch(fmt::format("{} is a parameter of the kernel and something else in its body", p.name));
  }
  if (!parameter_reads(kernel.module, kernel.function))
    return mismatch("the kernel reads beyond one of its parameters");
  const PureCode code(kernel);
  for (uint32_t i = 0; i < kernel.flow.instructions().size(); ++i) {
    const ptx::Statement& s = *kernel.flow.instructions()[i].statement;
    for (const ByteRange& bytes : code.parameter_bytes(i)) {
      if (std::ranges::find(arguments, bytes, bytes_of) != arguments.end()) continue;
      if (is_unchanged(arguments, bytes)) continue;
      return mismatch(fmt::format("the kernel reads {} ({}), which the launch does not pass in one piece",
                                  bytes_text(bytes), kernel.module.place(s.head)));
    }
  }
  return std::nullopt;
}

}  // namespace klap::analysis
