#include "random/generate_order_children.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "random/generate_parts.h"

namespace klap::differential::random {

namespace {

class ChildMaker {
 public:
  explicit ChildMaker(OrderPlan& plan) : plan_(plan), random_(plan.random), mix_(plan.mix) {}

  void make_child(uint32_t k) {
    static constexpr std::array<Dim3, 8> kBlocks = {
        {{1, 1, 1}, {1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {8, 1, 1}, {2, 1, 3}, {32, 1, 1}, {33, 1, 1}}};
    Kernel& kernel = plan_.program.kernels[k];
    kernel.block = kBlocks.at(random_.below(kBlocks.size()));
    kernel.grid = {random_.chance(75) ? 1U : 2U, 1, 1};
    static constexpr std::array kIndexWidths = {Width::U32, Width::U32, Width::U16, Width::U8, Width::S16};
    kernel.values = {kIndexWidths.at(random_.below(kIndexWidths.size())),
                     random_.chance(60) ? Width::U32 : static_cast<Width>(random_.below(kWidths)),
                     Width::U32};
    plan_.begin_kernel(kernel);
    add_accesses(kernel);
  }

  void make_plain_child(uint32_t k) {
    Kernel& kernel = plan_.program.kernels[k];
    const bool has_rows = plan_.conflict == Conflict::Rows;
    kernel.block = {has_rows ? plan_.pick({4, 32}) : plan_.pick({1, 4, 32}), 1, 1};
    if (has_rows && mix_.dimensions && random_.chance(30))
      kernel.block = {plan_.pick({2, 4}), plan_.pick({2, 3}), 1};
    kernel.grid = {1, 1, 1};
    const bool has_narrow_index = plan_.lookup == Lookup::None && plan_.multiple == 1 && random_.chance(20);
    kernel.values = {has_narrow_index ? Width::U8 : Width::U32, Width::U32, Width::U32};
    plan_.begin_kernel(kernel);
    const bool is_first = k == plan_.first_child;
    const bool reads = plan_.conflict == Conflict::Reads && !is_first;
    const uint32_t result = kernel.variables++;
    Expression index = plain_index(kernel);
    Statement s =
        statement(Kind::Cell, result, 0, {std::move(index), leaf(Op::Parameter, kOperand), constant(0)});
    s.cell.op = plain_operation(is_first);
    s.cell.drops_result = s.cell.op == CellOp::Exchange && random_.chance(50);
    const Expression column = has_rows ? place_in_child(kernel) : constant(0);
    const bool has_wide_rows = has_rows && random_.chance(40);
    if (plan_.multiple > 1 && s.values[0].op == Op::Parameter && random_.chance(50)) {
      // Offsets of threads that launch are 0 again.
      s.cell.shift = 64 - static_cast<uint32_t>(std::countr_zero(4 * plan_.multiple));
      s.values.insert(s.values.end(), {constant(1), column});
    } else if (has_wide_rows) {
      s.values.insert(s.values.end(), {leaf(Op::Parameter, kExtra), column});
    } else if (has_rows) {
      s.values[0] = with(Op::Add, with(Op::Multiply, s.values[0], constant(plan_.pick({1, 2}))), column);
    }
    s.cell.alias = mix_.aliases && plan_.needs_two && !is_first && random_.chance(60);
    if (mix_.ways && random_.chance(25)) s.cell.via = Via::Function;
    if (plan_.conflict == Conflict::Literals) s.values[1] = constant(k + 5);
    std::vector<Statement> body = {std::move(s)};
    if (reads || plan_.conflict == Conflict::Results)
      body.push_back(statement(Kind::Update, 0, 0, {leaf(Op::Parameter, kIndex), leaf(Op::Local, result)}));
    const auto active = static_cast<uint32_t>(has_rows ? random_.between(2, 4) : 1);
    if (active < product(kernel.block)) {
      // Mostly those of the row: by its number of columns, where that is a parameter.
      Expression place = has_rows && random_.chance(80) ? column : leaf(Op::Linear);
      Expression bound = has_wide_rows && random_.chance(60) ? leaf(Op::Parameter, kExtra) : constant(active);
      body = {only_if(with(Op::Less, std::move(place), std::move(bound)), std::move(body))};
      if (has_rows && random_.chance(20)) std::swap(body[0].body, body[0].other);
    }
    for (Statement& piece : body) kernel.body.push_back(std::move(piece));
  }

 private:
  Expression place_in_child(const Kernel& kernel) {
    const bool has_two = kernel.block[1] > 1 && random_.chance(60);
    return has_two ? leaf(Op::Tid, static_cast<uint32_t>(random_.below(2))) : leaf(Op::Linear);
  }

  // Which cell a plain child uses.
  Expression plain_index(Kernel& kernel) {
    if (plan_.lookup != Lookup::None) return looked_up(kernel);
    Expression index = leaf(Op::Parameter, kIndex);
    if (plan_.beside == Beside::Value)
      return with(Op::Add, with(Op::Multiply, std::move(index), constant(plan_.pick({1, 2, 4}))),
                  leaf(Op::Parameter, kExtra));
    return plan_.beside == Beside::Pointer || random_.chance(60) ? index : child_index(kernel);
  }

  // A number that the kernel finds in memory which the program writes.
  Expression looked_up(Kernel& kernel) {
    if (plan_.lookup == Lookup::Message) return leaf(Op::Message);
    const uint32_t found = kernel.variables++;
    Statement s = statement(Kind::Cell, found, 0, {leaf(Op::Parameter, kIndex), constant(0), constant(0)});
    s.cell.op = CellOp::Read;
    kernel.body.push_back(std::move(s));
    return with(Op::And, with(Op::Divide, 7, leaf(Op::Local, found)), constant(kTable - 1));
  }

  CellOp plain_operation(bool is_first) const {
    switch (*plan_.conflict) {
      case Conflict::Reads:
        return is_first ? CellOp::Write : CellOp::Read;
      case Conflict::Results:
        return CellOp::AtomicAddUsed;
      case Conflict::Operations:
        return is_first ? CellOp::AtomicAdd : CellOp::AtomicMaximum;
      case Conflict::Exchanges:
        return CellOp::Exchange;
      case Conflict::Floats:
        return CellOp::AtomicAddFloat;
      case Conflict::Updates:
        return CellOp::Add;
      default:
        return CellOp::Write;
    }
  }

  void add_accesses(Kernel& kernel) {
    const uint32_t threads = product(kernel.grid) * product(kernel.block);
    const uint32_t result = kernel.variables++;
    Expression index = child_index(kernel);
    std::vector<Statement> accesses;
    enum class Who : uint8_t { First, Each, InTurn, All } who = Who::First;
    if (threads > 1 && threads <= 8 && random_.chance(60)) who = Who::Each;
    if (mix_.child_turns && product(kernel.grid) == 1 && threads > 1 && random_.chance(25)) who = Who::InTurn;
    if (threads > 1 && plan_.is_commuting && plan_.style <= OrderStyle::Maximum && random_.chance(15))
      who = Who::All;
    if (who == Who::Each)
      index = with(Op::Add, with(Op::Multiply, std::move(index), constant(threads)), leaf(Op::Linear));
    const bool appends = plan_.style == OrderStyle::Ordered && who != Who::Each && random_.chance(12);
    if (appends) accesses = append(index, result);
    const uint64_t count = appends              ? 0
                           : random_.chance(60) ? 1
                                                : random_.between(2, plan_.is_commuting ? 2 : 3);
    for (uint64_t i = 0; i < count; ++i) {
      Expression at = index;
      if (i > 0 && random_.chance(40))
        at = with(Op::Add, std::move(at), constant(static_cast<uint32_t>(random_.below(3))));
      accesses.push_back(access(std::move(at), result));
    }
    if (who == Who::InTurn) {
      accesses = {plan_.turns(kernel, std::move(accesses), false)};
    } else if (who == Who::First) {
      accesses = {only_if(with(Op::Equal, leaf(Op::Linear), constant(0)), std::move(accesses))};
    }
    if (random_.chance(25) && who != Who::InTurn) {
      const uint32_t counter = kernel.variables++;
      accesses = {statement(Kind::Loop, counter, 2, {constant(2)}, std::move(accesses))};
    }
    for (Statement& s : accesses) kernel.body.push_back(std::move(s));
    kernel.body.push_back(statement(Kind::StoreOwn, 1, 0, {leaf(Op::Local, result)}));
    if (random_.chance(50)) {
      kernel.body.push_back(statement(Kind::Update, static_cast<uint32_t>(random_.below(kSums)), 0,
                                      {leaf(Op::Parameter, kIndex), leaf(Op::Local, result)}));
    }
  }

  // The cell counts what has been put into those behind it.
  std::vector<Statement> append(const Expression& counter, uint32_t result) {
    const auto plain = [result](CellOp op, Expression index, Expression operand) {
      Statement s = statement(Kind::Cell, result, 0, {std::move(index), std::move(operand), constant(0)});
      s.cell.op = op;
      return s;
    };
    Expression place =
        with(Op::Remainder, static_cast<uint32_t>(random_.between(3, 9)), leaf(Op::Local, result));
    std::vector<Statement> list = {plain(CellOp::Read, counter, constant(0))};
    list.push_back(
        plain(CellOp::Write, with(Op::Add, constant(16), std::move(place)), leaf(Op::Parameter, kOperand)));
    list.push_back(plain(CellOp::Add, counter, constant(1)));
    return list;
  }

  // Which cell: what the child was told, or what it finds under that number.
  Expression child_index(Kernel& kernel) {
    if (plan_.lookup != Lookup::None) return looked_up(kernel);
    Expression index = leaf(Op::Parameter, kIndex);
    const auto cells = static_cast<uint32_t>(random_.between(1, 6));
    switch (random_.below(10)) {
      case 0:
        return with(Op::Remainder, cells, std::move(index));
      case 1:
        return with(Op::And, std::move(index), constant(plan_.pick({1, 3, 7})));
      case 2:
      case 3:
        if (plan_.uses_tables) return with(Op::Remainder, cells, with(Op::Input, 0, std::move(index)));
        return index;
      case 6:
      case 7:
        if (plan_.uses_messages) return with(Op::Remainder, cells + 6, leaf(Op::Message));
        return index;
      case 4:
        if (plan_.program.functions.empty()) return index;
        kernel.body.push_back(
            statement(Kind::Call, kernel.variables, 0, {index, leaf(Op::Parameter, kExtra)}));
        return with(Op::Remainder, cells, leaf(Op::Local, kernel.variables++));
      case 5:
        return constant(static_cast<uint32_t>(random_.below(3)));
      default:
        return index;
    }
  }

  CellOp operation() {
    static constexpr std::array kAdding = {CellOp::Add, CellOp::Add, CellOp::AtomicAdd, CellOp::AddBySwap};
    static constexpr std::array kMaximum = {CellOp::Maximum, CellOp::Maximum, CellOp::AtomicMaximum};
    switch (plan_.style) {
      case OrderStyle::Adding:
        return kAdding.at(random_.below(mix_.atomics ? 4 : 2));
      case OrderStyle::Maximum:
        return kMaximum.at(random_.below(mix_.atomics ? 3 : 2));
      case OrderStyle::Scratch:
        return CellOp::Scratch;
      case OrderStyle::Same:
        return CellOp::Write;
      case OrderStyle::Ordered:
        break;
    }
    // Those whose order shows come more often.
    static constexpr std::array kTelling = {CellOp::Write, CellOp::Write, CellOp::Affine, CellOp::Exchange,
                                            CellOp::CompareSwap};
    const CellOp op = random_.chance(50) ? kTelling.at(random_.below(kTelling.size()))
                                         : static_cast<CellOp>(random_.below(kCellOps));
    // Other accesses leave what is no floating-point number.
    if (op == CellOp::AtomicAddFloat) return CellOp::Write;
    return op >= CellOp::AtomicAdd && !mix_.atomics ? CellOp::Write : op;
  }

  Statement access(Expression index, uint32_t result) {
    Statement s = statement(Kind::Cell, result, 0, {});
    CellAccess& c = s.cell;
    c.op = operation();
    const bool is_word = c.op == CellOp::Scratch || c.op == CellOp::Poll;
    if (!is_word && mix_.widths) {
      c.bytes = c.op >= CellOp::AtomicAdd || plan_.is_commuting ? width_of_program()
                                                                : plan_.pick({1, 2, 4, 4, 4, 8});
      if (c.bytes == 4 && c.op < CellOp::AtomicAdd && !plan_.is_commuting && random_.chance(20))
        c.elements = plan_.pick({2, 4});
    }
    if (mix_.forms)
      c.form = random_.chance(60) ? CellForm::Plain : static_cast<CellForm>(random_.below(kCellForms));
    if (c.elements > 1 && c.form == CellForm::Relaxed) c.form = CellForm::Plain;
    if (mix_.ways) c.via = random_.chance(25) ? Via::Register : static_cast<Via>(random_.below(kVias));
    c.alias = mix_.aliases && random_.chance(25);
    c.is_generic = mix_.forms && random_.chance(20);
    c.drops_result = c.op >= CellOp::AtomicAddUsed && random_.chance(25);
    Expression operand = random_.chance(70) ? leaf(Op::Parameter, kOperand) : plan_.number();
    if (plan_.style == OrderStyle::Ordered && random_.chance(30))
      operand = with(Op::Add, std::move(operand), leaf(Op::Local, result));
    if (plan_.style == OrderStyle::Same) operand = constant(17);
    if (plan_.style == OrderStyle::Maximum && random_.chance(50))
      operand = with(Op::Multiply, std::move(operand), plan_.number());
    s.values = {
        std::move(index), std::move(operand),
        random_.chance(50) ? leaf(Op::Parameter, kExtra) : constant(static_cast<uint32_t>(random_.below(3)))};
    return s;
  }
  // Accesses that commute have one width.
  uint32_t width_of_program() const { return plan_.program.seed % 5 == 0 ? 8 : 4; }

  OrderPlan& plan_;
  Random& random_;
  const Mix& mix_;
};

}  // namespace

void make_ordered_child(OrderPlan& plan, uint32_t k) {
  if (plan.conflict) {
    ChildMaker(plan).make_plain_child(k);
  } else {
    ChildMaker(plan).make_child(k);
  }
}

}  // namespace klap::differential::random
