#include "random/generate_order.h"

#include <array>
#include <utility>

#include "random/generate_code.h"
#include "random/generate_order_children.h"
#include "random/generate_order_parents.h"
#include "random/generate_parts.h"
#include "random/order_plan.h"

namespace klap::differential::random {

namespace {

class OrderMaker {
 public:
  OrderMaker(uint64_t seed, const Mix& mix) : plan_(seed, mix) {}

  Candidate make() {
    if (plan_.mix.functions) plan_.program.functions.push_back(make_function(plan_.random));
    choose_plan();
    const bool has_middle =
        plan_.mix.nested && !plan_.conflict && plan_.lookup == Lookup::None && plan_.random.chance(25);
    plan_.needs_two = plan_.conflict == Conflict::Reads || plan_.conflict == Conflict::Operations ||
                      plan_.conflict == Conflict::Literals;
    const uint32_t children = !plan_.needs_two && plan_.random.chance(70) ? 1 : 2;
    plan_.first_child = has_middle ? 2 : 1;
    plan_.program.kernels.resize(plan_.first_child + children);
    for (auto k = static_cast<uint32_t>(plan_.program.kernels.size()); k-- > plan_.first_child;) {
      make_ordered_child(plan_, k);
    }
    if (has_middle) make_ordered_parent(plan_, 1);
    make_ordered_parent(plan_, 0);
    make_steps();
    plan_.program.previous_words = 1;
    prepare(plan_.program);
    return {std::move(plan_.program), plan_.is_commuting};
  }

 private:
  // What all kernels are made after.
  void choose_plan() {
    plan_.is_commuting = plan_.mix.unordered && plan_.random.chance(60);
    plan_.uses_messages = plan_.mix.messages && plan_.random.chance(35);
    plan_.uses_tables = plan_.mix.tables && plan_.random.chance(60);
    // Where several blocks launch children that look up what they change, the library may take the order
    // lightly.
    plan_.style =
        plan_.is_commuting ? static_cast<OrderStyle>(plan_.random.between(1, 4)) : OrderStyle::Ordered;
    if (plan_.mix.plain && plan_.random.chance(80)) {
      static constexpr std::array kChosen = {Conflict::Values,     Conflict::Values,     Conflict::Values,
                                             Conflict::Rows,       Conflict::Rows,       Conflict::Literals,
                                             Conflict::Reads,      Conflict::Reads,      Conflict::Results,
                                             Conflict::Operations, Conflict::Operations, Conflict::Exchanges,
                                             Conflict::Floats,     Conflict::Updates,    Conflict::Updates};
      plan_.conflict = kChosen.at(plan_.random.below(kChosen.size() - (plan_.mix.unordered ? 0 : 2)));
      plan_.is_commuting = plan_.conflict == Conflict::Updates;
      plan_.style = plan_.is_commuting ? OrderStyle::Adding : OrderStyle::Ordered;
      plan_.repeats_launches = plan_.random.chance(75);
      choose_address();
    }
    if (plan_.mix.blocks && plan_.is_commuting && plan_.random.chance(plan_.conflict ? 60 : 25)) {
      plan_.lookup = plan_.mix.messages && plan_.random.chance(50) ? Lookup::Message : Lookup::Cells;
      plan_.uses_messages = plan_.lookup == Lookup::Message;
    }
  }

  // What decides over a plain program besides its kind of conflict.
  void choose_address() {
    if (*plan_.conflict != Conflict::Values && *plan_.conflict != Conflict::Rows) return;
    if (plan_.random.chance(60)) plan_.beside = plan_.random.chance(60) ? Beside::Value : Beside::Pointer;
    if (plan_.random.chance(30)) plan_.multiple = plan_.pick({2, 4});
  }

  void make_steps() {
    const uint64_t count = plan_.random.between(1, 2);
    for (uint64_t i = 0; i < count; ++i) {
      Step step;
      const Kernel& kernel = plan_.program.kernels[0];
      step.stream = plan_.mix.streams ? static_cast<uint32_t>(plan_.random.below(kHostStreams)) : 0;
      step.grid = kernel.grid;
      step.block = kernel.block;
      step.arguments = {static_cast<uint32_t>(plan_.random.below(3)), plan_.random.number(),
                        plan_.random.number()};
      plan_.program.steps.push_back(std::move(step));
    }
  }

  OrderPlan plan_;
};

}  // namespace

Candidate make_ordered_program(uint64_t seed, const Mix& mix) { return OrderMaker(seed, mix).make(); }

}  // namespace klap::differential::random
