#include "analysis/optimise/iteration_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/optimise/iteration_loop.h"

namespace klap::analysis {
namespace {

using Use = IterationSpan::Use;
using Found = std::optional<std::string>;

// A place of memory: base + least + iteration * step.
struct Place {
  std::string base;                 // all that is the same for all iterations, in words
  std::optional<uint32_t> pointer;  // the parameter among it that is a pointer,
  std::string shift;                // and what else there is
  bool wraps = false;               // the iteration is counted from an argument on, modulo 2^32
  int64_t least = 0;
  uint32_t step = 0;
};

std::optional<uint32_t> pointer_parameter(const Expr& e) {
  const bool converted = e->kind == ExprKind::FromGeneric || e->kind == ExprKind::ToGeneric;
  const ExprNode& n = converted ? *e->operands[0] : *e;
  if (n.kind != ExprKind::Parameter || n.bits != 64) return std::nullopt;
  return static_cast<uint32_t>(n.value);
}

bool is_the_same_for_all(const Expr& e) {
  return !any_leaf(e, [](const ExprNode& n) {
    return n.kind == ExprKind::Opaque || n.kind == ExprKind::Merged || n.kind == ExprKind::Special;
  });
}

// The iteration plus a value that is the same for all, in 32 bits and widened. No two iterations have the
// same value.
bool is_shifted_iteration(const Expr& e) {
  if (!is_widening(*e) || e->operands[0]->bits != 32) return false;
  size_t iterations = 0;
  for (const Term& term : terms_of(e->operands[0])) {
    const bool is_one = term.factors.size() == 1 && is_iteration(*term.factors[0]) && term.coefficient == 1;
    iterations += is_one ? 1 : 0;
    const bool is_known = is_one || std::ranges::all_of(term.factors, is_the_same_for_all);
    if (!is_known) return false;
  }
  return iterations == 1;
}

class PlaceReader {
 public:
  static std::optional<Place> read(const Expr& address) {
    constexpr int64_t kFar = 1 << 20;
    if (!address.known() || address->bits != 64) return std::nullopt;
    PlaceReader reader;
    for (const Term& term : terms_of(address)) {
      if (!reader.add(term)) return std::nullopt;
    }
    Place& place = reader.place_;
    if (place.least <= -kFar || place.least >= kFar) return std::nullopt;
    place.base = fmt::format("{} {}", place.pointer ? std::to_string(*place.pointer) : "", place.shift);
    return place;
  }

 private:
  bool add(const Term& term) {
    const auto coefficient = static_cast<int64_t>(term.coefficient);
    if (term.factors.empty()) {
      place_.least = coefficient;
      return true;
    }
    const bool one = term.factors.size() == 1;
    const bool is_plain = is_multiple_of(term, is_iteration);
    const bool is_shifted = !is_plain && one && is_shifted_iteration(term.factors[0]);
    if (is_plain || is_shifted) {
      constexpr int64_t kMostStep = 1 << 20;
      if (coefficient <= 0 || coefficient > kMostStep || place_.step != 0) return false;
      place_.step = static_cast<uint32_t>(coefficient);
      place_.wraps = is_shifted;
      if (is_shifted) place_.shift += " + " + to_string(term.factors[0]);
      return true;
    }
    if (!std::ranges::all_of(term.factors, is_the_same_for_all)) return false;
    const auto pointer = one && coefficient == 1 ? pointer_parameter(term.factors[0]) : std::nullopt;
    if (pointer && !place_.pointer) {
      place_.pointer = pointer;
      return true;
    }
    place_.shift += fmt::format(" + {}", coefficient);
    for (const Expr& factor : term.factors) place_.shift += " * " + to_string(factor);
    return true;
  }

  Place place_;
};

// Accesses from one base, which merge into one span for each step.
struct Group {
  Place place;
  uint32_t line = 0;
  std::vector<IterationSpan> spans;
  bool alike = true;  // all read, or all update
};

void add(Group& group, const IterationAccess& access, const Place& place) {
  const IterationSpan span{place.pointer.value_or(0), place.least, place.step, access.bytes, access.use};
  const Use first = group.spans.empty() ? access.use : group.spans.front().use;
  group.alike = group.alike && access.use != Use::Written && access.use == first;
  const auto before = std::ranges::find(group.spans, span.step, &IterationSpan::step);
  if (before == group.spans.end()) {
    group.spans.push_back(span);
    return;
  }
  const int64_t end = std::max(before->least + before->bytes, span.least + span.bytes);
  before->least = std::min(before->least, span.least);
  before->bytes = static_cast<uint32_t>(end - before->least);
  before->use = before->use == span.use ? span.use : Use::Written;
}

bool conflict(Use a, Use b) { return a == Use::Written || b == Use::Written || a != b; }

bool conflict(const Group& a, const Group& b) {
  return std::ranges::any_of(a.spans, [&](const IterationSpan& one) {
    return std::ranges::any_of(b.spans,
                               [&](const IterationSpan& other) { return conflict(one.use, other.use); });
  });
}

class OverlapJudge {
 public:
  OverlapJudge(const std::vector<IterationAccess>& accesses, size_t most_pointers)
      : accesses_(accesses), most_pointers_(most_pointers) {}

