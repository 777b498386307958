#include "jit/strategy/promotion_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "analysis/promotion/batching.h"
#include "ptx/argument_words.h"

namespace klap::jit {
namespace {

using analysis::ChainArgument;
using analysis::ChainFacts;
using analysis::FunctionFacts;
using analysis::LinkArgument;
using analysis::LinkCondition;
using analysis::Rejection;
using transform::PromotionMode;

constexpr std::array kModes = {PromotionMode::LookBack, PromotionMode::Overlapped, PromotionMode::Aggregated};

// Returns the best mode that a value of the setting `promotion` allows.
PromotionMode best_mode_of(const std::string& promotion) {
  if (promotion == "P" || promotion == "PA") return PromotionMode::Aggregated;
  if (promotion == "PO" || promotion == "PAO") return PromotionMode::Overlapped;
  return PromotionMode::LookBack;
}

bool launches_links(const std::string& promotion) { return promotion == "P" || promotion == "PO"; }

const char* mode_text(PromotionMode mode, bool launches = false) {
  switch (mode) {
    case PromotionMode::Aggregated:
      return launches ? "one link after another by device launches" : "one link after another";
    case PromotionMode::Overlapped:
      return launches ? "overlapping by device launches" : "overlapping";
    case PromotionMode::LookBack:
      return "look-back";
  }
  return "";
}

// The parameter that an argument is, or is part of.
std::string argument_name(const ChainArgument& argument, const FunctionFacts& kernel) {
  const std::string words = ptx::argument_words(kernel.function, argument.offset, argument.bytes);
  return words.empty() ? fmt::format("argument at {}", argument.offset) : words;
}

// As a signed number where it is one of so many bytes.
int64_t signed_step(const ChainArgument& argument) {
  const uint32_t unused = 64 - 8 * argument.bytes;
  return static_cast<int64_t>(argument.step << unused) >> unused;
}

std::string argument_text(const ChainArgument& argument, const PlannedPromotion& promotion,
                          const FunctionFacts& kernel) {
  const std::string name = argument_name(argument, kernel);
  switch (argument.kind) {
    case LinkArgument::Unchanged:
      return {};
    case LinkArgument::Stepped:
      return argument.multiplies ? fmt::format("{} multiplied by {}", name, argument.step)
                                 : fmt::format("{} stepped by {}", name, signed_step(argument));
    case LinkArgument::Available:
      return name + " known early";
    case LinkArgument::Postponed:
      return promotion.shape.mode == PromotionMode::LookBack
                 ? fmt::format("{} carried by {}", name, argument.carried->operation)
                 : name + " passed on";
  }
  return {};
}

std::string condition_text(const PlannedPromotion& promotion) {
  switch (promotion.shape.condition) {
    case LinkCondition::Counted:
      return "links counted";
    case LinkCondition::Available:
      return "links known early";
    case LinkCondition::AtSite:
      return "links known by their launch";
  }
  return {};
}

}  // namespace

namespace {

// How many links a block takes at a time. More of them wait for memory, and for each other, at once, as long
// as what they keep in registers and in shared memory leaves room for other blocks; and the text must not
// become too long.
uint32_t batch_of(const analysis::Batching& batching, const transform::PromotedShape& shape) {
  constexpr uint32_t kMostWords = 32, kMostInstructions = 2000, kMostSharedBytes = 16384;
  const uint64_t shared_bytes = batching.shared_bytes + shape.part_bytes();
  for (const uint32_t links : {8u, 4u, 2u}) {
    if (links * batching.words <= kMostWords && links * batching.instructions <= kMostInstructions &&
        links * shared_bytes <= kMostSharedBytes)
      return links;
  }
  return 1;
}

void add_batches(const FunctionFacts& kernel, PlannedPromotion& promotion) {
  const analysis::BatchingVerdict verdict = judge_batching(kernel, *promotion.chain);
  if (verdict.batching) {
    promotion.shape.batch = batch_of(*verdict.batching, promotion.shape);
    promotion.shape.kept_words = verdict.batching->words;
  }
  if (promotion.shape.batch == 1) {
    promotion.notes.push_back("each block takes one link at a time: " +
                              (verdict.batching ? "several would be too large a kernel" : verdict.rejection));
  }
}

}  // namespace

bool launches_itself(const FunctionFacts& kernel) {
  return std::ranges::any_of(kernel.sites, [&](const analysis::Site& site) {
    return !site.callee.empty() && site.callee == kernel.function.name;
  });
}

PromotionVerdict plan_promotion(std::shared_ptr<const ChainFacts> chain, const std::string& promotion) {
  if (const auto rejection = check_mode(*chain, PromotionMode::Aggregated))
    return {nullptr, Rejection{analysis::Reason::ArgumentMismatch, *rejection}};
  auto out = std::make_shared<PlannedPromotion>();
  const auto* const first = std::ranges::find(kModes, best_mode_of(promotion));
  for (const PromotionMode mode : std::span(first, kModes.end())) {
    if (const auto rejection = check_mode(*chain, mode)) {
      out->notes.push_back(fmt::format("not {}: {}", mode_text(mode), *rejection));
      continue;
    }
    out->shape = promoted_shape(*chain, mode, launches_links(promotion));
    break;
  }
  out->chain = std::move(chain);
  return {std::move(out), std::nullopt};
}

PromotionVerdict plan_promotion(const FunctionFacts& kernel, const SiteOptions& options, uint32_t sm) {
  analysis::ChainVerdict verdict = analysis::judge_promotion(kernel, options.assume_noalias);
  if (verdict.facts == nullptr) return {nullptr, std::move(verdict.rejection)};
  PromotionVerdict out = plan_promotion(std::move(verdict.facts), options.promotion);
  if (!out.promotion) return out;
  PlannedPromotion planned = *out.promotion;
  const auto is_on = [&](std::string_view name) { return options.optimisations.is_on(name); };
  if (planned.shape.mode == PromotionMode::LookBack && is_on("batch_links")) add_batches(kernel, planned);
  planned.shape.filled_sm = is_on("occupancy") ? sm : 0;
  planned.shape.double_buffered = is_on("double_buffer") && !planned.shape.launches;
  out.promotion = std::make_shared<const PlannedPromotion>(std::move(planned));
  return out;
}

std::string promotion_text(const PlannedPromotion& promotion, const FunctionFacts& kernel) {
  const ChainFacts& chain = *promotion.chain;
  std::string text = fmt::format("{}, block {}", mode_text(promotion.shape.mode, promotion.shape.launches),
                                 fmt::join(chain.block, "x"));
  if (chain.shared_bytes != 0) text += fmt::format(", {} bytes of dynamic shared memory", chain.shared_bytes);
  if (promotion.shape.batch > 1)
    text += fmt::format(", up to {} links side by side in a block", promotion.shape.batch);
  text += ", " + condition_text(promotion);
  for (const ChainArgument& argument : chain.arguments) {
    const std::string argument_is = argument_text(argument, promotion, kernel);
    if (!argument_is.empty()) text += ", " + argument_is;
  }
  const auto unchanged = std::ranges::count(chain.arguments, LinkArgument::Unchanged, &ChainArgument::kind);
  text += fmt::format(", {} of {} argument{} unchanged", unchanged, chain.arguments.size(),
                      chain.arguments.size() == 1 ? "" : "s");
  if (promotion.shape.mode == PromotionMode::Aggregated) return text;
  return text + fmt::format(", overlap up to {}{}: {}", kernel.module.place(chain.boundary->head),
                            chain.boundary_is_annotated ? ", as annotated" : "", chain.boundary_text);
}

}  // namespace klap::jit
