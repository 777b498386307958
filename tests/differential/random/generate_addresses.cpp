#include "random/generate_addresses.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "random/address_forms.h"
#include "random/generate_parts.h"

namespace klap::differential::random {

namespace {

class AddressMaker {
 public:
  AddressMaker(uint64_t seed, const Mix& mix) : random_(seed) {
    program_.seed = seed;
    program_.kernels.resize(2);
    has_blocks_ = mix.unordered && mix.blocks && !mix.tolerated && random_.chance(50);
    form_ = has_blocks_ ? any_of(kFormsOfBlocks) : any_of(kOrderedForms);
    if (!has_blocks_ && mix.unordered && random_.chance(6)) form_ = AddressForm::Iterations;
    if (!has_blocks_ && seed % 16 == 3) form_ = AddressForm::Offsets;  // few others show an order
    is_commuting_ = has_blocks_ || form_ == AddressForm::Iterations ||
                    (mix.unordered && form_ != AddressForm::Offsets && random_.chance(65));
  }

  Candidate make() {
    choose_threads();
    begin(child(), {Width::U32, Width::U32, Width::U32, Width::U32});
    begin(parent(), {Width::U32, Width::U32, Width::U32});
    make_child();
    make_parent();
    make_steps();
    program_.previous_words = 1;
    prepare(program_);
    return {std::move(program_), is_commuting_};
  }

 private:
  static constexpr uint32_t kIndex = 0, kOperand = 1, kExtra = 2, kBound = 3;  // the child's values
  static constexpr uint32_t kFirst = 0, kSecond = 1;                           // the parent's values
  static constexpr uint32_t kBlockCells = 512;
  static constexpr uint32_t kTable = 1024;  // cells from here on hold numbers of cells, times 7

  // A word's number times 2^21 fits 32 bits for every thread of a block. With the offset that is shifted by
  // so much, all threads that launch come to 2^64.
  static constexpr uint32_t kFarScale = 21, kFarShift = 38;

  Kernel& parent() { return program_.kernels[0]; }
  Kernel& child() { return program_.kernels[1]; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_.below(values.size())];
  }
  template <class Forms>
  AddressForm any_of(const Forms& forms) {
    return forms.at(random_.below(forms.size()));
  }
  Expression some(uint32_t least, uint32_t most) {
    return constant(static_cast<uint32_t>(random_.between(least, most)));
  }

  void begin(Kernel& kernel, std::vector<Width> values) {
    kernel.own_words = 4;
    kernel.values = std::move(values);
    for (const Role role : {Role::Input, Role::Sums, Role::Own, Role::Room, Role::Depth, Role::Message,
                            Role::Cells, Role::Alias}) {
      kernel.parameters.push_back({role, {}});
    }
    for (uint32_t v = 0; v < kernel.values.size(); ++v) kernel.parameters.push_back({Role::Values, {v}});
    for (size_t i = kernel.parameters.size(); i-- > 1;)
      std::swap(kernel.parameters[i], kernel.parameters[random_.below(i + 1)]);
  }

  void choose_threads() {
    Kernel& kernel = parent();
    kernel.block = pick<Dim3>({{4, 1, 1}, {8, 1, 1}, {7, 1, 1}, {32, 1, 1}, {32, 1, 1}});
    if (random_.chance(15)) kernel.block = pick<Dim3>({{2, 2, 1}, {4, 2, 1}, {2, 2, 2}});
    if (form_ == AddressForm::Plane) kernel.block = pick<Dim3>({{2, 2, 2}, {3, 2, 2}, {2, 1, 3}});
    if (has_blocks_) kernel.grid = {random_.chance(70) ? 2U : 3U, 1, 1};
    if (form_ == AddressForm::NumberWraps || form_ == AddressForm::StepWraps) multiple_ = pick({2U, 4U});
    if (form_ == AddressForm::FarSteps || form_ == AddressForm::FarRows) {
      kernel.block = {32, 1, 1};
      multiple_ = form_ == AddressForm::FarRows ? 4 : 8;
    }
  }

  // ---- expressions of the parent ----

