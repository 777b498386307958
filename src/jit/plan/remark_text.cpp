#include "jit/plan/remark_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "analysis/synchronisation/single_thread.h"
#include "jit/optimise/optimisations.h"
#include "jit/planned/child_facts.h"
#include "jit/strategy/strategy_of.h"
#include "ptx/argument_words.h"

namespace klap::jit {
namespace {

using analysis::Aggregation;
using analysis::Rejection;
using analysis::Site;
using analysis::StreamKind;

// "NULL stream"; all of them where the stream depends on a condition.
std::string stream_of_remark(const Site& site) {
  if (site.streams.size() != 1) return analysis::print(site.streams);
  switch (analysis::stream_kind(site)) {
    case StreamKind::Null:
      return "NULL stream";
    case StreamKind::PerThread:
      return "per-thread stream";
    case StreamKind::FireAndForget:
      return "fire-and-forget stream";
    case StreamKind::Private:
      return "private stream";
    case StreamKind::Tail:
      return "tail-launch stream";
    case StreamKind::Other:
      break;
  }
  return "other stream";
}

// "3 of 5 arguments grid-uniform". Empty if the child has no parameters.
std::string arguments_text(const PlannedSite& planned) {
  const size_t all = planned.child->parameters.size();
  if (all == 0) return "";
  const analysis::Uniform group = strategy_of(planned).aggregated_threads(planned);
  return fmt::format("{} of {} argument{} {}-uniform",
                     uniform_arguments(*planned.parent, *planned.site, *planned.child, group), all,
                     all == 1 ? "" : "s", to_string(group));
}

std::string not_over_text(const Aggregation& aggregation, const Rejection& rejection) {
  return fmt::format("not over the {}: {}: {}", to_string(aggregation.granularity),
                     to_string(rejection.reason), rejection.detail);
}

constexpr uint32_t kPointerBytes = 8;

// Memory that the host passes to the parent: "argument 1 of expand (int*)", or a variable's name.
std::string memory_text(const analysis::HostMemory& memory, const ptx::Function& parent) {
  return memory.variable.empty() ? ptx::argument_words(parent, memory.parameter_offset, kPointerBytes)
                                 : memory.variable;
}

// Memory at a distance from such memory: "argument 1 of expand (int*) + 4*[argument 3 of expand (int)]".
std::string distant_text(const analysis::HostMemory& memory, const analysis::HostDistance& distance,
                         const ptx::Function& parent) {
  return fmt::format("{} + {}", memory_text(memory, parent), ptx::in_cuda_words(to_string(distance), parent));
}

using Texts = std::set<std::string>;

// Pairs of memory that must be apart, and what is at distances from them. Dozens are not read in a sentence,
// so a note names two, and the facts have all.
struct ApartTexts {
  Texts pairs, places;
};
ApartTexts apart_texts(const analysis::OrderConditions& conditions, const ptx::Function& parent) {
  ApartTexts texts;
  for (const auto& [a, b] : conditions.apart_at_few_places()) {
    texts.pairs.insert(fmt::format("{} and {}", memory_text(a, parent), memory_text(b, parent)));
    for (const analysis::HostMemory* const memory : {&a, &b}) {
      for (const analysis::HostDistance& distance : memory->distances)
        texts.places.insert(distant_text(*memory, distance, parent));
    }
  }
  return texts;
}
constexpr size_t kMostPairs = 2;
std::string pairs_text(const Texts& pairs) {
  const auto behind = std::next(pairs.begin(), static_cast<ptrdiff_t>(std::min(pairs.size(), kMostPairs)));
  std::string text = fmt::format("{}", fmt::join(pairs.begin(), behind, ", "));
  if (behind != pairs.end()) text += fmt::format(", and {} more pairs", pairs.size() - kMostPairs);
  return text;
}

// The conditions on a launch under which its children overlap: ", where ..."; empty if there are none.
std::string conditions_text(const analysis::OrderConditions& conditions, const ptx::Function& parent) {
  std::vector<std::string> parts;
  if (conditions.several_blocks) parts.emplace_back("the parent has more than one block");
  Texts limits;
  for (const analysis::BlockLimit& limit : conditions.block_limits)
    limits.insert(ptx::in_cuda_words(to_string(limit.bound), parent));
  if (!limits.empty())
    parts.push_back(fmt::format("more than one of them begins below {}", fmt::join(limits, " and ")));
  const auto& [pairs, places] = apart_texts(conditions, parent);
  if (!pairs.empty()) parts.push_back("in different allocations are " + pairs_text(pairs));
  if (!places.empty()) parts.push_back(fmt::format("likewise what is at {}", fmt::join(places, ", ")));
  std::vector<std::string> numbers;
  for (const auto& [offset, bytes] : conditions.not_negative)
    numbers.push_back(ptx::argument_words(parent, offset, bytes));
  if (!numbers.empty()) parts.push_back(fmt::format("not negative are {}", fmt::join(numbers, ", ")));
  return parts.empty() ? "" : fmt::format(", where {}", fmt::join(parts, " and "));
}

std::string conditions_text(const PlannedSite& planned) {
  return conditions_text(planned.order.conditions, planned.parent->function);
}

// Which of the three it is with the order of what different threads of a block launch, why, and what the user
// can say to change it.
std::string order_text(const PlannedSite& planned) {
  const analysis::OrderVerdict& order = planned.order;
  const std::string why = order.why.empty() ? "" : ": " + order.why;
  switch (order.order) {
    case analysis::Order::Proven:
      return fmt::format("order proven: children of different threads never conflict{}",
                         conditions_text(planned));
    case analysis::Order::Tolerated:
      return fmt::format(
          "order tolerated{}: blocks of the parent have the same conflict, in no order{}; "
          "ordering = \"stream\" keeps it",
          why, conditions_text(planned));
    case analysis::Order::Kept:
      return fmt::format(
          "order kept{}; if children never meet there, ordering = \"relaxed\" lets them overlap", why);
  }
  return "";
}

// Notes on what it rests that children run as parts, if no text about their order says so.
void note_parts(SiteRemark& remark, const PlannedSite& planned) {
  if (!planned.shape.range || planned.shape.range->conditions.apart.empty()) return;
  const std::string conditions = conditions_text(planned.shape.range->conditions, planned.parent->function);
  const bool is_said = std::ranges::any_of(remark.notes, [&](const std::string& note) {
    return note.find("in different allocations are") != std::string::npos;
  });
  if (!is_said) remark.notes.push_back("in parts" + conditions);
}

// Notes whether the order of the NULL stream is kept, and whether only one thread launches.
void note_order(SiteRemark& remark, const PlannedSite& planned) {
  const Strategy& strategy = strategy_of(planned);
  const bool by_one =
      analysis::is_launched_by_one_thread(*planned.parent, *planned.site, strategy.known_block(planned));
  const bool is_alone = by_one && planned.parent->sites.size() == 1;
  if (analysis::stream_kind(*planned.site) == StreamKind::Null && !strategy.keeps_all_orders()) {
    remark.notes.push_back(is_alone ? "order proven: one thread of a block launches"
                           : planned.aggregation.ordering == analysis::Ordering::Relaxed
                               ? "order relaxed: launches of different threads of a block may overlap"
                               : order_text(planned));
  }
  if (strategy.keeps_all_orders() && !planned.order.conditions.apart.empty())
    remark.notes.push_back("without order" + conditions_text(planned));
  note_parts(remark, planned);
  const Texts pairs = apart_texts(planned.order.conditions, planned.parent->function).pairs;
  if (pairs.size() > kMostPairs)
    remark.facts.push_back({"different_allocations", fmt::format("{}", fmt::join(pairs, "; "))});
  std::string note = by_one ? strategy.one_thread_note() : "";
  if (!note.empty()) remark.notes.push_back(std::move(note));
}

// Why it is not the first aggregation that was asked for. Reasons that two of them have in common are said
// once.
void note_refused(SiteRemark& remark, const PlannedSite& planned) {
  for (const auto& [aggregation, rejection] : planned.refused) {
    const bool is_launcher = aggregation.granularity == planned.aggregation.granularity;
    // If the grid has two launchers, only the first one's rejection is noted, because the other can do less.
    const bool is_said = !is_launcher &&
                         aggregation.granularity == planned.refused.front().first.granularity &&
                         &rejection != &planned.refused.front().second;
    if (is_said) continue;
    const std::string note = is_launcher ? "the host cannot launch the children: " + rejection.detail
                                         : not_over_text(aggregation, rejection);
    if (std::ranges::find(remark.notes, note) == remark.notes.end()) remark.notes.push_back(note);
  }
}

// A launcher that the granularity does not leave to anyone.
void note_launcher(SiteRemark& remark, const PlannedSite& planned) {
  if (!planned.options.launcher_is_asked || planned.options.launcher != Launcher::Host) return;
  if (planned.aggregation.launcher == Launcher::Host || planned.aggregation.granularity == Granularity::Grid)
    return;
  remark.notes.push_back(fmt::format(
      "launcher host is ignored: at granularity {} threads of the parent launch", remark.granularity));
}

// Why a consumer's block cannot have as many threads as were asked for. Empty if it has.
std::string other_threads_text(const PlannedSite& planned, uint32_t asked) {
  const transform::ConsumerShape& shape = planned.shape;
  std::string fixed = strategy_of(planned).fixed_block_text();
  if (!fixed.empty()) return fixed;
  if (!shape.packs) return "a block of children has a consumer's block to itself";
  if (shape.threads() == asked) return {};
  if (shape.blocks_differ() || shape.flat) return "it is no multiple of a warp, by which children are run";
  return fmt::format("it is no multiple of the {} threads of a child's block", shape.child_threads());
}

void note_threads(SiteRemark& remark, const PlannedSite& planned) {
  const uint32_t asked = planned.options.consumer_threads;
  const std::string why = asked == 0 ? "" : other_threads_text(planned, asked);
  if (!why.empty()) remark.notes.push_back(fmt::format("consumer_threads {} is ignored: {}", asked, why));
}

// In which blocks and grids the host must launch the parent.
void note_sizes(SiteRemark& remark, const Aggregation& aggregation) {
  if (!aggregation.block[2]) return;
  const char* const block = !aggregation.block[1] ? "layer" : !aggregation.block[0] ? "row" : "thread";
  const char* const grid = !aggregation.grid[1]  ? "blocks"
                           : aggregation.grid[0] ? "a grid of one block"
                                                 : "a grid of one row, in blocks";
  remark.notes.push_back(fmt::format("where the host launches the parent in {} of one {}", grid, block));
}

std::string shared_memory_text(const PlannedSite& planned) {
  const Strategy& strategy = strategy_of(planned);
  const uint32_t bytes = strategy.shared_bytes(planned);
  if (strategy.shared_differs(planned)) {
    const bool follows = planned.shape.sizes && planned.shape.sizes->shared_differs();
    return fmt::format("up to {} bytes of dynamic shared memory{}", bytes,
                       follows ? ", as many as the largest request" : "");
  }
  return bytes == 0 ? "" : fmt::format("{} bytes of dynamic shared memory", bytes);
}

// One part of the detail, and the same as a fact. An empty part is left out.
class Parts {
 public:
  void add(std::string key, std::string value) { add(std::move(key), value, value); }
  void add(std::string key, std::string value, std::string text) {
    if (text.empty()) return;
    texts_.push_back(std::move(text));
    facts_.push_back({std::move(key), std::move(value)});
  }
  [[nodiscard]] std::string detail() const { return fmt::format("{}", fmt::join(texts_, ", ")); }
  [[nodiscard]] const std::vector<Fact>& facts() const { return facts_; }