  IterationMemory run() {
    if (!any(Use::Written) && !any(Use::Updated)) return {};
    for (const auto check :
         {&OverlapJudge::check_operations, &OverlapJudge::check_places, &OverlapJudge::check_groups}) {
      if (const Found rejection = (this->*check)()) return {*rejection, {}};
    }
    return {"", std::move(spans_)};
  }

 private:
  [[nodiscard]] bool any(Use use) const {
    return std::ranges::find(accesses_, use, &IterationAccess::use) != accesses_.end();
  }

  Found check_operations() {
    const IterationAccess* first = nullptr;
    for (const IterationAccess& a : accesses_) {
      if (a.bytes == 0) return fmt::format("line {} has a type of unknown size", a.line);
      if (a.use != Use::Updated) continue;
      if (first != nullptr && first->operation != a.operation)
        return fmt::format("line {} updates by another operation than line {}", a.line, first->line);
      first = &a;
    }
    return std::nullopt;
  }

  Found check_places() {
    const bool updates_only = !any(Use::Read) && !any(Use::Written);
    for (const IterationAccess& a : accesses_) {
      const auto place = PlaceReader::read(a.address);
      if (!place && !updates_only) {
        return fmt::format("line {} {} at an address that does not advance by one step per iteration", a.line,
                           a.use == Use::Read ? "reads" : "writes");
      }
      if (!place) continue;
      const auto [group, is_new] = groups_.try_emplace(place->base, Group{*place, a.line, {}, true});
      add(group->second, a, *place);
    }
    return std::nullopt;
  }

  // Within one group iterations must be apart by their steps, unless no access of one matters to another.
  Found check_groups() {
    for (const auto& [base, group] : groups_) {
      const bool apart = group.spans.size() == 1 && group.spans[0].bytes <= group.spans[0].step;
      if (!group.alike && !apart)
        return fmt::format("line {} may access the same memory in different iterations", group.line);
      for (const auto& [other_base, other] : groups_) {
        if (base == other_base || !conflict(group, other)) continue;
        // The two pointers can be compared if both are stepped in the same way.
        const bool can_compare = group.place.pointer && other.place.pointer && !group.place.wraps &&
                                 !other.place.wraps && group.place.pointer != other.place.pointer &&
                                 group.place.shift == other.place.shift;
        if (!can_compare) {
          return fmt::format("lines {} and {} may access the same memory in different iterations",
                             std::min(group.line, other.line), std::max(group.line, other.line));
        }
      }
    }
    return collect();
  }

  Found collect() {
    std::vector<IterationSpan> all;
    for (const auto& [base, group] : groups_) all.insert(all.end(), group.spans.begin(), group.spans.end());
    std::ranges::copy_if(all, std::back_inserter(spans_), [&](const IterationSpan& span) {
      return std::ranges::any_of(all, [&](const IterationSpan& other) { return span.conflicts(other); });
    });
    std::ranges::stable_sort(spans_, {}, &IterationSpan::parameter);
    std::set<uint32_t> pointers;
    for (const IterationSpan& span : spans_) pointers.insert(span.parameter);
    if (pointers.size() <= most_pointers_) return std::nullopt;
    return fmt::format("more than {} pointers to compare", most_pointers_);
  }

  const std::vector<IterationAccess>& accesses_;
  size_t most_pointers_;
  std::map<std::string, Group> groups_;  // by base
  std::vector<IterationSpan> spans_;
};

}  // namespace

bool IterationSpan::conflicts(const IterationSpan& other) const {
  return parameter != other.parameter && conflict(use, other.use);
}

IterationMemory judge_memory(const std::vector<IterationAccess>& accesses, size_t most_pointers) {
  return OverlapJudge(accesses, most_pointers).run();
}

}  // namespace klap::analysis
