#include "random/generate_code.h"

#include <algorithm>
#include <array>

namespace klap::differential::random {

namespace {

constexpr std::array<Op, 11> kBinary = {Op::Add,   Op::Subtract, Op::Multiply,  Op::And,
                                        Op::Or,    Op::Xor,      Op::Minimum,   Op::Maximum,
                                        Op::Equal, Op::Less,     Op::LessSigned};

// An operation with a constant that makes sense for it.
Expression with_constant(Random& random, Expression operand) {
  static constexpr std::array<Op, 4> kOps = {Op::Divide, Op::Remainder, Op::ShiftLeft, Op::ShiftRight};
  const Op op = kOps.at(random.below(kOps.size()));
  const bool is_shift = op == Op::ShiftLeft || op == Op::ShiftRight;
  const auto value = static_cast<uint32_t>(is_shift ? random.below(32) : random.between(1, 40));
  return {op, value, {std::move(operand)}};
}

}  // namespace

Function make_function(Random& random) {
  const auto operand = [&random]() -> Expression {
    return random.chance(75) ? Expression{Op::Parameter, static_cast<uint32_t>(random.below(2)), {}}
                             : constant(random.number());
  };
  Function function;
  Expression inner{kBinary.at(random.below(kBinary.size())), 0, {operand(), operand()}};
  if (random.chance(50)) inner = with_constant(random, std::move(inner));
  function.step = {kBinary.at(random.below(6)), 0, {Expression{Op::Parameter, 0, {}}, std::move(inner)}};
  function.trips = random.chance(50) ? 1 : static_cast<uint32_t>(random.between(2, 6));
  return function;
}

// ---- expressions ----

// What threads may read that are told apart by their index alone.
Expression CodeMaker::leaf_of_linear(const Place& place) {
  switch (random_.below(7)) {
    case 0:
      return constant(random_.number());
    case 1:
      return {Op::Parameter, static_cast<uint32_t>(random_.below(kernel_.values.size())), {}};
    case 2:
      return {Op::Input, 0, {{Op::Linear, 0, {}}}};
    case 3:
      return {Op::Own, static_cast<uint32_t>(random_.below(kernel_.own_words)), {}};
    case 4:
      if (mix_.messages) return {Op::Message, 0, {}};
      return {Op::Linear, 0, {}};
    case 5:
      if (!place.counters.empty())
        return {Op::Local, place.counters[random_.below(place.counters.size())], {}};
      [[fallthrough]];
    default:
      if (!assigned_.empty()) return {Op::Local, assigned_[random_.below(assigned_.size())], {}};
      return {Op::Linear, 0, {}};
  }
}

// Nothing, one thread, a warp and its neighbours, all threads, more than there are, anything.
Expression CodeMaker::bound_of(const Kernel& child, const Place& place) {
  const uint32_t all = product(child.grid) * product(child.block);
  const std::array<uint32_t, 10> edges = {0, 0, 1, 2, 31, 32, 33, all - 1, all, all + 5};
  const auto edge = [&] { return constant(edges.at(random_.below(edges.size()))); };
  switch (random_.below(4)) {
    case 0:
      return edge();
    case 1:
      return {Op::Select, 0, {condition(place), edge(), edge()}};
    case 2:
      return {Op::Remainder, static_cast<uint32_t>(random_.between(1, 12)), {expression(place, 2)}};
    default:
      return {Op::Remainder, all + 3, {expression(place, 2)}};
  }
}

Expression CodeMaker::leaf(const Place& place, bool uniform) {
  if (by_index_) return leaf_of_linear(place);
  const auto one_of = [&](const std::vector<uint32_t>& variables) -> Expression {
    return {Op::Local, variables[random_.below(variables.size())], {}};
  };
  const auto axis = static_cast<uint32_t>(mix_.dimensions ? random_.below(3) : 0);
  switch (random_.below(uniform ? 7 : 13)) {
    case 0:
      return constant(random_.number());
    case 1:
      if (!kernel_.values.empty())
        return {Op::Parameter, static_cast<uint32_t>(random_.below(kernel_.values.size())), {}};
      return constant(random_.number());
    case 2:
      return {random_.chance(50) ? Op::Ctaid : Op::Nctaid, axis, {}};
    case 3:
      return {Op::Ntid, axis, {}};
    case 4:
      if (mix_.messages && random_.chance(50)) return {Op::Message, 0, {}};
      return {Op::Input, 0, {constant(static_cast<uint32_t>(random_.below(kInputWords)))}};
    case 5:
      if (!place.uniform_counters.empty()) return one_of(place.uniform_counters);
      return {Op::Ctaid, 0, {}};
    case 6:
      return {Op::Input, 0, {{Op::Ctaid, 0, {}}}};
    case 7:
      return {Op::Tid, axis, {}};
    case 8:
      return {random_.chance(50) ? Op::Thread : Op::Linear, 0, {}};
    case 9:
      if (mix_.previous && random_.chance(50)) return {Op::Previous, 0, {{Op::Linear, 0, {}}}};
      return {Op::Input, 0, {{Op::Linear, 0, {}}}};
    case 10:
      return {Op::Own, static_cast<uint32_t>(random_.below(kernel_.own_words)), {}};
    case 11:
      if (!place.counters.empty()) return one_of(place.counters);
      [[fallthrough]];
    default:
      if (!assigned_.empty()) return one_of(assigned_);
      return {Op::Linear, 0, {}};
  }
}

Expression CodeMaker::expression(const Place& place, uint32_t depth, bool uniform) {
  if (is_short_) depth = std::min(depth, 1U);
  if (depth == 0 || random_.chance(30)) return leaf(place, uniform);
  const auto operand = [&] { return expression(place, depth - 1, uniform); };
  switch (random_.below(10)) {
    case 0:
    case 1:
      return with_constant(random_, operand());
    case 2:
      return {Op::Select, 0, {condition(place, uniform), operand(), operand()}};
    case 3:
      return {Op::Input, 0, {operand()}};
    default:
      return {kBinary.at(random_.below(kBinary.size())), 0, {operand(), operand()}};
  }
}

// True for a good part of the threads, as a rule.
Expression CodeMaker::condition(const Place& place, bool uniform) {
  if (random_.chance(50)) {
    const auto modulus = static_cast<uint32_t>(random_.between(2, 5));
    return {Op::Less,
            0,
            {{Op::Remainder, modulus, {leaf(place, uniform)}},
             constant(static_cast<uint32_t>(random_.between(1, modulus - 1)))}};
  }
  return {random_.chance(50) ? Op::Less : Op::LessSigned,
          0,
          {leaf(place, uniform), expression(place, 1, uniform)}};
}

// ---- statements ----

void CodeMaker::make_body() {
  const bool is_child = number_ > 0;
  if (kernel_.bound) {
    by_index_ = random_.chance(80);
    is_short_ = random_.chance(70);
    const Expression passes{Op::Less, 0, {{Op::Linear, 0, {}}, {Op::Parameter, *kernel_.bound, {}}}};
    kernel_.body = statements({});
    if (!has_kind(kernel_.body, Kind::StoreOwn)) kernel_.body.push_back(update({}));
    kernel_.body.insert(kernel_.body.begin(), {Kind::If,
                                               0,
                                               0,
                                               {{Op::Equal, 0, {passes, constant(0)}}},
                                               {{Kind::Return, 0, 0, {}, {}, {}, {}}},
                                               {},
                                               {}});
    return;
  }
  shuffles_ = (mix_.shuffles || !is_child) && product(kernel_.block) % 32 == 0 && random_.chance(25);
  if (mix_.messages && random_.chance(50)) {
    Place top;
    kernel_.message = expression(top, 2);
    kernel_.barrier_after_message = (mix_.barriers || !is_child) && random_.chance(60);
  }
  kernel_.body = statements({});
  // Every kernel leaves a trace.
  if (!has_kind(kernel_.body, Kind::StoreOwn)) kernel_.body.push_back(update({}));
}

std::vector<Statement> CodeMaker::statements(const Place& place) {
  std::vector<Statement> list;
  const uint64_t count = random_.between(1, is_short_ ? 2 : place.depth == 0 ? 5 : 3);
  for (uint64_t i = 0; i < count; ++i) list.push_back(statement(place));
  return list;
}

Statement CodeMaker::statement(const Place& place) {
  const bool may_wait = place.uniform && (mix_.barriers || number_ == 0) && !kernel_.bound;
  switch (random_.below(is_short_ ? 5 : place.depth >= 2 ? 9 : 13)) {
    case 0:
    case 1:
      return assign(place);
    case 2:
    case 3:
      return update(place);
    case 4:
      if (kernel_.own_words > 1) {
        const auto word = static_cast<uint32_t>(random_.between(1, kernel_.own_words - 1));
        return {Kind::StoreOwn, word, 0, {expression(place, 2)}, {}, {}, {}};
      }
      return update(place);
    case 5:
      if (!program_.functions.empty()) return call(place);
      return assign(place);
    case 6:
      if (may_wait && random_.chance(60)) return exchange(place);
      return assign(place);
    case 7:
      if (shuffles_ && place.uniform) return shuffle(place);
      return update(place);
    case 8:
      if (mix_.exits && !shuffles_ && random_.chance(50)) {
        return {Kind::If, 0, 0, {condition(place)}, {{Kind::Return, 0, 0, {}, {}, {}, {}}}, {}, {}};
      }
      return update(place);
    case 9:
    case 10:
      return loop(place);
    default:
      return branch(place);
  }
}

Statement CodeMaker::assign(const Place& place) {
  Statement s{Kind::Assign, 0, 0, {expression(place, 3)}, {}, {}, {}};
  const bool is_new = assigned_.empty() || random_.chance(50);
  s.number = is_new ? new_variable() : assigned_[random_.below(assigned_.size())];
  if (is_new) assigned_.push_back(s.number);
  return s;
}

Statement CodeMaker::update(const Place& place) {
  const auto sum = static_cast<uint32_t>(random_.below(kSums));
  const uint32_t with_result = random_.chance(40) ? 1 : 0;  // atom instead of red
  return {Kind::Update, sum, with_result, {expression(place, 1), expression(place, 3)}, {}, {}, {}};
}

Statement CodeMaker::branch(const Place& place) {
  Place inside = place;
  ++inside.depth;
  const bool uniform = place.uniform && random_.chance(30);
  inside.uniform = uniform;
  Statement s{Kind::If, 0, 0, {condition(place, uniform)}, statements(inside), {}, {}};
  if (random_.chance(40)) s.other = statements(inside);
  return s;
}

Statement CodeMaker::loop(const Place& place) {
  Place inside = place;
  ++inside.depth;
  const bool uniform = place.uniform && random_.chance(50);
  inside.uniform = uniform;
  const uint32_t counter = new_variable();
  Statement s{
      Kind::Loop, counter, static_cast<uint32_t>(random_.between(1, 4)), {expression(place, 2, uniform)}, {},
      {},         {}};
  inside.counters.push_back(counter);
  if (uniform) inside.uniform_counters.push_back(counter);
  s.body = statements(inside);
  return s;
}

Statement CodeMaker::call(const Place& place) {
  const auto function = static_cast<uint32_t>(random_.below(program_.functions.size()));
  Statement s{Kind::Call, 0, function, {expression(place, 1), expression(place, 1)}, {}, {}, {}};
  s.number = new_variable();
  assigned_.push_back(s.number);
  return s;
}

Statement CodeMaker::exchange(const Place& place) {
  Statement s{Kind::Exchange, 0, 0, {expression(place, 2), expression(place, 1)}, {}, {}, {}};
  s.number = new_variable();
  assigned_.push_back(s.number);
  return s;
}

Statement CodeMaker::shuffle(const Place& place) {
  Statement s{
      Kind::Shuffle, 0, static_cast<uint32_t>(random_.between(1, 31)), {expression(place, 2)}, {}, {}, {}};
  s.number = new_variable();
  assigned_.push_back(s.number);
  return s;
}

// ---- launches ----

void CodeMaker::find_gaps(std::vector<Statement>& list, const Place& place, std::vector<Gap>& gaps) {
  gaps.push_back({&list, place});
  for (Statement& s : list) {
    Place inside = place;
    if (s.kind == Kind::Loop) {
      if (!mix_.loops) continue;
      inside.counters.push_back(s.number);
    }
    if (s.kind == Kind::If || s.kind == Kind::Loop) find_gaps(s.body, inside, gaps);
    if (s.kind == Kind::If && !s.other.empty()) find_gaps(s.other, inside, gaps);
  }
}

void CodeMaker::add_launches() {
  const uint64_t count = mix_.sites ? random_.between(1, 3) : 1;
  const auto kernels = static_cast<uint32_t>(program_.kernels.size());
  bool is_recursive = false;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t child = static_cast<uint32_t>(random_.between(number_ + 1, kernels - 1));
    // Without nesting only those that launch nothing are children.
    if (!mix_.nested) child = static_cast<uint32_t>(random_.between(kernels / 2, kernels - 1));
    if (mix_.recursion && !is_recursive && random_.chance(25)) {
      child = number_;
      is_recursive = true;
    }
    std::vector<Gap> gaps;
    find_gaps(kernel_.body, {}, gaps);
    const Gap& gap = gaps[random_.below(gaps.size())];
    Statement s{Kind::Launch, 0, 0, {}, {}, {}, site(child, gap.place)};
    gap.list->insert(gap.list->begin() + static_cast<ptrdiff_t>(random_.below(gap.list->size() + 1)),
                     std::move(s));
  }
}

