#include "analysis/order/launch_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

constexpr uint64_t kMostThreads = 1023;  // the largest number of a thread in its block
constexpr char kThread[] = "#thread";
constexpr char kArgument[] = "#argument";
constexpr char kResult[] = "#result ";
constexpr char kMerged[] = " one of several ";

// Addresses in the global window are the same numbers as generic ones.
Expr without_windows(const Expr& e) {
  return substitute(e, [](const Expr& part) -> std::optional<Expr> {
    const bool converts = part->kind == ExprKind::ToGeneric || part->kind == ExprKind::FromGeneric;
    if (!converts || part->name != "global") return std::nullopt;
    return without_windows(part->operands[0]);
  });
}

Expr special(const char* name, uint32_t bits) { return convert(Expr::special(name), bits, Sign::Unsigned); }

// True if the special register `name` is a leaf of the expression.
bool names(const Expr& e, std::string_view name) {
  return any_leaf(e,
                  [&](const ExprNode& leaf) { return leaf.kind == ExprKind::Special && leaf.name == name; });
}

// The expression with %tid.x in terms of the thread's number in a block of so many dimensions.
Expr with_thread(const Expr& e, int dimensions) {
  return substitute(e, [dimensions](const Expr& part) -> std::optional<Expr> {
    if (!(part == special("tid.x", part->bits))) return std::nullopt;
    const uint32_t bits = part->bits;
    Expr out = LaunchTerms::thread_symbol(bits);
    if (dimensions > 1) out = out - special("ntid.x", bits) * special("tid.y", bits);
    if (dimensions > 2)
      out = out - special("ntid.x", bits) * special("ntid.y", bits) * special("tid.z", bits);
    return out;
  });
}

// The instruction that a symbol for a result of the child names.
std::optional<uint32_t> instruction_in(const ExprNode& leaf) {
  constexpr std::string_view kPrefix = kResult;
  if (leaf.kind != ExprKind::Opaque || !leaf.name.starts_with(kPrefix)) return std::nullopt;
  uint32_t instruction = 0;
  const char* const begin = leaf.name.data() + kPrefix.size();
  std::from_chars(begin, leaf.name.data() + leaf.name.size(), instruction);
  return instruction;
}

}  // namespace

Expr LaunchTerms::thread_symbol(uint32_t bits) {
  return convert(Expr::symbol(kThread, 32, kMostThreads), bits, Sign::Unsigned);
}

bool LaunchTerms::is_thread_symbol(const ExprNode& leaf) {
  return leaf.kind == ExprKind::Opaque && leaf.name == kThread;
}

std::optional<uint32_t> LaunchTerms::result_of(const ExprNode& leaf) {
  if (leaf.name.find(kMerged) != std::string::npos) return std::nullopt;
  return instruction_in(leaf);
}

std::optional<LaunchTerms::Merged> LaunchTerms::merged_of(const ExprNode& leaf) {
  const size_t between = leaf.name.find(kMerged);
  const auto instruction = instruction_in(leaf);
  if (!instruction || between == std::string::npos) return std::nullopt;
  return Merged{*instruction, leaf.name.substr(between + std::string_view(kMerged).size())};
}

Varies LaunchTerms::varies(const ExprNode& leaf) {
  if (leaf.kind == ExprKind::Special) {
    return leaf.name.starts_with("tid.") || leaf.name == "laneid" ? Varies::Unknown : Varies::No;
  }
  if (leaf.kind != ExprKind::Opaque && leaf.kind != ExprKind::Merged) return Varies::No;
  if (is_thread_symbol(leaf)) return Varies::Thread;
  if (leaf.name.starts_with(kArgument)) return Varies::Unknown;
  return leaf.name.starts_with('#') ? Varies::Child : Varies::No;
}

LaunchTerms::LaunchTerms(const FunctionFacts& parent, const Site& site, const FunctionFacts& child,
                         const KnownExtents& block)
    : parent_(parent),
      site_(site),
      child_(child),
      block_(block),
      values_(site_values(parent.values(), site)) {}

Expr LaunchTerms::of(const Expr& in_child) const {
  return substitute(without_windows(in_child), [this](const Expr& part) { return of_leaf(part); });
}

std::optional<Expr> LaunchTerms::of_leaf(const Expr& part) const {
  switch (part->kind) {
    case ExprKind::Parameter:
      return argument(static_cast<uint32_t>(part->value), part->bits);
    case ExprKind::Special:
      return position(part->name, part->bits);
    case ExprKind::Opaque:
    case ExprKind::Merged: {
      const char* const kind = part->kind == ExprKind::Opaque ? " " : kMerged;
      return Expr::symbol(fmt::format("{}{}{}{}", kResult, part->value, kind, part->name), part->bits,
                          part->range.most);
    }
    case ExprKind::ParameterBlock:
      return Expr::symbol(kArgument, part->bits, ~uint64_t{0});
    default:
      return std::nullopt;
  }
}

