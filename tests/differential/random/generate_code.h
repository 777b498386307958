// The random bodies of kernels and functions.
#pragma once

#include <set>
#include <vector>

#include "random/generate.h"
#include "random/random_source.h"

namespace klap::differential::random {

Function make_function(Random& random);

class CodeMaker {
 public:
  // Makes the code of kernel `number`; the kernels behind it are complete.
  CodeMaker(Random& random, const Mix& mix, Program& program, uint32_t number)
      : random_(random), mix_(mix), program_(program), number_(number), kernel_(program.kernels[number]) {}

  // Everything but launches.
  void make_body();
  // Launches at random places in it, of itself and of kernels behind it.
  void add_launches();

 private:
  // Where threads stand: whether all of a block come there, and which loop counters there are.
  struct Place {
    bool uniform = true;
    uint32_t depth = 0;
    std::vector<uint32_t> counters, uniform_counters;
  };

  uint32_t new_variable() { return kernel_.variables++; }
  std::vector<Statement> statements(const Place& place);
  Statement statement(const Place& place);
  Statement assign(const Place& place);
  Statement update(const Place& place);
  Statement branch(const Place& place);
  Statement loop(const Place& place);
  Statement call(const Place& place);
  Statement exchange(const Place& place);
  Statement shuffle(const Place& place);

  Expression leaf(const Place& place, bool uniform);
  Expression leaf_of_linear(const Place& place);
  Expression bound_of(const Kernel& child, const Place& place);
  Expression expression(const Place& place, uint32_t depth, bool uniform = false);
  Expression condition(const Place& place, bool uniform = false);

  // A list of statements where a launch may stand.
  struct Gap {
    std::vector<Statement>* list = nullptr;
    Place place;
  };
  void find_gaps(std::vector<Statement>& list, const Place& place, std::vector<Gap>& gaps);
  Site site(uint32_t child, const Place& place);
  Extent extent(uint32_t most, const Place& place, bool may_be_empty);
  Stream stream();

  Random& random_;
  const Mix& mix_;
  Program& program_;
  uint32_t number_;
  Kernel& kernel_;
  std::vector<uint32_t> assigned_;  // variables that have a value worth reading
  bool shuffles_ = false;
  bool by_index_ = false;  // nothing but their index tells threads apart
  bool is_short_ = false;  // straight code that its launching thread may run
};

}  // namespace klap::differential::random
