#include "analysis/optimise/accumulators.h"

#include <algorithm>
#include <array>
#include <set>

#include "analysis/graph/dataflow.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::ranges::find(all, text) != all.end();
}

// The operation of an instruction that accumulates, with the operands that may be the sum so far.
struct Form {
  std::string operation;
  std::vector<size_t> operands;
};

std::optional<Form> form_of(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  const std::string_view type = s.modifiers.empty() ? "" : m.text(s.modifiers.last - 1);
  const bool is_product = opcode == "fma" || opcode == "mad";
  if (s.operands.size() != (is_product ? 4U : 3U)) return std::nullopt;
  bool is_wide = false, has_part = false;
  for (uint32_t t = s.modifiers.first; t + 1 < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    is_wide = is_wide || modifier == ".wide";
    has_part = has_part || modifier == ".lo";
    const bool is_known = opcode == "mad" ? is_one_of(modifier, {".lo", ".wide"})
                                          : is_one_of(modifier, {".rn", ".ftz"}) && type.starts_with(".f");
    if (!is_known) return std::nullopt;
  }
  if (opcode == "fma")
    return type.starts_with(".f") ? std::optional(Form{commuting_operation("add", type), {3}}) : std::nullopt;
  if (opcode == "mad") {
    if (is_wide && is_one_of(type, {".s32", ".u32"})) return Form{"add.i64", {3}};
    if (!has_part || type.starts_with(".f")) return std::nullopt;
    return Form{commuting_operation("add", type), {3}};
  }
  return Form{commuting_operation(opcode, type), {1, 2}};
}

}  // namespace

std::string commuting_operation(std::string_view name, std::string_view type) {
  const std::string of_type = std::string(name) + std::string(type);
  if (name == "add") {
    if (is_one_of(type, {".f32", ".f64"})) return of_type;
    if (is_one_of(type, {".u32", ".s32"})) return "add.i32";
    return is_one_of(type, {".u64", ".s64"}) ? "add.i64" : "";
  }
  // Extrema of floating-point numbers, too: a NaN takes no part in them, and -0 is less than +0.
  if (is_one_of(name, {"min", "max"}))
    return is_one_of(type, {".u32", ".s32", ".u64", ".s64", ".f32", ".f64"}) ? of_type : "";
  return is_one_of(name, {"and", "or", "xor"}) && is_one_of(type, {".b32", ".b64"}) ? of_type : "";
}

bool is_idempotent(std::string_view operation) {
  return !operation.starts_with("add") && !operation.starts_with("xor");
}

bool is_rounded(std::string_view operation) { return is_one_of(operation, {"add.f32", "add.f64"}); }

std::optional<Accumulation> accumulation_to(const Values& v, uint32_t i, uint32_t reg) {
  const Module& m = v.flow.module();
  const Statement& s = *v.flow.instructions()[i].statement;
  const auto form = form_of(m, s);
  if (!form || form->operation.empty()) return std::nullopt;
  std::optional<size_t> found;
  for (size_t k = 1; k < s.operands.size(); ++k) {
    const std::vector<std::string> words = components(m, s.operands[k]);
    if (words.size() != 1 || v.registers.find(i, words[0]) != reg) continue;
    if (found || std::ranges::find(form->operands, k) == form->operands.end()) return std::nullopt;
    found = k;
  }
  return found ? std::optional(Accumulation{form->operation, *found}) : std::nullopt;
}

std::optional<Accumulator> find_accumulator(const Values& v, const Loop& loop, uint32_t reg) {
  if (loop.blocks.size() != 1) return std::nullopt;
  const BasicBlock& body = v.flow.blocks()[loop.blocks[0]];
  Accumulator out{reg, "", {}};
  uint32_t holder = reg;
  std::set<uint32_t> outdated;  // registers with a sum that has gone on
  for (uint32_t i = body.first; i < body.last; ++i) {
    std::optional<uint32_t> written;
    bool reads = false, overwrites = false, kills = false;
    for (const Access& access : v.registers.accesses(i)) {
      if (access.read && outdated.contains(access.reg)) return std::nullopt;
      reads = reads || (access.read && access.reg == holder);
      if (!access.written) continue;
      overwrites = overwrites || access.reg == holder || access.reg == reg;
      kills = kills || access.kills;
      written = access.reg;
    }
    if (!reads) {
      if (overwrites) return std::nullopt;
      if (written && kills) outdated.erase(*written);
      continue;
    }
    const auto step = accumulation_to(v, i, holder);
    // An iteration that adds nothing leaves the sum in its register.
    if (!step || !written || (!kills && *written != holder)) return std::nullopt;
    if (!out.operation.empty() && out.operation != step->operation) return std::nullopt;
    out.operation = step->operation;
    out.steps.push_back({i, step->operand});
    if (*written != holder) outdated.insert(holder);
    holder = *written;
    outdated.erase(holder);
  }
  return holder == reg && !out.steps.empty() ? std::optional(out) : std::nullopt;
}

}  // namespace klap::analysis
