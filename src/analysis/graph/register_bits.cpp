#include "analysis/graph/register_bits.h"

#include <optional>

#include "analysis/graph/operands.h"
#include "ptx/dialect.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

RegisterBits::RegisterBits(const Module& m, const Function& function) {
  ptx::for_each_statement(function.body, [&](const Statement& s) {
    if (s.kind != StatementKind::Directive || !m.is(s.head, ".reg")) return;
    const uint32_t type = s.head + 1;
    const uint32_t bits = 8 * ptx::type_bytes(m.text(type));
    const uint32_t known = bits >= 16 && bits <= 64 ? bits : 0;
    for_each_declared_register(m, s, [&](uint32_t token, uint32_t count) {
      uint32_t& entry = count == 0 ? names_.try_emplace(m.text(token), known).first->second
                                   : ranges_[m.text(token)].try_emplace(count, known).first->second;
      if (entry != known) entry = 0;
    });
  });
}

uint32_t RegisterBits::of(std::string_view name) const {
  std::optional<uint32_t> bits;
  const auto add = [&](uint32_t found) { bits = bits.value_or(found) == found ? found : 0; };
  if (const auto plain = names_.find(name); plain != names_.end()) add(plain->second);
  for (size_t split = name.size(); split > 1 && name[split - 1] >= '0' && name[split - 1] <= '9';) {
    const auto range = ranges_.find(name.substr(0, --split));
    if (range == ranges_.end()) continue;
    for (const auto& [count, of] : range->second) {
      if (ptx::in_range(name, range->first, count)) add(of);
    }
  }
  return bits.value_or(0);
}

}  // namespace klap::analysis
