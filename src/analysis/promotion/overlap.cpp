#include "analysis/promotion/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/facts/pure_code.h"
#include "analysis/legality/annotations.h"
#include "analysis/promotion/promotion_arguments.h"
#include "analysis/synchronisation/barriers.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

bool is_launch_call(const Site& site, const Statement& s) {
  return &s == site.get_call || &s == site.launch_call;
}

bool has(const std::vector<EffectKind>& effects, std::initializer_list<EffectKind> kinds) {
  return std::ranges::any_of(effects,
                             [&](EffectKind kind) { return std::ranges::find(kinds, kind) != kinds.end(); });
}

bool is_warp_barrier(const ptx::Module& m, const Statement& s) {
  return (m.is(s.head, "bar") || m.is(s.head, "barrier")) && m.has_modifier(s, ".warp");
}

// True for an instruction that makes earlier writes visible to threads that look for them.
bool publishes(const ptx::Module& m, const Statement& s) {
  using enum EffectKind;
  return m.is(s.head, "call") ||
         has(instruction_effects(m, s), {Fence, Atomic, Reduction, StrongStore, BarrierObject});
}

// True for an instruction by which a thread sees what others have published.
bool looks(const ptx::Module& m, const Statement& s) {
  using enum EffectKind;
  return m.is(s.head, "call") || has(instruction_effects(m, s), {StrongLoad, Atomic, BarrierObject});
}

// Tells which writes may come before the launch in the order that a later link sees.
class BeforeLaunch {
 public:
  BeforeLaunch(const FunctionFacts& kernel, const Site& site)
      : k_(kernel),
        launch_(kernel.flow.index_of(site.launch_call)),
        barriers_(find_barriers(kernel, kernel.calls())) {
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Statement& s = *k_.flow.instructions()[i].statement;
      if (is_launch_call(site, s)) continue;
      const bool meets = is_warp_barrier(k_.module, s);
      if (meets) warp_barriers_.push_back(i);
      if (publishes(k_.module, s)) publishing_.push_back(i);
      if (!meets && !looks(k_.module, s)) continue;
      if (!k_.flow.can_follow(i, launch_)) continue;
      (meets ? warp_barrier_before_ : looks_before_) = true;
    }
  }

  [[nodiscard]] bool may_have(uint32_t write) const {
    if (k_.flow.has_unknown_branch() || k_.flow.can_follow(write, launch_)) return true;
    if (warp_barrier_before_ && leads_to(write, warp_barriers_)) return true;
    if (looks_before_ && leads_to(write, publishing_)) return true;
    const bool meets = std::ranges::any_of(
        barriers_, [&](const BarrierUse& use) { return k_.flow.can_follow(write, use.instruction); });
    return meets && barrier_between(k_, write, launch_).answer != Answer::No;
  }

 private:
  [[nodiscard]] bool leads_to(uint32_t from, const std::vector<uint32_t>& instructions) const {
    return std::ranges::any_of(instructions,
                               [&](uint32_t i) { return i == from || k_.flow.can_follow(from, i); });
  }

  const FunctionFacts& k_;
  const uint32_t launch_;
  const std::vector<BarrierUse> barriers_;
  std::vector<uint32_t> warp_barriers_, publishing_;
  bool warp_barrier_before_ = false, looks_before_ = false;
};

// A place in front of an instruction, among those that a boundary may have.
struct Point {
  uint32_t instruction = 0;
};

class Finder {
 public:
  Finder(const FunctionFacts& kernel, const Site& site, const std::vector<ChainArgument>& arguments,
         bool noalias)
      : k_(kernel),
        m_(kernel.module),
        v_(kernel.values()),
        site_(site),
        arguments_(arguments),
        code_(kernel),
        memory_(kernel) {
    find_points();
    if (!points_.empty()) find_writes();
    noalias_ = noalias;
  }

  Overlap run() {
    Overlap out;
    if (points_.empty()) {
      out.text = "no place before the launch is passed by all threads of the block";
      return out;
    }
    // A rejection to a place holds for all later places.
    const auto first_illegal = std::ranges::partition_point(
        points_, [&](const Point& point) { return judge(point).problem.empty(); });
    if (first_illegal == points_.end()) {
      const Statement& last = at(points_.back().instruction);
      out.text =
          fmt::format("threads go different ways from {} ({})", m_.full_opcode(last), m_.place(last.head));
    } else {
      out.text = judge(*first_illegal).problem;
    }
    const auto legal = static_cast<size_t>(first_illegal - points_.begin());
    const std::optional<size_t> chosen = annotated(legal, out);
    if (!chosen && legal == 0) return out;
    const size_t point = chosen.value_or(legal - 1);
    out.annotated = chosen.has_value();
    take(points_[point], out);
    return out;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] std::string text(uint32_t i) const {
    return fmt::format("{} ({})", m_.full_opcode(at(i)), m_.place(at(i).head));
  }

