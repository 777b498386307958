#include "random/reduce.h"

#include <algorithm>
#include <utility>

#include "random/one_edit.h"
#include "random/reference.h"

namespace klap::differential::random {

namespace {

// Performs the edit of one number on a program. Edits are counted in the order in which they are offered, and
// none is offered that would change nothing.
class Edit : private OneEdit {
 public:
  Edit(Program& program, size_t wanted) : OneEdit(wanted), program_(program) {}

  // False if there is no edit of that number.
  bool apply() {
    edit_steps();
    edit_kernels();
    for (uint32_t k = 0; k < program_.kernels.size() && !is_done(); ++k) {
      edit_list(program_.kernels[k].body);
      if (!is_done()) edit_kernel(k);
    }
    for (Kernel& kernel : program_.kernels) {
      if (is_done()) break;
      if (kernel.message) edit_expression(*kernel.message);
      edit_expressions(kernel.body);
    }
    for (Function& f : program_.functions) {
      if (f.trips > 1) offer([&] { f.trips = 1; });
      edit_expression(f.step);
    }
    if (program_.previous_words > 1) offer([&] { program_.previous_words = 1; });
    return is_done();
  }

 private:
  // ---- whole steps and kernels ----

  void edit_steps() {
    std::vector<Step>& steps = program_.steps;
    for (size_t i = steps.size(); i-- > 0 && !is_done() && steps.size() > 1;) {
      offer([&] { steps.erase(steps.begin() + static_cast<ptrdiff_t>(i)); });
    }
    for (size_t i = 0; i < steps.size() && !is_done(); ++i) {
      offer_value(steps[i].stream, 0U);
      offer_value(steps[i].wait, false);
      if (steps[i].depth > 0) offer([&] { --steps[i].depth; });
      for (uint32_t& argument : steps[i].arguments) offer_value(argument, 0U);
      for (size_t axis = 0; axis < 3; ++axis) {
        offer_value(steps[i].grid.at(axis), 1U);
        offer_value(steps[i].block.at(axis), 1U);
      }
    }
  }

  void edit_kernels() {
    for (uint32_t k = static_cast<uint32_t>(program_.kernels.size()); k-- > 0 && !is_done();) {
      if (!is_launched(k)) offer([&] { remove_kernel(k); });
    }
    // A step may launch what the kernel of the step would have launched.
    for (size_t i = 0; i < program_.steps.size() && !is_done(); ++i) {
      const uint32_t next = program_.steps[i].kernel + 1;
      if (next < program_.kernels.size()) offer([&] { launch_instead(program_.steps[i], next); });
    }
  }

  [[nodiscard]] bool is_launched(uint32_t k) const {
    bool found = std::ranges::any_of(program_.steps, [k](const Step& s) { return s.kernel == k; });
    for (uint32_t parent = 0; parent < program_.kernels.size(); ++parent) {
      if (parent == k) continue;
      for_each(program_.kernels[parent].body,
               [&](const Statement& s) { found = found || (s.kind == Kind::Launch && s.site.kernel == k); });
    }
    return found;
  }

  void remove_kernel(uint32_t k) {
    program_.kernels.erase(program_.kernels.begin() + k);
    for (Step& step : program_.steps) step.kernel -= step.kernel > k ? 1 : 0;
    for (Kernel& kernel : program_.kernels) {
      for_each(kernel.body, [&](Statement& s) {
        if (s.kind == Kind::Launch && s.site.kernel > k) --s.site.kernel;
      });
    }
  }

  void launch_instead(Step& step, uint32_t k) const {
    const Kernel& kernel = program_.kernels[k];
    step.kernel = k;
    step.grid = kernel.grid;
    step.block = kernel.block;
    step.arguments.assign(kernel.values.size(), 1);
    step.depth = is_recursive(program_, k) ? std::max(step.depth, 1U) : 0;
  }

  // ---- statements ----

