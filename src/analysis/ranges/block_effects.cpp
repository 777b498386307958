#include "analysis/ranges/block_effects.h"

#include <fmt/format.h>

namespace klap::analysis {

size_t BlockEffects::load(uint32_t thread, Computed instruction) {
  Thread& own = threads_[thread];
  instruction.text += fmt::format(" #{} after {}", own.loads++, own.effects.size());
  instruction.thread = thread;
  return values_.number_of(instruction);
}

size_t BlockEffects::write(uint32_t thread, Computed instruction) {
  threads_[thread].effects.push_back(instruction.text);
  is_rounded_ = is_rounded_ || instruction.is_rounded;
  return load(thread, std::move(instruction));
}

EndOfBlock BlockEffects::end() const {
  EndOfBlock end{"", 0, {}, is_rounded_};
  for (uint32_t t = 0; t < threads_.size(); ++t) {
    if (threads_[t].effects.empty()) continue;
    if (!end.effects.empty()) return {"several of its threads write to memory"};
    end = {"", t, threads_[t].effects, is_rounded_};
  }
  return end;
}

}  // namespace klap::analysis