 private:
  std::vector<std::string> texts_;
  std::vector<Fact> facts_;
};

std::string without_prefix(std::string text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Fills the detail, which has all facts in one line, and the facts. An optimisation that changes how children
// are run says so in place of the strategy.
void add_facts(SiteRemark& remark, const PlannedSite& planned, std::span<const OptimisationRemark> optimised,
               bool is_moldable) {
  const Strategy& strategy = strategy_of(planned);
  const auto runs = std::ranges::find_if(optimised, [](const auto& of) { return !of.run.empty(); });
  const std::string run = runs == optimised.end() ? strategy.run_text(planned) : runs->run;
  const std::string block = strategy.block_text(planned);
  const uint32_t argument_bytes = planned.child->parameter_bytes;
  Parts parts;
  parts.add("block", without_prefix(block, "block "), block);
  if (is_moldable) parts.add("moldable", "yes", "moldable");
  parts.add("run", run);
  for (const OptimisationRemark& of : optimised) parts.add(std::string(of.name), of.fact);
  parts.add("shared_memory", shared_memory_text(planned));
  parts.add("argument_bytes", fmt::format("{}", argument_bytes),
            fmt::format("{} argument bytes", argument_bytes));
  parts.add("arguments", arguments_text(planned));
  for (const OptimisationRemark& of : optimised) parts.add(std::string(of.name), of.arguments);
  const std::string stream = stream_of_remark(*planned.site);
  parts.add("stream", stream.substr(0, stream.find(" stream")), stream);
  remark.detail = parts.detail();
  remark.facts = parts.facts();
  // "flattened" of "flattened: threads with ...".
  remark.brief = runs == optimised.end() ? strategy.brief_text(planned) : run.substr(0, run.find(':'));
}

}  // namespace

void describe_rewritten(SiteRemark& remark, const PlannedSite& planned,
                        const std::function<bool()>& is_moldable) {
  const Strategy& strategy = strategy_of(planned);
  if (std::optional<std::string> detail = strategy.own_detail(planned)) {
    remark.detail = std::move(*detail);
    remark.brief = remark.detail.substr(0, remark.detail.find(','));
    remark.facts = {{"run", remark.detail}};
    std::ranges::move(strategy.notes(planned), std::back_inserter(remark.notes));
    return;
  }
  const std::vector<OptimisationRemark> optimised = optimisation_remarks(planned);
  add_facts(remark, planned, optimised, is_moldable());
  note_order(remark, planned);
  note_refused(remark, planned);
  note_launcher(remark, planned);
  for (const OptimisationRemark& of : optimised) {
    if (!of.note.empty()) remark.notes.push_back(of.note);
  }
  note_threads(remark, planned);
  std::ranges::move(strategy.notes(planned), std::back_inserter(remark.notes));
  note_sizes(remark, planned.aggregation);
  if (!planned.whole.empty()) remark.notes.push_back("its grid is launched as a whole: " + planned.whole);
}

// Notes the rejections of aggregations over another granularity, which would have replaced the first one.
void note_other_aggregations(SiteRemark& remark, const PlannedSite& planned) {
  if (planned.refused.empty()) return;
  const auto& [first, why] = planned.refused.front();
  for (const auto& [aggregation, rejection] : planned.refused) {
    if (aggregation.granularity == first.granularity) continue;
    if (rejection.reason == why.reason && rejection.detail == why.detail) continue;
    remark.notes.push_back(not_over_text(aggregation, rejection));
  }
}

}  // namespace klap::jit
