#include "transform/promotion/promoted_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ptx-patterns/templates/promote/promote.h"
#include "ptx/tree.h"
#include "transform/text/parts.h"

namespace klap::transform {
namespace {

using analysis::CarriedArgument;
using analysis::ChainArgument;
using analysis::ChainFacts;
using analysis::LinkArgument;
using analysis::LinkCondition;

constexpr uint32_t kWordBytes = 4;
constexpr uint32_t kAreaAlign = 16;
static_assert(sizeof(KlapLink) <= KLAP_LINK_AREA && KLAP_LINK_AREA % kAreaAlign == 0);

bool overlaps(uint32_t offset, uint32_t bytes, uint32_t word) {
  return offset < word + kWordBytes && word < offset + bytes;
}

// The words with bytes of arguments of some kinds, in order.
std::vector<uint32_t> words_of(const ChainFacts& chain, const std::set<LinkArgument>& kinds) {
  std::set<uint32_t> words;
  for (const ChainArgument& argument : chain.arguments) {
    if (!kinds.contains(argument.kind)) continue;
    for (uint32_t word = argument.offset / kWordBytes * kWordBytes; word < argument.offset + argument.bytes;
         word += kWordBytes)
      words.insert(word);
  }
  return {words.begin(), words.end()};
}

bool has_kind(const ChainFacts& chain, LinkArgument kind) {
  return std::ranges::find(chain.arguments, kind, &ChainArgument::kind) != chain.arguments.end();
}

// Arguments that are passed on early have a fast chain of their own, which also tells which links exist.
LinkCondition condition_of(const ChainFacts& chain) {
  if (chain.condition == LinkCondition::Counted && has_kind(chain, LinkArgument::Available))
    return LinkCondition::Available;
  return chain.condition;
}

// The name in templates/promote/promote_link.cu of "add.s32"; empty where it has none.
std::string operation_name(const std::string& operation) {
  const size_t dot = operation.find('.');
  if (dot == std::string::npos) return {};
  const std::string name = operation.substr(0, dot), type = operation.substr(dot + 1);
  if (type.size() != 3) return {};
  const char kind = type[0];
  const std::string bits = type.substr(1);
  if (bits != "32" && bits != "64") return {};
  const bool is_integer = kind == 's' || kind == 'u' || kind == 'b';
  if (name == "add") return kind == 's' || kind == 'u' ? "add_" + bits : "";
  if (name == "and" || name == "or" || name == "xor") return is_integer ? name + "_" + bits : "";
  if (name == "min" || name == "max") return kind == 'b' ? "" : name + "_" + type;
  return {};
}

uint32_t operation_bytes(const CarriedArgument& carried) {
  return ptx::type_bytes(carried.operation.substr(carried.operation.find('.')));
}

// The rejection to words that two arguments share: one of them would be written while the other is not known
// yet.
std::optional<std::string> check_words(const ChainFacts& chain) {
  if (condition_of(chain) != LinkCondition::Available) return std::nullopt;
  for (const uint32_t word : words_of(chain, {LinkArgument::Available})) {
    for (const ChainArgument& argument : chain.arguments) {
      if (argument.kind == LinkArgument::Stepped && overlaps(argument.offset, argument.bytes, word))
        return fmt::format("arguments at {} and before share four bytes", argument.offset);
    }
  }
  return std::nullopt;
}

// The rejection to values that the links combine.
std::optional<std::string> check_combining(const ChainFacts& chain) {
  if (!chain.looks_back) return chain.look_back_text;
  if (chain.boundary == nullptr) return chain.boundary_text;
  if (condition_of(chain) != LinkCondition::Counted)
    return "how many links there are does not follow from arguments that step";
  for (const ChainArgument& argument : chain.arguments) {
    if (argument.kind != LinkArgument::Postponed) continue;
    const std::string name = argument.carried ? operation_name(argument.carried->operation) : "";
    if (name.empty() || operation_bytes(*argument.carried) != argument.bytes)
      return fmt::format("the argument at {} is not carried by an operation of 4 or 8 bytes",
                         argument.offset);
  }
  return std::nullopt;
}

}  // namespace

const char* PromotedShape::name() const {
  switch (mode) {
    case PromotionMode::Aggregated:
      return launches ? "P" : "PA";
    case PromotionMode::Overlapped:
      return launches ? "PO" : "PAO";
    case PromotionMode::LookBack:
      return "lookback";
  }
  return "";
}

uint32_t PromotedShape::slot_words() const {
  return std::max<uint32_t>(1, static_cast<uint32_t>(words.size()));
}

uint32_t PromotedShape::part_bytes() const { return KLAP_PART_BYTES(area_bytes); }

bool PromotedShape::passes(uint32_t offset, uint32_t bytes) const {
  return std::ranges::any_of(words, [&](uint32_t word) { return overlaps(offset, bytes, word); });
}

std::optional<std::string> check_mode(const ChainFacts& chain, PromotionMode mode) {
  if (auto rejection = check_words(chain)) return rejection;
  switch (mode) {
    case PromotionMode::Aggregated:
      return std::nullopt;
    case PromotionMode::Overlapped:
      if (chain.boundary == nullptr) return chain.boundary_text;
      if (chain.condition == LinkCondition::AtSite) return chain.condition_text;
      return std::nullopt;
    case PromotionMode::LookBack:
      return check_combining(chain);
  }
  return std::nullopt;
}

PromotedShape promoted_shape(const ChainFacts& chain, PromotionMode mode, bool launches) {
  PromotedShape shape;
  shape.mode = mode;
  shape.launches = launches;
  shape.shared_bytes = chain.shared_bytes;
  shape.condition = condition_of(chain);
  shape.threads = chain.block[0] * chain.block[1] * chain.block[2];
  uint32_t end = 1;
  for (const ChainArgument& argument : chain.arguments) {
    if (argument.kind != LinkArgument::Unchanged) end = std::max(end, argument.offset + argument.bytes);
  }
  shape.area_bytes = round_up(end, kAreaAlign);
  using enum LinkArgument;
  // If only the link before tells a link that it exists, the link gets all of its arguments from there.
  const bool is_told = shape.condition == LinkCondition::AtSite;
  shape.words = words_of(chain, is_told ? std::set{Postponed, Available, Stepped} : std::set{Postponed});
  if (shape.condition == LinkCondition::Available) shape.fast_words = words_of(chain, {Available});
  shape.combines = mode != PromotionMode::Aggregated && !check_combining(chain);
  uint32_t word = 0;
  for (const ChainArgument& argument : chain.arguments) {
    if (argument.kind == Stepped && !is_told)
      shape.steps.push_back({argument.offset, argument.bytes, argument.multiplies, argument.step});
    if (argument.kind != Postponed || !shape.combines) continue;
    shape.carries.push_back({argument.offset, word, operation_name(argument.carried->operation)});
    word += argument.bytes / kWordBytes;
  }
  const bool is_fast = shape.condition == LinkCondition::Available;
  const uint32_t fast_words = is_fast ? 1 + static_cast<uint32_t>(shape.fast_words.size()) : 0;
  shape.slot_bytes = KLAP_CHAIN_SLOT_BYTES(shape.slot_words(), fast_words);
  return shape;
}

}  // namespace klap::transform
