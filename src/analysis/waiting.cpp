#include "analysis/waiting.h"

#include <fmt/format.h>

#include <algorithm>

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

class Loops {
 public:
  Loops(const Module& module, const ControlFlow& flow, const DataFlow& data)
      : m_(module), flow_(flow), data_(data) {}

  std::optional<std::string> find() const {
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      if (!flow_.in_loop(i)) continue;
      const Statement& s = at(i);
      const std::string_view opcode = m_.text(s.head);
      const bool watches =
          is_strong_load(m_, s) || opcode == "membar" || opcode == "fence" || opcode == "nanosleep";
      if (watches || (opcode == "atom" && !is_retry(i) && decides_loop(i))) {
        return fmt::format("{} in a loop (line {})", m_.full_opcode(s), m_.line(s.head));
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }

  [[nodiscard]] bool same_loop(uint32_t a, uint32_t b) const {
    return flow_.can_follow(a, b) && flow_.can_follow(b, a);
  }

  // atom.cas whose expected value is computed anew in the loop.
  [[nodiscard]] bool is_retry(uint32_t atom) const {
    const Statement& s = at(atom);
    if (!m_.has_modifier(s, ".cas") || s.operands.size() < 4) return false;
    const std::string_view expected = m_.text(s.operands[2]);
    if (data_.constant(expected) || data_.is_ambiguous(expected)) return false;  // a lock, or may be one
    const auto& writers = data_.definitions(expected);
    return std::any_of(writers.begin(), writers.end(), [&](uint32_t w) { return same_loop(w, atom); });
  }

  // True if a branch that can leave the atomic's loop depends on its result.
  [[nodiscard]] bool decides_loop(uint32_t atom) const {
    const RegisterSet dependent =
        dependents(m_, flow_, data_.names(), [&](const Statement& s) { return &s == &at(atom); });
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      const Statement& s = at(i);
      if (!s.predicated || !same_loop(i, atom) || !dependent.contains(m_.text(s.predicate))) continue;
      const bool ends = m_.is(s.head, "ret") || m_.is(s.head, "exit");
      if (ends || leaves_loop(i, atom)) return true;
    }
    return false;
  }

  [[nodiscard]] bool leaves_loop(uint32_t branch, uint32_t atom) const {
    if (!m_.is(at(branch).head, "bra") && !m_.is(at(branch).head, "brx")) return false;
    const auto& successors = flow_.blocks()[flow_.instructions()[branch].block].successors;
    return std::any_of(successors.begin(), successors.end(), [&](uint32_t block) {
      const uint32_t first = flow_.blocks()[block].first;
      return first != atom && !flow_.can_follow(first, atom);
    });
  }

  const Module& m_;
  const ControlFlow& flow_;
  const DataFlow& data_;
};

}  // namespace

bool is_strong_load(const Module& m, const Statement& s) {
  return m.is(s.head, "ld") && (m.has_modifier(s, ".volatile") || m.has_modifier(s, ".relaxed") ||
                                m.has_modifier(s, ".acquire") || m.has_modifier(s, ".mmio"));
}

std::optional<std::string> may_wait(const Module& module, const ControlFlow& flow, const DataFlow& data) {
  return Loops(module, flow, data).find();
}

}  // namespace klap::analysis
