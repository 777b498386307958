#include "random/waits/reduce.h"

#include <algorithm>
#include <utility>

namespace klap::differential::waits {

namespace {

bool is_constant(const Expression& e, uint32_t value) { return e.op == Op::Constant && e.value == value; }

bool is_used(const std::vector<Statement>& list, std::initializer_list<Kind> kinds) {
  bool found = false;
  random::for_each(
      list, [&](const Statement& s) { found = found || std::ranges::find(kinds, s.kind) != kinds.end(); });
  return found;
}

// Performs the edit of one number. Edits are counted in the order in which they are offered.
class Edit {
 public:
  Edit(Program& program, size_t wanted) : program_(program), wanted_(wanted) {}

  // False if there is no edit of that number.
  bool apply() {
    edit_steps();
    for (uint32_t k = 0; k < program_.kernels.size() && !done_; ++k) edit_list(program_.kernels[k].body);
    for (uint32_t k = 0; k < program_.kernels.size() && !done_; ++k) edit_kernel(k);
    for (Kernel& kernel : program_.kernels) edit_expressions(kernel.body);
    return done_;
  }

 private:
  // After an edit was made nothing that was found before may be touched again.
  template <class Change>
  void offer(const Change& change) {
    if (done_ || seen_++ != wanted_) return;
    change();
    done_ = true;
  }
  template <class T>
  void offer_value(T& item, T value) {
    if (done_ || item == value) return;
    offer([&] { item = value; });
  }

  void edit_steps() {
    std::vector<Step>& steps = program_.steps;
    for (size_t i = steps.size(); i-- > 0 && !done_ && steps.size() > 1;)
      offer([&] { steps.erase(steps.begin() + static_cast<ptrdiff_t>(i)); });
    for (size_t i = 0; i < steps.size() && !done_; ++i) {
      if (steps[i].depth > 0) offer([&] { --steps[i].depth; });
      for (uint32_t& argument : steps[i].arguments) offer_value(argument, 0U);
    }
  }

  void edit_list(std::vector<Statement>& list) {
    const auto half = static_cast<ptrdiff_t>(list.size() / 2);
    if (half >= 2) {
      offer([&] { list.erase(list.begin() + half, list.end()); });
      if (!done_) offer([&] { list.erase(list.begin(), list.begin() + half); });
    }
    for (size_t i = list.size(); i-- > 0 && !done_;) {
      const auto at = list.begin() + static_cast<ptrdiff_t>(i);
      offer([&] { list.erase(at); });
      if (done_) return;
      if (at->kind == Kind::If && !at->body.empty()) offer([&] { put_in_place(list, i, at->body); });
      if (!done_ && at->kind == Kind::If && !at->other.empty())
        offer([&] { put_in_place(list, i, at->other); });
    }
    for (size_t i = 0; i < list.size() && !done_; ++i) {
      edit_list(list[i].body);
      if (!done_) edit_list(list[i].other);
      if (!done_) edit_statement(list[i]);
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
    for (size_t i = 0; i < kernel.types.size() && !done_; ++i) offer_value(kernel.types[i], Type::Word);
    if (!is_used(kernel.body, {Kind::StoreLocal, Kind::LoadLocal})) offer_value(kernel.local_elements, 0U);
    if (!is_used(kernel.body,
                 {Kind::StoreShared, Kind::LoadShared, Kind::AddTotal, Kind::ClearTotal, Kind::LoadTotal}))
      offer_value(kernel.has_shared, false);
    offer_value(kernel.is_dynamic, false);
    offer_value(kernel.is_generic, false);
    offer_value(kernel.local_bytes, 4U);
    offer_value(kernel.slot_bytes, 4U);
    if (done_) fit_sites(k);
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
      if (done_) return;
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

  void edit_expression(Expression& e) {
    if (done_ || is_constant(e, 0)) return;
    offer([&] { e = constant(0); });
    if (done_ || is_constant(e, 1)) return;
    offer([&] { e = constant(1); });
    for (size_t i = 0; i < e.operands.size() && !done_; ++i) {
      offer([&] {
        Expression kept = e.operands[i];
        e = std::move(kept);
      });
    }
    for (size_t i = 0; i < e.operands.size() && !done_; ++i) edit_expression(e.operands[i]);
  }

  Program& program_;
  size_t wanted_, seen_ = 0;
  bool done_ = false;
};

}  // namespace

Program reduce(Program program, const std::function<bool(const Program&)>& fails, size_t most_tries) {
  size_t tries = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t number = 0; tries < most_tries;) {
      Program smaller = program;
      if (!Edit(smaller, number).apply()) break;
      prepare(smaller);
      ++tries;
      if (fails(smaller)) {
        program = std::move(smaller);
        progress = true;  // the same number is the next edit now
      } else {
        ++number;
      }
    }
  }
  return program;
}

size_t size_of(const Program& program) {
  size_t size = program.steps.size() + program.kernels.size();
  const auto count = [&size](const Expression& e) { size += is_constant(e, 0) || is_constant(e, 1) ? 0 : 1; };
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
