// This file describes the kernel that a chain of launches becomes, and says in which modes that can be done.
//
// A shape has all that the templates are compiled for (templates/promote): the mode, the words that links
// pass on, the arguments that step and those that links combine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/promotion/promotion.h"

namespace klap::transform {

// The mode tells how links wait for each other: for all of the link before, only where their own prologue
// ends, or only for the values that earlier links publish, many at a time.
enum class PromotionMode { Aggregated, Overlapped, LookBack };

// An argument that steps from link to link.
struct ArgumentStep {
  uint32_t offset = 0, bytes = 0;
  bool multiplies = false;
  uint64_t by = 0;
};

// An argument that links combine with values of their own as they look back.
struct ArgumentCarry {
  uint32_t offset = 0, word = 0;  // its first word in a slot
  std::string operation;          // as templates/promote/promote_link.cu calls it: "add_32", "max_f32"
};

// All that the templates are compiled for.
struct PromotedShape {
  PromotionMode mode = PromotionMode::Aggregated;
  bool launches = false;      // each link's block launches the next one's; not with LookBack
  uint32_t shared_bytes = 0;  // dynamic, of such a block
  // Tells how a link knows that it exists. With Available, the fast chain tells it.
  analysis::LinkCondition condition = analysis::LinkCondition::AtSite;
  uint32_t threads = 0;
  uint32_t area_bytes = 0;                  // of each area of arguments
  std::vector<uint32_t> words, fast_words;  // offsets of those that are passed on
  std::vector<ArgumentStep> steps;
  std::vector<ArgumentCarry> carries;
  // The links combine the values that they pass on with values of their own. Everything is passed on at the
  // boundary, and nothing is left for the launch to do.
  bool combines = false;
  uint32_t slot_bytes = 0;
  uint32_t batch = 1;       // links that a block takes at a time; more only with LookBack
  uint32_t kept_words = 0;  // registers that each of them has beside what all share
  // The rings are double-buffered: launches use them alternately, each making the next one's ready. Not with
  // `launches`.
  bool double_buffered = false;
  // Compute capability of the device for which a chain that looks back asks for as many blocks per
  // multiprocessor as their registers leave room for. With 0 this is left to the assembler.
  uint32_t filled_sm = 0;

  [[nodiscard]] const char* name() const;  // as in the configuration: "P", "PA", "PO", "PAO", "lookback"
  // The number of words that the links pass on. There is at least one, for its mark.
  [[nodiscard]] uint32_t slot_words() const;
  // The bytes of shared memory for the arguments of each link of a batch.
  [[nodiscard]] uint32_t part_bytes() const;
  [[nodiscard]] bool passes(uint32_t offset, uint32_t bytes) const;  // part of it, among `words`
};

// The first reason why a chain cannot be run that way; nothing if it can. A reason against Aggregated is one
// against promotion.
std::optional<std::string> check_mode(const analysis::ChainFacts& chain, PromotionMode mode);

// The shape for a mode to which there is no rejection.
PromotedShape promoted_shape(const analysis::ChainFacts& chain, PromotionMode mode, bool launches = false);

}  // namespace klap::transform