  // Gives each thread of the block another number.
  Expression number() {
    const bool is_row = product(parent().block) == parent().block[0];
    return is_row && random_.chance(40) ? leaf(Op::Tid, 0) : leaf(Op::Thread);
  }
  // Adds a parameter, so that nothing is known of the number's size.
  Expression number_from_parameter() { return with(Op::Add, number(), leaf(Op::Parameter, kFirst)); }
  Expression multiple(Expression e) {
    return random_.chance(60) ? e : with(Op::Multiply, std::move(e), constant(pick({2U, 4U})));
  }
  // Adds something to a multiple of the thread's number.
  Expression beside(Expression e) {
    Expression own = multiple(number());
    return with(Op::Add, std::move(own), std::move(e));
  }
  // Loads a small number from the input.
  Expression loaded(Expression at) {
    Expression found = with(Op::Input, 0, std::move(at));
    return random_.chance(60) ? with(Op::And, std::move(found), constant(pick({1U, 3U, 7U})))
                              : with(Op::Remainder, pick({3U, 5U}), std::move(found));
  }
  Expression function(Expression e) {
    switch (random_.below(7)) {
      case 0:
        return with(Op::Divide, pick({2U, 3U}), std::move(e));
      case 1:
        return with(Op::Remainder, pick({2U, 3U}), std::move(e));
      case 2:
        return with(Op::And, std::move(e), constant(pick({1U, 2U, 6U, 30U})));
      case 3:
        return with(Op::ShiftRight, pick({1U, 2U}), std::move(e));
      case 4:
        return with(Op::Minimum, std::move(e), some(1, 3));
      case 5:
        return with(Op::Maximum, std::move(e), some(2, 5));
      default:
        return select(with(Op::Less, e, some(1, 3)), e, constant(0));
    }
  }
  Expression large_multiple(Expression e) {
    const auto bits = 32 - static_cast<uint32_t>(std::countr_zero(multiple_));
    return random_.chance(50) ? with(Op::ShiftLeft, bits, std::move(e))
                              : with(Op::Multiply, std::move(e), constant(1U << bits));
  }

  // ---- the child ----

  void make_child() {
    switch (form_) {
      case AddressForm::Argument:
        return add(random_.chance(50) ? narrow(with(Op::Add, multiple(index()), leaf(Op::Parameter, kExtra)))
                                      : wide(index(), constant(pick({1U, 2U})), leaf(Op::Parameter, kExtra)));
      case AddressForm::NumberWraps:
        return add(narrow(is_by_child() ? large_multiple(index()) : index()));
      case AddressForm::StepWraps: {
        Statement s = narrow(index());
        s.cell.shift = 64 - static_cast<uint32_t>(std::countr_zero(4 * multiple_));
        return add(std::move(s));
      }
      case AddressForm::FarSteps: {
        Statement s = narrow(index());
        s.cell.shift = kFarShift;
        return add(std::move(s));
      }
      case AddressForm::FarRows:
        return add_far_row();
      case AddressForm::Function:
        return add(narrow(is_by_child() ? function(index()) : index()));
      case AddressForm::Factor:
        return add(
            narrow(is_by_child() ? with(Op::Multiply, index(), leaf(Op::Parameter, kExtra)) : index()));
      case AddressForm::WideFactor:
        return add(wide(index(), leaf(Op::Parameter, kExtra), some(0, 2)));
      case AddressForm::TwoNumbers:
        return add(is_by_child() ? wide(index(), constant(pick({1U, 2U})), leaf(Op::Parameter, kExtra))
                                 : narrow(index()));
      case AddressForm::NarrowSteps:
        if (is_by_child()) return add_narrow_steps();
        [[fallthrough]];
      case AddressForm::Steps:
      case AddressForm::Bases:
      case AddressForm::NarrowBases:
      case AddressForm::Shifts:
        return add_both();
      case AddressForm::Offsets:
        return add_offsets();
      case AddressForm::Rows:
      case AddressForm::LongRows:
        return add_row();
      case AddressForm::ParentTable:
        return add(narrow(leaf(Op::Message)));
      case AddressForm::ChildTable:
        return add_looked_up();
      case AddressForm::OwnArrays:
      case AddressForm::LoneBlock:
        return add(narrow(loaded(index())));
      default:
        return add(narrow(index()));
    }
  }

  static Expression index() { return leaf(Op::Parameter, kIndex); }
  // Says whether the form stands in the child, where it may stand in the parent as well.
  bool is_by_child() const { return program_.seed % 2 == 0; }

  Statement narrow(Expression at) {
    Statement s = statement(Kind::Cell, child().variables++, 0,
                            {std::move(at), leaf(Op::Parameter, kOperand), constant(0)});
    s.cell.op = is_commuting_ ? CellOp::Add : pick({CellOp::Write, CellOp::Write, CellOp::Affine});
    return s;
  }
  // The word row * columns + column, in 64 bits.
  Statement wide(Expression row, Expression columns, Expression column) {
    Statement s = narrow(std::move(row));
    s.values.push_back(std::move(columns));
    s.values.push_back(std::move(column));
    return s;
  }

