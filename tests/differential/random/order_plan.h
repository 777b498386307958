// What is chosen once for a random program whose result depends on the order of launches, before its kernels
// are made (generate_order.h), and what both its parents and its children are made with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "random/generate.h"
#include "random/generate_parts.h"
#include "random/random_source.h"

namespace klap::differential::random {

// What accesses to cells may do in one program.
enum class OrderStyle : uint8_t { Ordered, Adding, Maximum, Scratch, Same };

// What the only conflict of a program can be, whose children make one access and nothing else: then one rule
// of the analysis decides over it.
enum class Conflict : uint8_t {
  Values,      // stores of different values
  Literals,    // the same, of values in the code
  Reads,       // one kernel reads what another one stores
  Results,     // what an atomic operation returns
  Operations,  // different atomic operations, whose results nobody uses
  Exchanges,
  Rows,     // each of a child's first threads has a word of its own
  Floats,   // sums that are rounded
  Updates,  // load and store, by launches in no order
};

// What a plain child's cell depends on beside one number that may be different for each thread.
enum class Beside : uint8_t { Nothing, Value, Pointer };

// Where children look up which cell they use, if they do so in memory that the program writes. Then all
// blocks give their children one array, and the numbers found there keep the blocks apart.
enum class Lookup : uint8_t { None, Message, Cells };
inline constexpr uint32_t kTable = 1024;  // cells from here on hold such numbers, times 7

inline constexpr uint32_t kIndex = 0, kOperand = 1, kExtra = 2;  // the children's values

struct OrderPlan {
  OrderPlan(uint64_t seed, const Mix& allowed) : random(seed), mix(allowed) { program.seed = seed; }

  uint32_t pick(std::initializer_list<uint32_t> values) {
    return values.begin()[random.below(values.size())];
  }
  Expression number() { return constant(static_cast<uint32_t>(random.between(1, 40))); }

  // Gives a kernel its parameters, in a random order, for the values it has already.
  void begin_kernel(Kernel& kernel);
  // Threads that take turns to run `body`, which launches if this is a parent.
  Statement turns(const Kernel& kernel, std::vector<Statement> body, bool launches_children);

  Random random;
  const Mix& mix;
  Program program;
  bool is_commuting = false, reads_cells = false, needs_two = false;
  bool uses_messages = false, uses_tables = false;
  Lookup lookup = Lookup::None;
  bool repeats_launches = false;
  Beside beside = Beside::Nothing;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Statement> launches;  // by kernel and loops
  uint32_t multiple = 1;  // only threads whose number is a multiple launch
  OrderStyle style = OrderStyle::Ordered;
  std::optional<Conflict> conflict;  // of plain programs
  uint32_t first_child = 1;
};

}  // namespace klap::differential::random