// The value of a special register in the child. Its extents are known if the launch tells them.
Expr LaunchTerms::position(const std::string& name, uint32_t bits) const {
  static constexpr std::array kAxes = {".x", ".y", ".z"};
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    if (!name.ends_with(kAxes.at(axis))) continue;
    const auto block = values_.block.at(axis).value.constant(), grid = values_.grid.at(axis).value.constant();
    const bool of_block = name.starts_with("tid") || name.starts_with("ntid");
    const auto extent = of_block ? block : grid;
    const bool is_extent = name.starts_with('n');
    if (is_extent && extent) return Expr::constant(*extent, bits);
    if (is_extent) return Expr::symbol(fmt::format("{} {}", kArgument, name), bits, ~uint64_t{0});
    const uint64_t most = extent && *extent != 0 ? *extent - 1 : Expr::special(name)->range.most;
    if (most == 0) return Expr::constant(0, bits);
    return Expr::symbol("#" + name, bits, most);
  }
  return Expr::symbol("#" + name, bits, ~uint64_t{0});
}

bool LaunchTerms::is_same_for_grid(uint32_t parameter_load) const {
  const Statement& s = *child_.flow.instructions()[parameter_load].statement;
  const auto offset = child_.values().symbolic.parameter_offset(parameter_load);
  if (!offset || s.modifiers.empty()) return false;
  const size_t lanes = components(child_.module, s.operands[0]).size();
  const uint32_t bytes = ptx::type_bytes(child_.module.text(s.modifiers.last - 1));
  for (size_t lane = 0; lane < lanes; ++lane) {
    const auto is_passed = [&](const SiteArgument& argument) {
      return argument.offset == *offset + lane * bytes && argument.bytes == bytes &&
             argument.operand.uniform == Uniform::Grid;
    };
    if (std::ranges::none_of(values_.arguments, is_passed)) return false;
  }
  return true;
}

// All bytes that are read must have been stored as one operand.
Expr LaunchTerms::argument(uint32_t offset, uint32_t bits) const {
  for (const SiteArgument& argument : values_.arguments) {
    if (argument.offset != offset || argument.bytes * 8 != bits) continue;
    return of_parent(argument.operand.value.exact(), bits, offset);
  }
  return Expr::symbol(fmt::format("{} {}", kArgument, offset), bits, ~uint64_t{0});
}

Expr LaunchTerms::of_parent(const Expr& value, uint32_t bits, uint32_t offset) const {
  const Expr unknown = Expr::symbol(fmt::format("{} {}", kArgument, offset), bits, ~uint64_t{0});
  if (!value.known() || value->bits != bits) return unknown;
  Expr out = without_windows(value);
  if (any_leaf(out, [this](const ExprNode& leaf) { return !is_same_for_block(leaf); })) return unknown;
  const bool one_row = block_[1] == 1U && block_[2] == 1U;
  const int dimensions = one_row ? 1 : names(out, "tid.z") ? 3 : 2;
  if (one_row) {
    out = substitute(out, [](const Expr& part) -> std::optional<Expr> {
      if (part == special("tid.y", part->bits) || part == special("tid.z", part->bits))
        return Expr::constant(0, part->bits);
      return std::nullopt;
    });
  }
  if (!names(out, "tid.x") && !names(out, "tid.y") && !names(out, "tid.z")) return out;
  out = with_thread(out, dimensions);
  // In two dimensions the third may still tell threads apart, unless it has the extent 1.
  const bool all_dimensions = one_row || dimensions == 3 || block_[2] == 1U;
  const bool is_pure = !names(out, "tid.x") && !names(out, "tid.y") && !names(out, "tid.z");
  return all_dimensions && is_pure ? out : unknown;
}

// Tells whether a leaf of the parent's expression is one value for all launches of the block by this site.
// The thread's own place is treated elsewhere.
bool LaunchTerms::is_same_for_block(const ExprNode& leaf) const {
  switch (leaf.kind) {
    case ExprKind::Constant:
    case ExprKind::Parameter:
    case ExprKind::Address:
      return true;
    case ExprKind::Special:
      return leaf.name != "laneid";
    case ExprKind::Opaque:
    case ExprKind::Merged: {
      const auto instruction = static_cast<uint32_t>(leaf.value);
      if (instruction >= parent_.flow.instructions().size()) return false;
      if (parent_.flow.in_loop(instruction) || parent_.flow.in_loop(parent_.flow.index_of(site_.get_call)))
        return false;
      const Uniformity& uniformity = parent_.values().uniformity;
      const Uniform is = leaf.kind == ExprKind::Opaque ? uniformity.written(instruction)
                                                       : uniformity.operand(instruction, leaf.name);
      return is == Uniform::Grid || is == Uniform::Block;
    }
    default:
      return false;
  }
}

}  // namespace klap::analysis
