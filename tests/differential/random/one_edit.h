// How failing programs are made smaller, whatever they are made of.
//
// Every edit that could take something away has a number: its place in the order in which they are offered.
// One is made at a time.
#pragma once

#include <cstddef>
#include <utility>

#include "random/program.h"

namespace klap::differential::random {

// The edit of one number. After it was made nothing that was found before may be touched again.
class OneEdit {
 public:
  explicit OneEdit(size_t wanted) : wanted_(wanted) {}

 protected:
  [[nodiscard]] bool is_done() const { return is_done_; }

  template <class Change>
  void offer(const Change& change) {
    if (is_done_ || seen_++ != wanted_) return;
    change();
    is_done_ = true;
  }
  // None is offered that would change nothing.
  template <class T>
  void offer_value(T& item, T value) {
    if (is_done_ || item == value) return;
    offer([&] { item = value; });
  }

  void edit_expression(Expression& e) {
    if (is_done_ || is_constant(e, 0)) return;
    offer([&] { e = constant(0); });
    if (is_done_ || is_constant(e, 1)) return;
    offer([&] { e = constant(1); });
    for (size_t i = 0; i < e.operands.size() && !is_done_; ++i) {
      offer([&] {
        Expression kept = e.operands[i];
        e = std::move(kept);
      });
    }
    for (size_t i = 0; i < e.operands.size() && !is_done_; ++i) edit_expression(e.operands[i]);
  }

 private:
  size_t wanted_, seen_ = 0;
  bool is_done_ = false;
};

// Makes edits for as long as the program still fails. `edited` makes the edit of a number, and returns false
// if there is none. `fails` is asked about programs that are `legal`, and so many times at most.
template <class Program, class Edited, class Legal, class Fails>
Program smallest(Program program, const Edited& edited, const Legal& legal, const Fails& fails,
                 size_t most_tries) {
  size_t tries = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t number = 0; tries < most_tries;) {
      Program smaller = program;
      if (!edited(smaller, number)) break;
      prepare(smaller);
      const bool is_legal = legal(smaller);
      if (is_legal) ++tries;
      if (is_legal && fails(smaller)) {
        program = std::move(smaller);
        progress = true;  // the same number is the next edit now
      } else {
        ++number;
      }
    }
  }
  return program;
}

}  // namespace klap::differential::random
