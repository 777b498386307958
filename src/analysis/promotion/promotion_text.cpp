// This file writes the text that klap-ptx prints of a chain.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/facts/facts.h"
#include "analysis/promotion/promotion.h"

namespace klap::analysis {
namespace {

std::string signed_text(uint64_t value, uint32_t bytes) {
  const uint32_t unused = 64 - 8 * bytes;
  return std::to_string(static_cast<int64_t>(value << unused) >> unused);
}

std::string how(const ChainArgument& a) {
  switch (a.kind) {
    case LinkArgument::Unchanged:
      return "unchanged";
    case LinkArgument::Stepped:
      return fmt::format("{} by {}", a.multiplies ? "multiplied" : "stepped", signed_text(a.step, a.bytes));
    case LinkArgument::Available:
      return "available, " + a.source;
    case LinkArgument::Postponed:
      break;
  }
  if (!a.carried) return "postponed, " + a.source;
  return fmt::format("postponed, carried by {} of {}", a.carried->operation,
                     fmt::join(a.carried->values, ", "));
}

std::string tests_text(const ChainFacts& chain) {
  std::string out;
  for (const ChainTest& test : chain.tests)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", test.negated ? "not " : "", test.predicate);
  return out;
}

// "%r1 falls by 1 (u32)".
std::string counter_text(const ChainCounter& c) {
  return fmt::format("{}{} {} by {} ({}{})", c.value, c.minus.empty() ? "" : " - " + c.minus,
                     c.falls ? "falls" : "rises", c.step, c.is_signed ? 's' : 'u', c.bits);
}

std::string condition_text(const ChainFacts& chain) {
  const char* kind = chain.condition == LinkCondition::Counted     ? "counted"
                     : chain.condition == LinkCondition::Available ? "available"
                                                                   : "at the launch";
  std::string out = fmt::format("  condition: {}: {}\n", kind, chain.condition_text);
  if (!chain.tests.empty())
    out += fmt::format("  tests: {}; {} instructions\n", tests_text(chain), chain.test_slice.size());
  for (const ChainCounter& c : chain.counters) out += fmt::format("  counter: {}\n", counter_text(c));
  return out;
}

std::string overlap_text(const ptx::Module& m, const ChainFacts& chain) {
  if (chain.boundary == nullptr) return fmt::format("  overlap: none: {}\n", chain.boundary_text);
  std::string out = fmt::format("  overlap: up to {}{}: {}\n", m.place(chain.boundary->head),
                                chain.boundary_is_annotated ? ", as annotated" : "", chain.boundary_text);
  for (const ptx::Statement* s : chain.moved)
    out += fmt::format("  moved: {} ({})\n", m.compact(s->tokens), m.place(s->head));
  return out;
}

}  // namespace

std::string print_promotion(const FunctionFacts& kernel) {
  if (kernel.sites.empty()) return "";
  const ChainVerdict verdict = judge_promotion(kernel, false);
  if (verdict.facts == nullptr)
    return fmt::format("left ({}): {}\n", to_string(verdict.rejection->reason), verdict.rejection->detail);
  const ChainFacts& chain = *verdict.facts;
  std::string out = fmt::format("a chain of blocks of {}x{}x{}, {} bytes of shared memory\n", chain.block[0],
                                chain.block[1], chain.block[2], chain.shared_bytes);
  for (const ChainArgument& a : chain.arguments)
    out += fmt::format("  offset {}, {} bytes: {}\n", a.offset, a.bytes, how(a));
  out += condition_text(chain) + overlap_text(kernel.module, chain);
  return out +
         (chain.looks_back ? "  look-back\n" : fmt::format("  no look-back: {}\n", chain.look_back_text));
}

}  // namespace klap::analysis