  void add(Statement s) { add_all({std::move(s)}); }
  void add_two(Statement a, Statement b) {
    if (random_.chance(50)) std::swap(a, b);
    if (!is_commuting_) b.values[1] = with(Op::Add, std::move(b.values[1]), some(50, 60));
    add_all({std::move(a), std::move(b)});
  }
  void add_all(std::vector<Statement> body) {
    if (is_commuting_ && random_.chance(40))
      body = {statement(Kind::Loop, child().variables++, 2, {constant(2)}, std::move(body))};
    std::ranges::move(body, std::back_inserter(child().body));
  }

  void add_both() {
    Statement first = narrow(index());
    add_two(std::move(first), second_access());
  }

  // Both begin at a parameter, so that neither sum is known to fit its register.
  void add_narrow_steps() {
    const auto behind = [](Expression e) { return with(Op::Add, std::move(e), leaf(Op::Parameter, kExtra)); };
    Statement first = narrow(behind(index()));
    add_two(std::move(first), narrow(behind(with(Op::Multiply, index(), constant(pick({2U, 3U}))))));
  }

  Statement second_access() {
    switch (form_) {
      case AddressForm::Steps: {
        Statement s = narrow(index());
        s.cell.shift = 1;
        return s;
      }
      case AddressForm::NarrowSteps:
        return narrow(with(Op::Multiply, index(), constant(pick({2U, 2U, 3U}))));
      case AddressForm::Bases:
        return wide(index(), constant(1), leaf(Op::Parameter, kExtra));
      case AddressForm::NarrowBases:
        return narrow(with(Op::Add, index(), leaf(Op::Parameter, kExtra)));
      default:
        return narrow(with(Op::Add, index(), some(1, 3)));
    }
  }

  void add_far_row() {
    child().block = {4, 1, 1};
    Statement s = wide(index(), leaf(Op::Parameter, kExtra), leaf(Op::Tid, 0));
    s.cell.shift = kFarShift;
    add(only_if(with(Op::Less, leaf(Op::Tid, 0), leaf(Op::Parameter, kExtra)), {std::move(s)}));
  }

  // Each of both commutes with itself.
  void add_offsets() {
    Statement sum = narrow(constant(offset_));
    Statement most = narrow(random_.chance(60) ? leaf(Op::Parameter, kExtra)
                                               : with(Op::Add, leaf(Op::Parameter, kExtra), some(1, 2)));
    // The operands are larger than what cells hold at first.
    for (Statement* access : {&sum, &most})
      access->values[1] = with(Op::Multiply, std::move(access->values[1]), constant(4096));
    sum.cell.op = CellOp::AtomicAdd;
    most.cell.op = CellOp::AtomicMaximum;
    if (random_.chance(50)) std::swap(sum, most);
    add_all({std::move(sum), std::move(most)});
  }

  void add_looked_up() {
    Statement s = narrow(index());
    const uint32_t found = s.number;
    s.cell.op = CellOp::Read;
    s.cell.alias = random_.chance(25);
    child().body.push_back(std::move(s));
    add(narrow(with(Op::And, with(Op::Divide, 7, leaf(Op::Local, found)), constant(kTable - 1))));
  }

  // Some threads of the child use a row of words. Rows are as long as the number of those threads, or
  // shorter.
  void add_row() {
    Kernel& kernel = child();
    kernel.block = pick<Dim3>({{4, 1, 1}, {8, 1, 1}, {8, 1, 1}, {4, 2, 1}, {2, 3, 1}});
    const bool is_plane = kernel.block[1] > 1, is_long = form_ == AddressForm::LongRows;
    const uint32_t axis = is_plane && random_.chance(30) ? 1 : 0;
    const Expression column = leaf(Op::Tid, axis);
    const auto active = static_cast<uint32_t>(random_.between(1, 3));
    Statement s;
    if (is_long) {
      s = wide(index(), leaf(Op::Parameter, kExtra), column);
    } else {
      const Expression length = constant(std::max(active, 2U) - static_cast<uint32_t>(random_.below(2)));
      s = random_.chance(50) ? wide(index(), length, column)
                             : narrow(with(Op::Add, with(Op::Multiply, index(), length), column));
    }
    std::vector<Statement> body = {std::move(s)};
    if (random_.chance(90)) {
      // The guard lets the row's threads through, or sometimes the others.
      Expression place = is_plane && random_.chance(50) ? leaf(Op::Tid, 1 - axis) : column;
      Expression bound = constant(active);
      if (is_long && random_.chance(80)) bound = leaf(Op::Parameter, random_.chance(30) ? kExtra : kBound);
      const Op less = random_.chance(70) ? Op::Less : Op::LessSigned;
      body = {only_if(with(less, std::move(place), std::move(bound)), std::move(body))};
      if (random_.chance(is_long ? 10 : 35)) std::swap(body[0].body, body[0].other);
    }
    // The printer writes every second comparison of a kernel in another form.
    if (random_.chance(50)) body = {only_if(with(Op::Less, leaf(Op::Linear), constant(32)), std::move(body))};
    if (is_plane && random_.chance(50))
      body = {only_if(with(Op::Equal, leaf(Op::Tid, 1 - axis), constant(0)), std::move(body))};
    std::ranges::move(body, std::back_inserter(kernel.body));
  }

