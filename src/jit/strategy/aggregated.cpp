#include "jit/strategy/aggregated.h"

#include "analysis/legality/parent_checks.h"

namespace klap::jit {

void describe_parameters(Variant& v, const ptx::Function& parent) {
  v.parent_param_offsets.clear();
  v.parent_param_sizes.clear();
  for (const ptx::Parameter& p : parent.parameters) {
    v.parent_param_offsets.push_back(p.offset);
    v.parent_param_sizes.push_back(p.bytes);
  }
  v.parent_param_bytes = parent.parameter_bytes;
}

namespace {

Distance sum_of(const analysis::HostDistance& distance) {
  Distance sum;
  sum.divisor = distance.divisor;
  for (const auto& [factors, coefficient] : distance.products) {
    ParameterProduct& product = sum.products.emplace_back();
    product.coefficient = coefficient;
    for (const auto& [offset, bytes, is_signed] : factors)
      product.factors.push_back({offset, bytes, is_signed});
  }
  return sum;
}

HostMemory memory_of(const analysis::HostMemory& memory) {
  HostMemory out{memory.parameter_offset, memory.variable, memory.only_upwards, {}};
  for (const analysis::HostDistance& distance : memory.distances) out.distances.push_back(sum_of(distance));
  return out;
}

// Conditions on a launch under which the variant is right.
void add_conditions(Variant& v, const PlannedSite& site) {
  for (size_t axis = 0; axis < v.block.size(); ++axis) {
    v.block.at(axis) = site.aggregation.block.at(axis).value_or(0);
    v.grid.at(axis) = site.aggregation.grid.at(axis).value_or(0);
  }
  v.several_blocks = site.order.conditions.several_blocks;
  for (const analysis::BlockLimit& limit : site.order.conditions.block_limits)
    v.block_limits.push_back({limit.axis, limit.step, sum_of(limit.bound)});
  for (const auto& [a, b] : site.order.conditions.apart_at_few_places())
    v.apart.push_back({memory_of(a), memory_of(b)});
  for (const auto& [offset, bytes] : site.order.conditions.not_negative)
    v.not_negative.push_back({offset, bytes});
  if (!v.apart.empty() || !v.block_limits.empty()) describe_parameters(v, site.parent->function);
}

}  // namespace

Variant aggregated_variant(const PlannedSite& site, const std::string& name) {
  Variant v;
  v.parent = site.parent->function.name;
  v.parent_variant = name;
  v.launcher = site.aggregation.launcher;
  v.granularity = site.aggregation.granularity;
  v.group_blocks = site.aggregation.group_blocks;
  add_conditions(v, site);
  v.parent_waits = analysis::waits_for_others(*site.parent).has_value();
  return v;
}

}  // namespace klap::jit
