#include "analysis/facts/facts.h"

#include "analysis/values/values.h"

namespace klap::analysis {

std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand) {
  return origins_of({facts.module, facts.function, facts.flow, facts.data}, operand);
}

const Values& FunctionFacts::values() const {
  if (values_ == nullptr) values_ = std::make_shared<const Values>(flow);
  return *values_;
}

const CallGraph& FunctionFacts::calls() const {
  if (calls_ == nullptr) calls_ = std::make_shared<const CallGraph>(module, function);
  return *calls_;
}

}  // namespace klap::analysis