  // ---- places ----

  void find_points() {
    if (!v_.dominance.known() || k_.flow.blocks().empty()) return;
    const uint32_t launch = k_.flow.instructions()[k_.flow.index_of(site_.get_call)].block;
    std::vector<uint32_t> blocks;
    for (uint32_t b = launch; b != Dominance::kNone; b = v_.dominance.immediate_dominator(b)) {
      if (v_.dominance.post_dominates(b, 0) && !k_.flow.in_cycle(b)) blocks.push_back(b);
    }
    std::ranges::reverse(blocks);
    for (const uint32_t b : blocks) {
      for (uint32_t i = k_.flow.blocks()[b].first; i < k_.flow.blocks()[b].last; ++i) {
        if (is_launch_call(site_, at(i))) return;
        if (k_.flow.instructions()[i].scope == &k_.function.body) points_.push_back({i});
      }
    }
  }

  // Instructions that can run before the place, in text order.
  [[nodiscard]] std::vector<uint32_t> before(const Point& point) const {
    const auto& blocks = k_.flow.blocks();
    const uint32_t own = k_.flow.instructions()[point.instruction].block;
    std::vector<bool> reaches(blocks.size());
    std::vector<uint32_t> work = {own};
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      for (const uint32_t from : blocks[b].predecessors) {
        if (reaches[from] || !blocks[from].reachable) continue;
        reaches[from] = true;
        work.push_back(from);
      }
    }
    std::vector<uint32_t> out;
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      const uint32_t last = b == own ? point.instruction : blocks[b].last;
      for (uint32_t i = blocks[b].first; (reaches[b] || b == own) && i < last; ++i) out.push_back(i);
    }
    return out;
  }

  // ---- rejections to a place ----

  struct Judgement {
    std::string problem;
    std::vector<uint32_t> moved;  // ascending
  };

  [[nodiscard]] Judgement judge(const Point& point) const {
    const std::vector<uint32_t> region = before(point);
    Judgement out;
    std::set<uint32_t> tainted;  // registers
    std::set<uint32_t> moved;
    for (bool more = true; more;) {
      more = false;
      for (const uint32_t i : region) {
        if (moved.contains(i) || !needs_launch(i, tainted) || !can_move(i, tainted)) continue;
        moved.insert(i);
        more = true;
        for (const Access& access : v_.registers.accesses(i)) {
          if (access.written) tainted.insert(access.reg);
        }
      }
    }
    for (const uint32_t i : region) {
      if (moved.contains(i)) continue;
      out.problem = needs_launch(i, tainted)
                        ? text(i) + " needs an argument that is not known before the launch"
                        : rejection(i);
      if (!out.problem.empty()) return out;
    }
    out.moved.assign(moved.begin(), moved.end());
    return out;
  }

  [[nodiscard]] bool needs_launch(uint32_t i, const std::set<uint32_t>& tainted) const {
    for (const ByteRange& bytes : code_.parameter_bytes(i)) {
      if (touches(arguments_, bytes, LinkArgument::Postponed)) return true;
    }
    return std::ranges::any_of(v_.registers.accesses(i), [&](const Access& access) {
      return access.read && tainted.contains(access.reg);
    });
  }

  // True if the registers that it reads have the same value at the boundary. Each is written once, and before
  // the instruction if its writer is moved itself.
  [[nodiscard]] bool can_move(uint32_t i, const std::set<uint32_t>& tainted) const {
    if (!code_.is_movable(i) || k_.flow.in_loop(i)) return false;
    return std::ranges::all_of(v_.registers.accesses(i), [&](const Access& access) {
      if (!access.read) return true;
      const VirtualRegister& reg = v_.registers[access.reg];
      const auto& writers = k_.data.definitions(reg.name);
      if (k_.data.is_ambiguous(reg.name) || writers.size() != 1 || reg.scope != &k_.function.body)
        return false;
      return !tainted.contains(access.reg) || writers[0] < i;
    });
  }

  // The reason why the instruction must not run early; empty if it may.
  [[nodiscard]] std::string rejection(uint32_t i) const {
    using enum EffectKind;
    const Statement& s = at(i);
    if (m_.is(s.head, "call")) return text(i) + " may do what others can see";
    const auto& uses = memory_.uses_of(s);
    const bool own = std::ranges::all_of(uses, [](const auto& use) { return is_of_block(use.first); });
    const std::vector<EffectKind> effects = instruction_effects(m_, s);
    if (has(effects, {Fence, Sleep, Texture, AsyncCopy, BarrierObject, ClusterBarrier, ClusterAccess,
                      GridDependency, StackAllocation, UnlistedInstruction}))
      return text(i) + " must not come early";
    if (!own && has(effects, {StrongLoad, StrongStore, Atomic, Reduction}))
      return text(i) + " depends on when it runs";
    if (const std::string name = moment(s); !name.empty())
      return fmt::format("{} is read ({}), which depends on the moment", name, m_.place(s.head));
    for (const auto& [root, use] : uses) {
      if (is_of_block(root)) continue;
      if (use.changes()) return text(i) + " writes memory that others can see";
      if (const auto write = noalias_ ? std::nullopt : conflict(root))
        return fmt::format("{} may read what {} writes before the launch", text(i), text(*write));
    }
    return "";
  }

  // A special register that tells one moment from another.
  [[nodiscard]] std::string moment(const Statement& s) const {
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const std::string_view name = m_.text(t);
      if (!name.starts_with('%') || k_.data.names().is_register(name)) continue;
      const EffectKind kind = register_effect(name);
      if (kind == EffectKind::ClockRegister || kind == EffectKind::OtherRegister) return std::string(name);
    }
    return "";
  }

  // ---- writes before the launch ----

  struct Write {
    uint32_t instruction;
    MemoryRoot root;
  };

  void find_writes() {
    const BeforeLaunch before_launch(k_, site_);
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      std::vector<Write> own;
      for (const auto& [root, use] : memory_.uses_of(at(i))) {
        if (use.changes() && !is_of_block(root)) own.push_back({i, root});
      }
      if (!own.empty() && before_launch.may_have(i)) writes_.insert(writes_.end(), own.begin(), own.end());
    }
  }

  [[nodiscard]] std::optional<uint32_t> conflict(const MemoryRoot& read) const {
    if (read.space == "const") return std::nullopt;
    const auto found =
        std::ranges::find_if(writes_, [&](const Write& write) { return may_overlap(read, write.root); });
    return found == writes_.end() ? std::nullopt : std::optional(found->instruction);
  }

  // ---- the result ----

  // The place that the program names, if it can be kept.
  std::optional<size_t> annotated(size_t legal, Overlap& out) {
    const std::vector<BoundaryMark> marks = boundary_marks(k_);
    if (marks.empty()) return std::nullopt;
    const std::string where = ptx::place(marks[0].position);
    const auto found = std::ranges::find(points_, marks[0].instruction, &Point::instruction);
    std::string problem;
    if (marks.size() > 1) {
      problem = "there is another one";
    } else if (found == points_.end()) {
      problem = "not all threads of the block pass it once and before the launch";
    } else if (found - points_.begin() >= static_cast<std::ptrdiff_t>(legal)) {
      const bool noalias = std::exchange(noalias_, true);
      problem = judge(*found).problem;
      noalias_ = noalias;
    }
    if (problem.empty()) {
      out.text = fmt::format("KLAP_OVERLAP_BOUNDARY ({})", where);
      return static_cast<size_t>(found - points_.begin());
    }
    out.text += fmt::format("; KLAP_OVERLAP_BOUNDARY ({}) is ignored: {}", where, problem);
    return std::nullopt;
  }

  void take(const Point& point, Overlap& out) {
    const bool noalias = std::exchange(noalias_, noalias_ || out.annotated);
    const Judgement judgement = judge(point);
    noalias_ = noalias;
    const std::vector<uint32_t> region = before(point);
    if (std::ranges::none_of(region, [&](uint32_t i) { return takes_time(i); })) {
      out.text = "nothing that takes time stands in front; " + out.text;
      out.annotated = false;
      return;
    }
    out.boundary = &at(point.instruction);
    for (const uint32_t i : judgement.moved) out.moved.push_back(&at(i));
  }

  // True for an instruction worth running early: all but those few that need no memory.
  [[nodiscard]] bool takes_time(uint32_t i) const {
    using enum EffectKind;
    return k_.flow.in_loop(i) || !memory_.uses_of(at(i)).empty() ||
           has(instruction_effects(m_, at(i)), {BlockBarrier, PartialBarrier, WarpSync});
  }

  const FunctionFacts& k_;
  const ptx::Module& m_;
  const Values& v_;
  const Site& site_;
  const std::vector<ChainArgument>& arguments_;
  const PureCode code_;
  const MemoryEffects memory_;
  bool noalias_ = false;
  std::vector<Point> points_;  // in the order in which they run
  std::vector<Write> writes_;
};

}  // namespace

bool is_of_block(const MemoryRoot& root) {
  return root.kind == MemoryRoot::Kind::Local || root.kind == MemoryRoot::Kind::LaunchBuffer ||
         root.space == "shared" || root.space == "local";
}

Overlap find_overlap(const FunctionFacts& kernel, const Site& site,
                     const std::vector<ChainArgument>& arguments, bool assume_noalias) {
  return Finder(kernel, site, arguments, assume_noalias).run();
}

}  // namespace klap::analysis
