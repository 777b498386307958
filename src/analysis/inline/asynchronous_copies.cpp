#include "analysis/inline/asynchronous_copies.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/effects/effects.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

constexpr std::array<std::string_view, 3> kWaits{".commit_group", ".wait_group", ".wait_all"};
// Which caches the copy goes through says nothing about its values.
constexpr std::array<std::string_view, 8> kOfCopies{".ca",     ".cg",      ".shared",   ".shared::cta",
                                                    ".global", ".L2::64B", ".L2::128B", ".L2::256B"};

template <size_t n>
bool is_any(std::string_view modifier, const std::array<std::string_view, n>& known) {
  return std::ranges::find(known, modifier) != known.end();
}

// True if a scope of the function declares a predicate of that name. Another register may have the name in
// another scope; then it is not known which one is meant.
bool may_be_predicate(const Module& m, const Function& f, std::string_view name) {
  bool found = false;
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (s.kind != StatementKind::Directive || !m.is(s.head, ".reg")) return;
    bool of_predicates = false;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const std::string_view text = m.text(t);
      of_predicates = of_predicates || text == ".pred";
      const bool is_range = t + 2 < s.tokens.last && m.is(t + 1, "<");
      const uint64_t count = is_range ? ptx::integer_value(m.text(t + 2)).value_or(0) : 0;
      if (of_predicates && (text == name || (is_range && ptx::in_range(name, text, count)))) found = true;
    }
  });
  return found;
}

class Reader {
 public:
  Reader(const Module& module, const Function& function) : m_(module), f_(function) {}

  // Nothing if one of the function's copies is of another kind.
  [[nodiscard]] std::optional<std::vector<AsynchronousCopy>> read() const {
    std::vector<AsynchronousCopy> copies;
    bool all_known = true;
    ptx::for_each_statement(f_.body, [&](const Statement& s) {
      if (s.kind != StatementKind::Instruction || !m_.is(s.head, "cp")) return;
      std::optional<AsynchronousCopy> copy = is_wait(s) ? AsynchronousCopy{&s, 0, {}, {}, {}} : copy_of(s);
      if (copy) copies.push_back(std::move(*copy));
      all_known = all_known && copy;
    });
    if (!all_known) return std::nullopt;
    return copies;
  }

 private:
  [[nodiscard]] bool is_wait(const Statement& s) const {
    return s.modifiers.size() == 2 && m_.is(s.modifiers.first, ".async") &&
           is_any(m_.text(s.modifiers.first + 1), kWaits);
  }

  [[nodiscard]] bool is_simple_copy(const Statement& s) const {
    if (s.modifiers.empty() || !m_.is(s.modifiers.first, ".async")) return false;
    for (uint32_t t = s.modifiers.first + 1; t < s.modifiers.last; ++t) {
      if (!is_any(m_.text(t), kOfCopies)) return false;
    }
    return s.operands.size() == 3 || s.operands.size() == 4;
  }

  [[nodiscard]] std::optional<AsynchronousCopy> copy_of(const Statement& s) const {
    if (!is_simple_copy(s)) return std::nullopt;
    const auto to = parse_address(m_, s.operands[0]), from = parse_address(m_, s.operands[1]);
    const auto bytes = ptx::integer_value(m_.compact(s.operands[2]));
    if (!to || !from || to->base.empty() || from->base.empty() || !bytes) return std::nullopt;
    if (*bytes != 4 && *bytes != 8 && *bytes != 16) return std::nullopt;
    AsynchronousCopy copy{&s, static_cast<uint32_t>(*bytes), *to, *from, m_.compact(s.operands[2])};
    if (s.operands.size() == 4 && !read_copied(s.operands[3], copy)) return std::nullopt;
    return copy;
  }

  // A predicate in that place says something else than a size.
  [[nodiscard]] bool read_copied(ptx::TokenRange operand, AsynchronousCopy& copy) const {
    copy.copied = m_.compact(operand);
    if (const auto size = ptx::integer_value(copy.copied)) return *size <= copy.bytes;
    return operand.size() == 1 && m_.tokens[operand.first].kind == ptx::TokenKind::Identifier &&
           !may_be_predicate(m_, f_, copy.copied);
  }

  const Module& m_;
  const Function& f_;
};

}  // namespace

std::vector<AsynchronousCopy> find_asynchronous_copies(const Module& module, const KernelNames& launched) {
  std::vector<AsynchronousCopy> found;
  std::set<const Function*> seen;
  for (const Function& kernel : module.functions) {
    if (!kernel.is_definition || !launched.contains(kernel.name)) continue;
    const CallGraph graph(module, kernel);
    for (const Function* function : graph.functions()) {
      if (!seen.insert(function).second) continue;
      if (auto copies = Reader(module, *function).read())
        std::ranges::move(*copies, std::back_inserter(found));
    }
  }
  return found;
}

}  // namespace klap::analysis
