#include "analysis/graph/shared_flow.h"

#include <algorithm>

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

namespace {

bool accesses_memory(const Module& m, const Statement& s) {
  return m.is(s.head, "ld") || m.is(s.head, "st") || m.is(s.head, "atom") || m.is(s.head, "red");
}

// The name of a space other than shared memory.
bool names_another_space(std::string_view modifier) {
  return modifier == ".global" || modifier == ".local" || modifier == ".const" ||
         modifier.starts_with(".param");
}

}  // namespace

SharedFlow::SharedFlow(const Module& module, const ControlFlow& flow) : module_(module), flow_(flow) {
  for (uint32_t t = 0; t < module.tokens.size() && !has_shared_; ++t)
    has_shared_ = module.text(t).starts_with(".shared");
  if (!has_shared_) return;
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    if (!may_touch(s)) continue;
    if (!module.is(s.head, "ld")) stores_.push_back(i);
    if (module.is(s.head, "ld") || module.is(s.head, "atom")) loads_.push_back(i);
  }
}

bool SharedFlow::may_touch(const Statement& s) const {
  if (!has_shared_ || !accesses_memory(module_, s)) return false;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (names_another_space(module_.text(t))) return false;
  }
  return true;
}

std::vector<uint32_t> SharedFlow::loads_after(const std::vector<uint32_t>& sources) const {
  const bool stored = std::any_of(stores_.begin(), stores_.end(), [&](uint32_t store) {
    return std::any_of(sources.begin(), sources.end(),
                       [&](uint32_t source) { return source == store || flow_.can_follow(source, store); });
  });
  return stored ? loads_ : std::vector<uint32_t>{};
}

}  // namespace klap::analysis
