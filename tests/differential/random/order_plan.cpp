#include "random/order_plan.h"

#include <utility>

namespace klap::differential::random {

void OrderPlan::begin_kernel(Kernel& kernel) {
  kernel.own_words = 4;
  kernel.parameters.clear();
  for (const Role role : {Role::Input, Role::Sums, Role::Own, Role::Room, Role::Depth, Role::Message,
                          Role::Cells, Role::Alias}) {
    kernel.parameters.push_back({role, {}});
  }
  for (uint32_t v = 0; v < kernel.values.size(); ++v) {
    const bool joins = mix.structures && random.chance(25) && kernel.parameters.back().role == Role::Values;
    if (joins) {
      kernel.parameters.back().values.push_back(v);
    } else {
      kernel.parameters.push_back({Role::Values, {v}});
    }
  }
  for (size_t i = kernel.parameters.size(); i-- > 1;)
    std::swap(kernel.parameters[i], kernel.parameters[random.below(i + 1)]);
}

Statement OrderPlan::turns(const Kernel& kernel, std::vector<Statement> body, bool launches_children) {
  Statement s = statement(Kind::Turns, 0, 0, {}, std::move(body));
  const bool has_lock = is_commuting && !conflict && random.chance(50);
  for (;;) {
    s.turns.relation = has_lock ? Relation::Lock : static_cast<Relation>(random.below(kRelations - 1));
    // What waits for other threads is left, whatever its children do.
    if (conflict && s.turns.relation > Relation::Shuffle) continue;
    if (is_by_warp(s.turns.relation) && product(kernel.block) % 32 != 0) continue;
    if (!orders_memory(s.turns.relation) && (!launches_children || reads_cells)) continue;
    break;
  }
  s.turns.count = static_cast<uint32_t>(random.between(2, conflict ? 12 : launches_children ? 6 : 4));
  s.turns.is_reversed = random.chance(40);
  s.turns.is_unrolled = s.turns.count <= (conflict ? 8 : 4) && random.chance(conflict ? 50 : 30);
  return s;
}

}  // namespace klap::differential::random
