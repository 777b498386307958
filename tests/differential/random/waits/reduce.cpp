#include "random/waits/reduce.h"

#include <algorithm>
#include <utility>

#include "random/one_edit.h"

namespace klap::differential::waits {

namespace {

bool is_used(const std::vector<Statement>& list, std::initializer_list<Kind> kinds) {
  bool found = false;
  random::for_each(
      list, [&](const Statement& s) { found = found || std::ranges::find(kinds, s.kind) != kinds.end(); });
  return found;
}

// Performs the edit of one number. Edits are counted in the order in which they are offered.
class Edit : private random::OneEdit {
 public:
  Edit(Program& program, size_t wanted) : OneEdit(wanted), program_(program) {}

  // False if there is no edit of that number.
  bool apply() {
    edit_steps();
    for (uint32_t k = 0; k < program_.kernels.size() && !is_done(); ++k) edit_list(program_.kernels[k].body);
    for (uint32_t k = 0; k < program_.kernels.size() && !is_done(); ++k) edit_kernel(k);
    for (Kernel& kernel : program_.kernels) edit_expressions(kernel.body);
    return is_done();
  }

 private:
  void edit_steps() {
    std::vector<Step>& steps = program_.steps;
    for (size_t i = steps.size(); i-- > 0 && !is_done() && steps.size() > 1;)
      offer([&] { steps.erase(steps.begin() + static_cast<ptrdiff_t>(i)); });
    for (size_t i = 0; i < steps.size() && !is_done(); ++i) {
      if (steps[i].depth > 0) offer([&] { --steps[i].depth; });
      for (uint32_t& argument : steps[i].arguments) offer_value(argument, 0U);
    }
  }

  void edit_list(std::vector<Statement>& list) {
    const auto half = static_cast<ptrdiff_t>(list.size() / 2);
    if (half >= 2) {
      offer([&] { list.erase(list.begin() + half, list.end()); });
      if (!is_done()) offer([&] { list.erase(list.begin(), list.begin() + half); });
    }
    for (size_t i = list.size(); i-- > 0 && !is_done();) {
      const auto at = list.begin() + static_cast<ptrdiff_t>(i);
      offer([&] { list.erase(at); });
      if (is_done()) return;
      if (at->kind == Kind::If && !at->body.empty()) offer([&] { put_in_place(list, i, at->body); });
      if (!is_done() && at->kind == Kind::If && !at->other.empty())
        offer([&] { put_in_place(list, i, at->other); });
    }
    for (size_t i = 0; i < list.size() && !is_done(); ++i) {
      edit_list(list[i].body);
      if (!is_done()) edit_list(list[i].other);
      if (!is_done()) edit_statement(list[i]);
    }
  }

  static void put_in_place(std::vector<Statement>& list, size_t i, std::vector<Statement> inner) {
    const auto at = list.erase(list.begin() + static_cast<ptrdiff_t>(i));
    list.insert(at, std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  }

  void edit_statement(Statement& s) {
    if (s.kind == Kind::Loop && s.limit > 1) offer([&] { s.limit = 1; });
    if (s.kind == Kind::Wait) offer_value(s.number, kNoVariable);
    if (s.kind == Kind::Barrier) offer_value(s.limit, 0U);
    if (s.kind == Kind::LoadShared) offer_value(s.limit, 0U);
    if (s.kind == Kind::Launch) {
      offer_value(s.site.grid_low, 1U);
      offer_value(s.site.grid_spread, 1U);
      offer_value(s.site.depth, 0U);
    }
    for (size_t i = 0; i < s.types.size(); ++i) offer_value(s.types[i], Type::Word);
  }

  void edit_kernel(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    for (size_t axis = 0; axis < 3; ++axis) {
      for (uint32_t* const extent : {&kernel.grid.at(axis), &kernel.block.at(axis)}) {
        offer_value(*extent, 1U);
        if (*extent > 2) offer([&] { *extent /= 2; });
      }
    }
    for (size_t i = 0; i < kernel.types.size() && !is_done(); ++i) offer_value(kernel.types[i], Type::Word);
    if (!is_used(kernel.body, {Kind::StoreLocal, Kind::LoadLocal})) offer_value(kernel.local_elements, 0U);
    if (!is_used(kernel.body,
                 {Kind::StoreShared, Kind::LoadShared, Kind::AddTotal, Kind::ClearTotal, Kind::LoadTotal}))
      offer_value(kernel.has_shared, false);
    offer_value(kernel.is_dynamic, false);
    offer_value(kernel.is_generic, false);
    offer_value(kernel.local_bytes, 4U);
    offer_value(kernel.slot_bytes, 4U);
    if (is_done()) fit_sites(k);
  }

  void fit_sites(uint32_t k) {
    const uint32_t most = program_.kernels[k].grid[0];
    for (Kernel& kernel : program_.kernels) {
      random::for_each(kernel.body, [&](Statement& s) {
        if (s.kind != Kind::Launch || s.site.kernel != k) return;
        s.site.grid_low = std::min(s.site.grid_low, most);
        s.site.grid_spread = std::min(s.site.grid_spread, most - s.site.grid_low + 1);
      });
    }
  }

  void edit_expressions(std::vector<Statement>& list) {
    for (Statement& s : list) {
      if (is_done()) return;
      for (Expression& e : s.values) edit_expression(e);
      if (s.kind == Kind::Function) edit_expression(s.result);
      if (s.kind == Kind::Launch) {
        edit_expression(s.site.grid_of);
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
  const auto is_legal = [](const Program&) { return true; };
  return random::smallest(std::move(program), edited, is_legal, fails, most_tries);
}

size_t size_of(const Program& program) {
  size_t size = program.steps.size() + program.kernels.size();
  const auto count = [&size](const Expression& e) {
    size += random::is_constant(e, 0) || random::is_constant(e, 1) ? 0 : 1;
  };
  for (const Kernel& kernel : program.kernels) {
    random::for_each(kernel.body, [&](const Statement& s) {
      ++size;
      for (const Expression& e : s.values) random::for_each_expression(e, count);
      for (const Expression& e : s.site.arguments) random::for_each_expression(e, count);
    });
  }
  return size;
}

}  // namespace klap::differential::waits