  void edit_list(std::vector<Statement>& list) {
    const auto half = static_cast<ptrdiff_t>(list.size() / 2);
    if (half >= 2) {
      offer([&] { list.erase(list.begin() + half, list.end()); });
      offer([&] { list.erase(list.begin(), list.begin() + half); });
    }
    for (size_t i = list.size(); i-- > 0 && !is_done();) {
      offer([&] { list.erase(list.begin() + static_cast<ptrdiff_t>(i)); });
      if (is_done()) return;
      if (!list[i].body.empty()) offer([&] { unwrap(list, i, list[i].body); });
      if (!is_done() && !list[i].other.empty()) offer([&] { unwrap(list, i, list[i].other); });
      if (!is_done() && !list[i].other.empty()) offer([&] { list[i].other.clear(); });
    }
    for (size_t i = 0; i < list.size() && !is_done(); ++i) {
      edit_statement(list[i]);
      if (!is_done()) edit_list(list[i].body);
      if (!is_done()) edit_list(list[i].other);
    }
  }

  static void unwrap(std::vector<Statement>& list, size_t at, const std::vector<Statement>& inner) {
    const std::vector<Statement> kept = inner;
    list.erase(list.begin() + static_cast<ptrdiff_t>(at));
    list.insert(list.begin() + static_cast<ptrdiff_t>(at), kept.begin(), kept.end());
  }

  void edit_statement(Statement& s) {
    if (s.kind == Kind::Loop) offer_value(s.limit, 1U);
    if (s.kind == Kind::Shuffle) offer_value(s.limit, 1U);
    if (s.kind == Kind::Launch) edit_site(s.site);
    if (s.kind == Kind::Barrier) offer_value(s.limit, 0U);
    if (s.kind == Kind::Turns) edit_turns(s.turns);
    if (s.kind != Kind::Cell) return;
    edit_access(s.cell);
    if (s.values.size() > 3) offer([&] { s.values.resize(3); });
  }

  void edit_turns(TurnsForm& turns) {
    if (turns.count > 2) offer([&] { turns.count = 2; });
    offer_value(turns.relation, Relation::Barrier);
    offer_value(turns.is_reversed, false);
    offer_value(turns.is_unrolled, false);
  }

  void edit_access(CellAccess& access) {
    offer_value(access.via, Via::Register);
    offer_value(access.form, CellForm::Plain);
    offer_value(access.alias, false);
    offer_value(access.is_generic, false);
    offer_value(access.drops_result, false);
    offer_value(access.shift, 0U);
    offer_value(access.elements, 1U);
    offer_value(access.bytes, 4U);
    offer_value(access.op, CellOp::Write);
  }

  void edit_site(Site& site) {
    offer_value(site.launchers, 1U);
    offer_value(site.neighbour, 0U);
    offer_value(site.follows, false);
    offer_value(site.stream, Stream::Null);
    offer_value(site.block_cells, 0U);
    if (site.depth > 0) offer([&] { --site.depth; });
    for (Extent& extent : site.grid) edit_extent(extent);
    edit_extent(site.block_x);
  }

  void edit_extent(Extent& extent) {
    if (extent.spread > 1) {
      offer([&] { extent = {std::max(extent.low, 1U), 1, {}}; });
      if (!is_done() && extent.spread > 2) offer([&] { extent.spread = 2; });
    }
    if (!is_done() && extent.low > 1) offer([&] { extent.low = 1; });
  }

  // ---- kernels ----

  void edit_kernel(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    if (kernel.message) offer([&] { kernel.message.reset(); });
    offer_value(kernel.barrier_after_message, false);
    offer_value(kernel.dynamic_shared, false);
    if (kernel.own_words > 1) offer([&] { --kernel.own_words; });
    for (size_t axis = 0; axis < 3; ++axis) {
      if (kernel.grid.at(axis) > 1) offer([&] { resize(k, axis, 1, kernel.block.at(axis)); });
      if (kernel.block.at(axis) > 1) offer([&] { resize(k, axis, kernel.grid.at(axis), 1); });
      if (kernel.block.at(axis) > 2) {
        offer([&] { resize(k, axis, kernel.grid.at(axis), kernel.block.at(axis) / 2); });
      }
    }
    for (uint32_t v = 0; v < kernel.values.size() && !is_done(); ++v) {
      offer([&] { remove_value(k, v); });
      if (!is_done()) offer_value(kernel.values[v], Width::U32);
    }
    for (size_t p = 0; p < kernel.parameters.size() && !is_done(); ++p) {
      if (kernel.parameters[p].values.size() > 1) offer([&] { split(kernel, p); });
    }
  }

