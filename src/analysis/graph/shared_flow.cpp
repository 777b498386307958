#include "analysis/graph/shared_flow.h"

#include <algorithm>
#include <set>

#include "analysis/suspension/suspension.h"

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

// Functions of CUDA's own libraries and of frames, which give nobody an address in shared memory.
bool is_of_toolkit(std::string_view function) {
  for (const std::string_view known :
       {"cuda", "__cuda", "malloc", "free", "vprintf", "__assertfail", kTakeFrame, kGiveFrame}) {
    if (function.starts_with(known)) return true;
  }
  return false;
}

// Looks through the code that a kernel may run for the names by which it can come to shared memory.
class SharedNames {
 public:
  explicit SharedNames(const Module& module) : m_(module) {
    for (const ptx::Variable& variable : m_.variables) {
      if (variable.space.starts_with(".shared")) variables_.insert(variable.name);
    }
  }

  // True if the function's code, or that of a function that it names, has such a name, or may have one.
  bool are_in(const ptx::Function& function) {
    if (!looked_at_.insert(&function).second) return false;
    if (!function.is_definition) return !is_of_toolkit(function.name);
    for (uint32_t t = function.body.tokens.first; t < function.body.tokens.last; ++t) {
      const std::string_view word = m_.text(t);
      // A call of an address may be one of any function.
      if (word.starts_with(".shared") || word == ".callprototype" || word == ".calltargets" ||
          variables_.contains(word))
        return true;
      if (m_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      const ptx::Function* named = m_.find_function(word);
      if (named != nullptr && named->kind != ptx::FunctionKind::Entry && are_in(*named)) return true;
    }
    return false;
  }

 private:
  const Module& m_;
  std::set<std::string_view> variables_;
  std::set<const ptx::Function*> looked_at_;
};

// True if a thread that runs the function may have shared memory, where the module has some. A function that
// is called has that of its callers.
bool may_have_shared(const Module& m, const ptx::Function& function) {
  const auto is_range = [](const ptx::Variable& v) { return v.space.starts_with(".shared") && v.range != 0; };
  if (function.kind == ptx::FunctionKind::Entry && std::ranges::none_of(m.variables, is_range))
    return SharedNames(m).are_in(function);
  for (uint32_t t = 0; t < m.tokens.size(); ++t) {
    if (m.text(t).starts_with(".shared")) return true;
  }
  return false;
}

}  // namespace

SharedFlow::SharedFlow(const Module& module, const ControlFlow& flow)
    : module_(module), flow_(flow), has_shared_(may_have_shared(module, flow.function())) {
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