  // ---- the parent ----

  Site site() {
    Site out;
    out.kernel = 1;
    const Kernel& kernel = child();
    for (size_t axis = 0; axis < 3; ++axis) out.grid.at(axis) = {1, 1, {}};
    out.block_x = {kernel.block[0], 1, {}};
    if (form_ == AddressForm::OwnArrays) {
      if (random_.chance(60)) {
        out.block_cells = kBlockCells;
      } else {
        out.cells_at = with(Op::Multiply, leaf(Op::Ctaid, 0), constant(kBlockCells / kCellAlign));
      }
    }
    if (form_ == AddressForm::TwoNumbers && !is_by_child()) out.cells_at = leaf(Op::Thread);
    out.arguments = {index_argument(),
                     random_.chance(70) ? with(Op::Add, leaf(Op::Linear), some(1, 40)) : some(1, 40),
                     extra_argument(), leaf(Op::Parameter, random_.chance(25) ? kFirst : kSecond)};
    return out;
  }

  Expression index_argument() {
    switch (form_) {
      case AddressForm::Loaded:
        return beside(loaded(number()));
      case AddressForm::Plane:
        return multiple(
            with(Op::Add, leaf(Op::Tid, 0), with(Op::Multiply, leaf(Op::Ntid, 0), leaf(Op::Tid, 1))));
      case AddressForm::NumberWraps:
        return is_by_child() ? number() : large_multiple(number());
      case AddressForm::FarSteps:
        return with(Op::Add, with(Op::ShiftLeft, kFarScale, number()), leaf(Op::Parameter, kFirst));
      case AddressForm::Function:
        return is_by_child() ? number() : function(number());
      case AddressForm::Factor:
        return is_by_child() ? number() : with(Op::Multiply, number(), leaf(Op::Parameter, kFirst));
      case AddressForm::TwoNumbers:
        if (is_by_child()) return number();
        return with(Op::Multiply, with(Op::Subtract, constant(40), number()), constant(kCellAlign));
      case AddressForm::NarrowSteps:
      case AddressForm::NarrowBases:
      case AddressForm::Shifts:
        if (form_ == AddressForm::NarrowSteps && is_by_child()) return number();
        return random_.chance(50) ? number_from_parameter() : number();
      case AddressForm::Offsets:
        return constant(0);
      case AddressForm::Iterations:
        return beside(random_.chance(30) ? leaf(Op::Local, counter_) : loaded(leaf(Op::Local, counter_)));
      case AddressForm::ChildTable:
        return in_block(with(Op::Add, constant(kTable), function(number())));
      default:
        return number();
    }
  }

  Expression extra_argument() {
    switch (form_) {
      case AddressForm::Argument:
        return random_.chance(70) ? loaded(number()) : with(Op::Subtract, constant(8), function(number()));
      case AddressForm::TwoNumbers:
        return with(Op::Subtract, constant(80), multiple(number()));
      default:
        return leaf(Op::Parameter, kFirst);
    }
  }

  // Gives the number of a cell among those of the block.
  static Expression in_block(Expression e) {
    return with(Op::Add, with(Op::Multiply, leaf(Op::Ctaid, 0), constant(kBlockCells / 2)), std::move(e));
  }

  void make_parent() {
    Kernel& kernel = parent();
    if (form_ == AddressForm::ParentTable) kernel.message = in_block(function(number()));
    if (form_ == AddressForm::Iterations) counter_ = kernel.variables++;
    Statement launch = statement(Kind::Launch, 0, 0, {});
    launch.site = site();
    std::vector<Statement> body;
    // A number that is computed first is the same expression at each site.
    if (random_.chance(30) && form_ != AddressForm::Iterations) {
      const uint32_t known = kernel.variables++;
      kernel.body.push_back(statement(Kind::Assign, known, 0, {launch.site.arguments[kIndex]}));
      launch.site.arguments[kIndex] = leaf(Op::Local, known);
    }
    body.push_back(std::move(launch));
    if (form_ == AddressForm::Iterations)
      body = {statement(Kind::Loop, counter_, 3, {some(2, 3)}, std::move(body))};
    if (multiple_ > 1)
      body = {only_if(with(Op::Equal, with(Op::Remainder, multiple_, leaf(Op::Thread)), constant(0)),
                      std::move(body))};
    body = is_commuting_ ? in_no_order(std::move(body)) : in_turns(std::move(body));
    if (form_ == AddressForm::LoneBlock) body = by_one_block(std::move(body));
    std::ranges::move(body, std::back_inserter(kernel.body));
  }

