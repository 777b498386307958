#include "analysis/legality/annotations.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace klap::analysis {
namespace {

constexpr std::string_view kOfKernel = "__klap_kernel$";
constexpr std::string_view kOfLaunch = "__klap_launch$";
constexpr std::string_view kBoundary = "__klap_overlap$boundary";

struct Found {
  Annotation annotation;
  bool of_launch = false;
  uint32_t token = 0;
};

// `.reg .pred __klap_launch$KEY$VALUE;`, the value possibly missing or empty.
std::optional<Found> parse(const ptx::Module& m, const ptx::Statement& s) {
  if (s.kind != ptx::StatementKind::Directive || !m.is(s.head, ".reg")) return std::nullopt;
  for (uint32_t t = s.head + 1; t < s.tokens.last; ++t) {
    const std::string_view name = m.text(t);
    const bool of_launch = name.starts_with(kOfLaunch);
    if (!of_launch && !name.starts_with(kOfKernel)) continue;
    const std::string_view rest = name.substr(kOfKernel.size());
    const size_t end = std::min(rest.find('$'), rest.size());
    const std::string_view value = end == rest.size() ? "" : rest.substr(end + 1);
    return Found{{std::string(rest.substr(0, end)), std::string(value), m.position(t)}, of_launch, t};
  }
  return std::nullopt;
}

void add(std::vector<Annotation>& list, const Annotation& annotation) {
  const auto same = [&](const Annotation& a) {
    return a.key == annotation.key && a.value == annotation.value;
  };
  if (std::ranges::none_of(list, same)) list.push_back(annotation);
}

// The launches that can come first after a place.
class NextLaunches {
 public:
  explicit NextLaunches(const FunctionFacts& facts) : flow_(facts.flow) {
    for (const Site& site : facts.sites) {
      const uint32_t at = site.get_call == nullptr ? ControlFlow::npos : flow_.index_of(site.get_call);
      if (at != ControlFlow::npos) launches_[at] = &site;
    }
  }

  std::vector<const Site*> after(uint32_t token) {
    found_.clear();
    seen_.clear();
    const auto& instructions = flow_.instructions();
    const auto next = std::ranges::find_if(
        instructions, [&](const FlatInstruction& i) { return i.statement->tokens.first > token; });
    if (next == instructions.end()) return {};
    const BasicBlock& here = flow_.blocks()[next->block];
    if (launch_in(static_cast<uint32_t>(next - instructions.begin()), here.last)) return found_;
    std::vector<uint32_t> blocks = here.successors;
    while (!blocks.empty()) {
      const uint32_t block = blocks.back();
      blocks.pop_back();
      if (!seen_.insert(block).second) continue;
      const BasicBlock& b = flow_.blocks()[block];
      if (!launch_in(b.first, b.last)) blocks.insert(blocks.end(), b.successors.begin(), b.successors.end());
    }
    return found_;
  }

 private:
  // The first launch among those instructions, which ends the search.
  bool launch_in(uint32_t first, uint32_t last) {
    const auto at = launches_.lower_bound(first);
    if (at == launches_.end() || at->first >= last) return false;
    if (std::ranges::find(found_, at->second) == found_.end()) found_.push_back(at->second);
    return true;
  }

  const ControlFlow& flow_;
  std::map<uint32_t, const Site*> launches_;  // by instruction
  std::set<uint32_t> seen_;                   // blocks
  std::vector<const Site*> found_;
};

}  // namespace

const std::vector<Annotation>& Annotations::of(const Site& site) const {
  static const std::vector<Annotation> none;
  const auto found = sites.find(&site);
  return found == sites.end() ? none : found->second;
}

namespace {

// The instruction behind a token, in front of which no label stands; else the one before the token.
std::optional<uint32_t> instruction_at(const FunctionFacts& facts, uint32_t token) {
  const auto& instructions = facts.flow.instructions();
  const auto next = std::ranges::find_if(
      instructions, [&](const FlatInstruction& i) { return i.statement->tokens.first > token; });
  if (next == instructions.end()) return std::nullopt;
  const auto index = static_cast<uint32_t>(next - instructions.begin());
  bool labelled = false;
  ptx::for_each_statement(facts.function.body, [&](const ptx::Statement& s) {
    labelled = labelled || (s.kind == ptx::StatementKind::Label && s.tokens.first > token &&
                            s.tokens.first < next->statement->tokens.first);
  });
  if (!labelled) return index;
  return index == 0 ? std::nullopt : std::optional(index - 1);
}

}  // namespace

std::vector<BoundaryMark> boundary_marks(const FunctionFacts& facts) {
  std::vector<BoundaryMark> out;
  const ptx::Module& m = facts.module;
  ptx::for_each_statement(facts.function.body, [&](const ptx::Statement& s) {
    if (s.kind != ptx::StatementKind::Directive || !m.is(s.head, ".reg")) return;
    for (uint32_t t = s.head + 1; t < s.tokens.last; ++t) {
      if (!m.is(t, kBoundary)) continue;
      if (const auto at = instruction_at(facts, t)) out.push_back({*at, m.position(t)});
    }
  });
  return out;
}

Annotations find_annotations(const FunctionFacts& facts) {
  Annotations out;
  const ptx::Module& m = facts.module;
  const std::string_view text = m.text(facts.function.body.tokens);
  if (text.find(kOfKernel) == std::string_view::npos && text.find(kOfLaunch) == std::string_view::npos)
    return out;
  NextLaunches next(facts);
  ptx::for_each_statement(facts.function.body, [&](const ptx::Statement& s) {
    const auto found = parse(m, s);
    if (!found) return;
    if (!found->of_launch) {
      add(out.kernel, found->annotation);
      return;
    }
    const auto launches = next.after(found->token);
    for (const Site* site : launches) add(out.sites[site], found->annotation);
    if (launches.empty()) add(out.stray, found->annotation);
  });
  return out;
}

}  // namespace klap::analysis
