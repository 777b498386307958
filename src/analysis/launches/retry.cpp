#include "analysis/launches/retry.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/launches/sites.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// True if the register can hold what a launch or a last-error query returned.
bool is_error(const OriginQuery& q, std::string_view operand) {
  const std::vector<Origin> origins = origins_of(q, operand);
  return std::any_of(origins.begin(), origins.end(), [&](const Origin& o) {
    if (o.kind != OriginKind::CallResult) return false;
    const std::string_view function = runtime_function(q.module, o.name);
    return idioms().by_launch(function) != nullptr || idioms().is_last_error(function) ||
           idioms().is_peek_last_error(function);
  });
}

bool compares_with_limit(const OriginQuery& q, const Statement& s) {
  if (!q.module.is(s.head, "setp") || s.operands.size() != 3) return false;
  for (const auto& [value, limit] : {std::pair(1, 2), std::pair(2, 1)}) {
    const std::string_view number = q.module.text(s.operands[static_cast<size_t>(limit)]);
    const std::string_view error = q.module.text(s.operands[static_cast<size_t>(value)]);
    if (q.data.constant(number) == kPendingCountExceeded && is_error(q, error)) return true;
  }
  return false;
}

template <class Is>
std::string place_in_loop_with(const OriginQuery& q, const Statement* call, Is is) {
  if (call == nullptr) return {};
  const uint32_t at = q.flow.index_of(call);
  const auto& instructions = q.flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    if (!q.flow.can_follow(at, i) || !q.flow.can_follow(i, at)) continue;
    if (is(q, *instructions[i].statement)) return q.module.place(instructions[i].statement->head);
  }
  return {};
}

}  // namespace

std::string retry_place(const OriginQuery& q, const Site& site) {
  return place_in_loop_with(q, site.get_call, compares_with_limit);
}

std::string print_retry(const std::string& place) {
  return place.empty() ? "" : fmt::format("a retry loop on the pending limit ({})", place);
}

}  // namespace klap::analysis