Extent CodeMaker::extent(uint32_t most, const Place& place, bool may_be_empty) {
  Extent e;
  const uint32_t least = may_be_empty && random_.chance(15) ? 0 : 1;
  e.low = static_cast<uint32_t>(random_.between(least, most));
  if (random_.chance(60)) {
    e.spread = static_cast<uint32_t>(random_.between(1, most - e.low + 1));
    e.of = expression(place, 2);
  }
  return e;
}

Stream CodeMaker::stream() {
  std::vector<Stream> streams;
  if (mix_.null_stream) streams.push_back(Stream::Null);
  if (mix_.per_thread) streams.push_back(Stream::PerThread);
  if (mix_.fire_and_forget) streams.push_back(Stream::FireAndForget);
  return streams.empty() ? Stream::Null : streams[random_.below(streams.size())];
}

Site CodeMaker::site(uint32_t child_number, const Place& place) {
  const Kernel& child = program_.kernels[child_number];
  Site s;
  s.kernel = child_number;
  for (size_t axis = 0; axis < 3; ++axis) s.grid.at(axis) = extent(child.grid.at(axis), place, mix_.refused);
  s.block_x.low = child.block[0];
  if (mix_.varying_blocks && !has_kind(child.body, Kind::Shuffle) && random_.chance(30)) {
    s.block_x = extent(child.block[0], place, false);
  }
  s.follows =
      mix_.following && child_number == number_ && !has_kind(child.body, Kind::Shuffle) && random_.chance(50);
  s.stream = stream();
  if (child_number == number_) {
    s.launchers = static_cast<uint32_t>(random_.between(1, 2));
  } else {
    s.launchers = random_.chance(50) ? 0 : static_cast<uint32_t>(random_.between(1, 20));
  }
  s.depth = is_recursive(program_, child_number) ? static_cast<uint32_t>(random_.between(1, 3)) : 0;
  if (kernel_.barrier_after_message && random_.chance(50))
    s.neighbour = static_cast<uint32_t>(random_.between(1, 9));
  for (size_t v = 0; v < child.values.size(); ++v)
    s.arguments.push_back(child.bound == v ? bound_of(child, place) : expression(place, 2));
  return s;
}

}  // namespace klap::differential::random