  static void split(Kernel& kernel, size_t p) {
    Parameter& parameter = kernel.parameters[p];
    const uint32_t last = parameter.values.back();
    parameter.values.pop_back();
    kernel.parameters.insert(kernel.parameters.begin() + static_cast<ptrdiff_t>(p) + 1,
                             {Role::Values, {last}});
  }

  // The most of a kernel's grid and block along one axis; its launches follow.
  void resize(uint32_t k, size_t axis, uint32_t grid, uint32_t block) {
    Kernel& kernel = program_.kernels[k];
    kernel.grid.at(axis) = grid;
    kernel.block.at(axis) = block;
    for (Step& step : program_.steps) {
      if (step.kernel != k) continue;
      step.grid.at(axis) = std::min(step.grid.at(axis), grid);
      step.block.at(axis) = std::min(step.block.at(axis), block);
    }
    for_sites_of(k, [&](Site& site) {
      fit(site.grid.at(axis), grid);
      if (axis == 0) fit(site.block_x, block);
    });
  }

  static void fit(Extent& extent, uint32_t most) {
    extent.low = std::min(extent.low, most);
    extent.spread = std::min(extent.spread, most - extent.low + 1);
  }

  template <class Visit>
  void for_sites_of(uint32_t k, const Visit& visit) {
    for (Kernel& kernel : program_.kernels) {
      for_each(kernel.body, [&](Statement& s) {
        if (s.kind == Kind::Launch && s.site.kernel == k) visit(s.site);
      });
    }
  }

  void remove_value(uint32_t k, uint32_t v) {
    Kernel& kernel = program_.kernels[k];
    kernel.values.erase(kernel.values.begin() + v);
    for (Parameter& p : kernel.parameters) {
      std::erase(p.values, v);
      for (uint32_t& value : p.values) value -= value > v ? 1 : 0;
    }
    std::erase_if(kernel.parameters,
                  [](const Parameter& p) { return p.role == Role::Values && p.values.empty(); });
    const auto forget = [v](Expression& e) {
      if (e.op != Op::Parameter) return;
      if (e.value == v)
        e = constant(1);
      else if (e.value > v)
        --e.value;
    };
    if (kernel.message) for_each_expression(*kernel.message, forget);
    for_each(kernel.body, [&](Statement& s) { expressions_of(s, forget); });
    for (Step& step : program_.steps) {
      if (step.kernel == k) step.arguments.erase(step.arguments.begin() + v);
    }
    for_sites_of(k, [v](Site& site) { site.arguments.erase(site.arguments.begin() + v); });
  }

  // ---- expressions ----

  void edit_expressions(std::vector<Statement>& list) {
    for (Statement& s : list) {
      if (is_done()) return;
      for (Expression& e : s.values) edit_expression(e);
      if (s.kind == Kind::Launch) {
        for (Extent& extent : s.site.grid) edit_expression(extent.of);
        edit_expression(s.site.block_x.of);
        edit_expression(s.site.cells_at);
        for (Expression& e : s.site.arguments) edit_expression(e);
      }
      edit_expressions(s.body);
      edit_expressions(s.other);
    }
  }

  Program& program_;
};

}  // namespace

Program reduce(Program program, const std::function<bool(const Program&)>& fails, size_t most_tries) {
  const auto edited = [](Program& smaller, size_t number) { return Edit(smaller, number).apply(); };
  const auto is_legal = [](const Program& p) {
    return problem(p).empty() && (!uses_cells(p) || disorder(p).empty());
  };
  return smallest(std::move(program), edited, is_legal, fails, most_tries);
}

size_t size_of(const Program& program) {
  size_t size = program.steps.size() + program.kernels.size();
  const auto count = [&size](const Expression& e) { size += is_constant(e, 0) || is_constant(e, 1) ? 0 : 1; };
  for (const Kernel& kernel : program.kernels) {
    size += kernel.values.size();
    if (kernel.message) for_each_expression(*kernel.message, count);
    for_each(kernel.body, [&](const Statement& s) {
      ++size;
      expressions_of(s, count);
    });
  }
  return size;
}

}  // namespace klap::differential::random