  std::vector<Statement> in_no_order(std::vector<Statement> body) {
    if (multiple_ > 1) return body;
    const bool are_many = product(parent().block) > 8;
    if (!are_many && random_.chance(70)) return body;
    return {only_if(with(Op::Less, leaf(Op::Thread), some(4, 8)), std::move(body))};
  }

  std::vector<Statement> in_turns(std::vector<Statement> body) {
    Statement s = statement(Kind::Turns, 0, 0, {}, std::move(body));
    const bool has_warp = product(parent().block) == 32;
    s.turns.relation =
        has_warp && random_.chance(50)
            ? pick({Relation::WarpBarrier, Relation::SomeLanes, Relation::Vote, Relation::Shuffle})
            : Relation::Barrier;
    s.turns.count = multiple_ > 4 ? 2 * multiple_ + 1 : static_cast<uint32_t>(random_.between(2, 8));
    s.turns.is_reversed = random_.chance(40);
    s.turns.is_unrolled = s.turns.count <= 8 && random_.chance(50);
    return {std::move(s)};
  }

  // Puts the launch behind a guard that one block passes.
  std::vector<Statement> by_one_block(std::vector<Statement> body) {
    const Expression block = leaf(Op::Ctaid, 0);
    const uint32_t threads = product(parent().block);
    switch (random_.below(7)) {
      case 0:
        return {only_if(with(Op::Less, block, constant(1)), std::move(body))};
      case 1:
        return {only_if(with(Op::Equal, block, leaf(Op::Parameter, kSecond)), std::move(body))};
      case 2:
        return {only_if(with(Op::Less, leaf(Op::Linear), constant(threads)), std::move(body))};
      case 3:
        return {only_if(with(Op::Equal, with(Op::Divide, threads, leaf(Op::Linear)), constant(1)),
                        std::move(body))};
      case 4: {
        const uint32_t known = parent().variables++;
        parent().body.push_back(statement(Kind::Assign, known, 0, {with(Op::Remainder, 2, block)}));
        return {only_if(with(Op::Equal, leaf(Op::Local, known), constant(1)), std::move(body))};
      }
      case 5: {
        Statement s = only_if(with(Op::Less, constant(0), block), {});
        s.other = std::move(body);
        return {std::move(s)};
      }
      default:
        return {only_if(with(Op::Equal, block, some(0, 1)), std::move(body))};
    }
  }

  // ---- the host ----

  void make_steps() {
    const uint64_t count = random_.between(1, 2);
    for (uint64_t i = 0; i < count; ++i) {
      Step step;
      step.stream = static_cast<uint32_t>(random_.below(kHostStreams));
      step.grid = parent().grid;
      step.block = parent().block;
      const bool is_factor = form_ == AddressForm::Factor || form_ == AddressForm::WideFactor;
      auto first = static_cast<uint32_t>(is_factor && random_.chance(70) ? 0 : random_.below(4));
      auto second = static_cast<uint32_t>(random_.below(has_blocks_ ? 2 : 5));
      if (form_ == AddressForm::LongRows && random_.chance(60)) second = first + 1;
      if (form_ == AddressForm::FarSteps) first = 0;
      if (form_ == AddressForm::FarRows) first = 1U << (62 - kFarShift - 2);
      if (form_ == AddressForm::Offsets && random_.chance(75)) first = offset_;
      step.arguments = {first, second, random_.number()};
      program_.steps.push_back(std::move(step));
    }
  }

  Random random_;
  Program program_;
  AddressForm form_ = AddressForm::Loaded;
  bool is_commuting_ = false, has_blocks_ = false;
  uint32_t multiple_ = 1;  // only threads whose number is a multiple launch
  uint32_t counter_ = 0;
  const uint32_t offset_ = static_cast<uint32_t>(random_.between(1, 3));
};

}  // namespace

Candidate make_address_program(uint64_t seed, const Mix& mix) { return AddressMaker(seed, mix).make(); }

}  // namespace klap::differential::random
