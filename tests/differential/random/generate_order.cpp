#include "random/generate_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "random/generate_code.h"
#include "random/generate_parts.h"

namespace klap::differential::random {

namespace {

// What accesses to cells may do in one program.
enum class Style : uint8_t { Ordered, Adding, Maximum, Scratch, Same };

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
constexpr uint32_t kTable = 1024;  // cells from here on hold such numbers, times 7

constexpr uint32_t kIndex = 0, kOperand = 1, kExtra = 2;  // the children's values

class OrderMaker {
 public:
  OrderMaker(uint64_t seed, const Mix& mix) : random_(seed), mix_(mix) { program_.seed = seed; }

  Candidate make() {
    if (mix_.functions) program_.functions.push_back(make_function(random_));
    is_commuting_ = mix_.unordered && random_.chance(60);
    uses_messages_ = mix_.messages && random_.chance(35);
    uses_tables_ = mix_.tables && random_.chance(60);
    // Where several blocks launch children that look up what they change, the library may take the order
    // lightly.
    style_ = is_commuting_ ? static_cast<Style>(random_.between(1, 4)) : Style::Ordered;
    if (mix_.plain && random_.chance(80)) {
      static constexpr std::array kChosen = {Conflict::Values,     Conflict::Values,     Conflict::Values,
                                             Conflict::Rows,       Conflict::Rows,       Conflict::Literals,
                                             Conflict::Reads,      Conflict::Reads,      Conflict::Results,
                                             Conflict::Operations, Conflict::Operations, Conflict::Exchanges,
                                             Conflict::Floats,     Conflict::Updates,    Conflict::Updates};
      conflict_ = kChosen.at(random_.below(kChosen.size() - (mix_.unordered ? 0 : 2)));
      is_commuting_ = conflict_ == Conflict::Updates;
      style_ = is_commuting_ ? Style::Adding : Style::Ordered;
      repeats_launches_ = random_.chance(75);
      choose_address();
    }
    if (mix_.blocks && is_commuting_ && random_.chance(conflict_ ? 60 : 25)) {
      lookup_ = mix_.messages && random_.chance(50) ? Lookup::Message : Lookup::Cells;
      uses_messages_ = lookup_ == Lookup::Message;
    }
    const bool has_middle = mix_.nested && !conflict_ && lookup_ == Lookup::None && random_.chance(25);
    needs_two_ =
        conflict_ == Conflict::Reads || conflict_ == Conflict::Operations || conflict_ == Conflict::Literals;
    const uint32_t children = !needs_two_ && random_.chance(70) ? 1 : 2;
    first_child_ = has_middle ? 2 : 1;
    program_.kernels.resize(first_child_ + children);
    for (auto k = static_cast<uint32_t>(program_.kernels.size()); k-- > first_child_;) {
      if (conflict_) {
        make_plain_child(k);
      } else {
        make_child(k);
      }
    }
    if (has_middle) make_parent(1);
    make_parent(0);
    make_steps();
    program_.previous_words = 1;
    prepare(program_);
    return {std::move(program_), is_commuting_};
  }

 private:
  // What decides over a plain program besides its kind of conflict.
  void choose_address() {
    if (*conflict_ != Conflict::Values && *conflict_ != Conflict::Rows) return;
    if (random_.chance(60)) beside_ = random_.chance(60) ? Beside::Value : Beside::Pointer;
    if (random_.chance(30)) multiple_ = pick({2, 4});
  }

  uint32_t pick(std::initializer_list<uint32_t> values) {
    return values.begin()[random_.below(values.size())];
  }
  Expression number() { return constant(static_cast<uint32_t>(random_.between(1, 40))); }

  void begin_kernel(Kernel& kernel) {
    kernel.own_words = 4;
    kernel.parameters.clear();
    for (const Role role : {Role::Input, Role::Sums, Role::Own, Role::Room, Role::Depth, Role::Message,
                            Role::Cells, Role::Alias}) {
      kernel.parameters.push_back({role, {}});
    }
    for (uint32_t v = 0; v < kernel.values.size(); ++v) {
      const bool joins =
          mix_.structures && random_.chance(25) && kernel.parameters.back().role == Role::Values;
      if (joins) {
        kernel.parameters.back().values.push_back(v);
      } else {
        kernel.parameters.push_back({Role::Values, {v}});
      }
    }
    for (size_t i = kernel.parameters.size(); i-- > 1;)
      std::swap(kernel.parameters[i], kernel.parameters[random_.below(i + 1)]);
  }

  // ---- children ----

  void make_child(uint32_t k) {
    static constexpr std::array<Dim3, 8> kBlocks = {
        {{1, 1, 1}, {1, 1, 1}, {4, 1, 1}, {2, 2, 1}, {8, 1, 1}, {2, 1, 3}, {32, 1, 1}, {33, 1, 1}}};
    Kernel& kernel = program_.kernels[k];
    kernel.block = kBlocks.at(random_.below(kBlocks.size()));
    kernel.grid = {random_.chance(75) ? 1U : 2U, 1, 1};
    static constexpr std::array kIndexWidths = {Width::U32, Width::U32, Width::U16, Width::U8, Width::S16};
    kernel.values = {kIndexWidths.at(random_.below(kIndexWidths.size())),
                     random_.chance(60) ? Width::U32 : static_cast<Width>(random_.below(kWidths)),
                     Width::U32};
    begin_kernel(kernel);
    add_accesses(kernel);
  }

  void make_plain_child(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    const bool has_rows = conflict_ == Conflict::Rows;
    kernel.block = {has_rows ? pick({4, 32}) : pick({1, 4, 32}), 1, 1};
    if (has_rows && mix_.dimensions && random_.chance(30)) kernel.block = {pick({2, 4}), pick({2, 3}), 1};
    kernel.grid = {1, 1, 1};
    const bool has_narrow_index = lookup_ == Lookup::None && multiple_ == 1 && random_.chance(20);
    kernel.values = {has_narrow_index ? Width::U8 : Width::U32, Width::U32, Width::U32};
    begin_kernel(kernel);
    const bool is_first = k == first_child_;
    const bool reads = conflict_ == Conflict::Reads && !is_first;
    const uint32_t result = kernel.variables++;
    Expression index = plain_index(kernel);
    Statement s =
        statement(Kind::Cell, result, 0, {std::move(index), leaf(Op::Parameter, kOperand), constant(0)});
    s.cell.op = plain_operation(is_first);
    s.cell.drops_result = s.cell.op == CellOp::Exchange && random_.chance(50);
    const Expression column = has_rows ? place_in_child(kernel) : constant(0);
    const bool has_wide_rows = has_rows && random_.chance(40);
    if (multiple_ > 1 && s.values[0].op == Op::Parameter && random_.chance(50)) {
      // Offsets of threads that launch are 0 again.
      s.cell.shift = 64 - static_cast<uint32_t>(std::countr_zero(4 * multiple_));
      s.values.insert(s.values.end(), {constant(1), column});
    } else if (has_wide_rows) {
      s.values.insert(s.values.end(), {leaf(Op::Parameter, kExtra), column});
    } else if (has_rows) {
      s.values[0] = with(Op::Add, with(Op::Multiply, s.values[0], constant(pick({1, 2}))), column);
    }
    s.cell.alias = mix_.aliases && needs_two_ && !is_first && random_.chance(60);
    if (mix_.ways && random_.chance(25)) s.cell.via = Via::Function;
    if (conflict_ == Conflict::Literals) s.values[1] = constant(k + 5);
    std::vector<Statement> body = {std::move(s)};
    if (reads || conflict_ == Conflict::Results)
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

  Expression place_in_child(const Kernel& kernel) {
    const bool has_two = kernel.block[1] > 1 && random_.chance(60);
    return has_two ? leaf(Op::Tid, static_cast<uint32_t>(random_.below(2))) : leaf(Op::Linear);
  }

  // Which cell a plain child uses.
  Expression plain_index(Kernel& kernel) {
    if (lookup_ != Lookup::None) return looked_up(kernel);
    Expression index = leaf(Op::Parameter, kIndex);
    if (beside_ == Beside::Value)
      return with(Op::Add, with(Op::Multiply, std::move(index), constant(pick({1, 2, 4}))),
                  leaf(Op::Parameter, kExtra));
    return beside_ == Beside::Pointer || random_.chance(60) ? index : child_index(kernel);
  }

  // A number that the kernel finds in memory which the program writes.
  Expression looked_up(Kernel& kernel) {
    if (lookup_ == Lookup::Message) return leaf(Op::Message);
    const uint32_t found = kernel.variables++;
    Statement s = statement(Kind::Cell, found, 0, {leaf(Op::Parameter, kIndex), constant(0), constant(0)});
    s.cell.op = CellOp::Read;
    kernel.body.push_back(std::move(s));
    return with(Op::And, with(Op::Divide, 7, leaf(Op::Local, found)), constant(kTable - 1));
  }

  CellOp plain_operation(bool is_first) const {
    switch (*conflict_) {
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
    if (threads > 1 && is_commuting_ && style_ <= Style::Maximum && random_.chance(15)) who = Who::All;
    if (who == Who::Each)
      index = with(Op::Add, with(Op::Multiply, std::move(index), constant(threads)), leaf(Op::Linear));
    const bool appends = style_ == Style::Ordered && who != Who::Each && random_.chance(12);
    if (appends) accesses = append(index, result);
    const uint64_t count = appends ? 0 : random_.chance(60) ? 1 : random_.between(2, is_commuting_ ? 2 : 3);
    for (uint64_t i = 0; i < count; ++i) {
      Expression at = index;
      if (i > 0 && random_.chance(40))
        at = with(Op::Add, std::move(at), constant(static_cast<uint32_t>(random_.below(3))));
      accesses.push_back(access(std::move(at), result));
    }
    if (who == Who::InTurn) {
      accesses = {turns(kernel, std::move(accesses), false)};
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
    if (lookup_ != Lookup::None) return looked_up(kernel);
    Expression index = leaf(Op::Parameter, kIndex);
    const auto cells = static_cast<uint32_t>(random_.between(1, 6));
    switch (random_.below(10)) {
      case 0:
        return with(Op::Remainder, cells, std::move(index));
      case 1:
        return with(Op::And, std::move(index), constant(pick({1, 3, 7})));
      case 2:
      case 3:
        if (uses_tables_) return with(Op::Remainder, cells, with(Op::Input, 0, std::move(index)));
        return index;
      case 6:
      case 7:
        if (uses_messages_) return with(Op::Remainder, cells + 6, leaf(Op::Message));
        return index;
      case 4:
        if (program_.functions.empty()) return index;
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
    switch (style_) {
      case Style::Adding:
        return kAdding.at(random_.below(mix_.atomics ? 4 : 2));
      case Style::Maximum:
        return kMaximum.at(random_.below(mix_.atomics ? 3 : 2));
      case Style::Scratch:
        return CellOp::Scratch;
      case Style::Same:
        return CellOp::Write;
      case Style::Ordered:
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
      c.bytes = c.op >= CellOp::AtomicAdd || is_commuting_ ? width_of_program() : pick({1, 2, 4, 4, 4, 8});
      if (c.bytes == 4 && c.op < CellOp::AtomicAdd && !is_commuting_ && random_.chance(20))
        c.elements = pick({2, 4});
    }
    if (mix_.forms)
      c.form = random_.chance(60) ? CellForm::Plain : static_cast<CellForm>(random_.below(kCellForms));
    if (c.elements > 1 && c.form == CellForm::Relaxed) c.form = CellForm::Plain;
    if (mix_.ways) c.via = random_.chance(25) ? Via::Register : static_cast<Via>(random_.below(kVias));
    c.alias = mix_.aliases && random_.chance(25);
    c.is_generic = mix_.forms && random_.chance(20);
    c.drops_result = c.op >= CellOp::AtomicAddUsed && random_.chance(25);
    Expression operand = random_.chance(70) ? leaf(Op::Parameter, kOperand) : number();
    if (style_ == Style::Ordered && random_.chance(30))
      operand = with(Op::Add, std::move(operand), leaf(Op::Local, result));
    if (style_ == Style::Same) operand = constant(17);
    if (style_ == Style::Maximum && random_.chance(50))
      operand = with(Op::Multiply, std::move(operand), number());
    s.values = {
        std::move(index), std::move(operand),
        random_.chance(50) ? leaf(Op::Parameter, kExtra) : constant(static_cast<uint32_t>(random_.below(3)))};
    return s;
  }
  // Accesses that commute have one width.
  uint32_t width_of_program() const { return program_.seed % 5 == 0 ? 8 : 4; }

  // ---- turns ----

  Statement turns(const Kernel& kernel, std::vector<Statement> body, bool launches) {
    Statement s = statement(Kind::Turns, 0, 0, {}, std::move(body));
    const bool has_lock = is_commuting_ && !conflict_ && random_.chance(50);
    for (;;) {
      s.turns.relation = has_lock ? Relation::Lock : static_cast<Relation>(random_.below(kRelations - 1));
      // What waits for other threads is left, whatever its children do.
      if (conflict_ && s.turns.relation > Relation::Shuffle) continue;
      if (is_by_warp(s.turns.relation) && product(kernel.block) % 32 != 0) continue;
      if (!orders_memory(s.turns.relation) && (!launches || reads_cells_)) continue;
      break;
    }
    s.turns.count = static_cast<uint32_t>(random_.between(2, conflict_ ? 12 : launches ? 6 : 4));
    s.turns.is_reversed = random_.chance(40);
    s.turns.is_unrolled = s.turns.count <= (conflict_ ? 8 : 4) && random_.chance(conflict_ ? 50 : 30);
    return s;
  }

  // ---- parents ----

  void make_parent(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    static constexpr std::array<Dim3, 12> kBlocks = {{{32, 1, 1},
                                                      {2, 2, 2},
                                                      {64, 1, 1},
                                                      {32, 2, 1},
                                                      {8, 4, 1},
                                                      {4, 4, 2},
                                                      {7, 1, 1},
                                                      {5, 3, 1},
                                                      {3, 2, 2},
                                                      {2, 1, 1},
                                                      {1, 4, 1},
                                                      {96, 1, 1}}};
    kernel.block = kBlocks.at(random_.below(mix_.dimensions ? kBlocks.size() : 2));
    if (k == 1) kernel.block = {2, 2, 1};
    kernel.grid = {1, 1, 1};
    if (mix_.blocks && (lookup_ != Lookup::None || random_.chance(50)))
      kernel.grid = k == 0 && random_.chance(30) ? Dim3{2, 1, 2} : Dim3{2, 1, 1};
    if (k == 0 && kernel.grid[0] > 1 && random_.chance(30)) kernel.grid[0] = 3;
    kernel.values = {Width::U32, Width::U32, Width::U32};
    begin_kernel(kernel);
    fetched_ = ~0U;
    if (uses_messages_) {
      kernel.message = index_form(kernel, {});
      if (lookup_ == Lookup::Message) kernel.message = in_block(kernel, *kernel.message);
      kernel.barrier_after_message = random_.chance(40);
    }
    reads_cells_ = random_.chance(20);
    if (reads_cells_) {
      const uint32_t result = kernel.variables++;
      Expression at = with(Op::Add, leaf(Op::Thread), constant(block_cells(kernel) / 4));
      if (block_cells(kernel) != 0)
        at = with(Op::Add, with(Op::Multiply, block_of(), constant(block_cells(kernel))), leaf(Op::Thread));
      kernel.body.push_back(
          only_if(with(Op::Less, leaf(Op::Thread), number()), {written(std::move(at), result)}));
      kernel.body.push_back(barrier(random_));
    }
    if (random_.chance(30)) {
      kernel.body.push_back(statement(Kind::StoreOwn, 1, 0, {index_form(kernel, {})}));
      fetched_ = kernel.variables++;
      kernel.body.push_back(
          statement(Kind::Fetch, fetched_, 1, {constant(static_cast<uint32_t>(random_.below(4)))}));
    }
    const uint64_t pieces =
        mix_.sites && (!conflict_ || random_.chance(50)) ? random_.between(1, k == 0 ? 3 : 2) : 1;
    for (uint64_t i = 0; i < pieces; ++i) {
      if (i > 0 && (!is_commuting_ || random_.chance(40))) kernel.body.push_back(barrier(random_));
      add_piece(k);
    }
    kernel.body.push_back(statement(Kind::StoreOwn, 1, 0, {constant(1)}));
  }

  static Expression block_of() {
    // Grids have an extent in x and one in z.
    return with(Op::Add, with(Op::Multiply, leaf(Op::Ctaid, 2), leaf(Op::Nctaid, 0)), leaf(Op::Ctaid, 0));
  }
  Statement written(Expression at, uint32_t result) {
    Statement s = statement(Kind::Cell, result, 0, {std::move(at), number(), constant(0)});
    s.cell.op = CellOp::Write;
    return s;
  }

  // Words between the cells of one block and the next, of a grid of several.
  static uint32_t block_cells(const Kernel& kernel) {
    const uint32_t blocks = product(kernel.grid);
    return blocks == 1 ? 0 : blocks <= 2 ? 512 : 256;
  }

  // The number of a cell among those of the block, where all blocks have one array.
  static Expression in_block(const Kernel& kernel, Expression index) {
    return with(Op::Add, with(Op::Multiply, block_of(), constant(block_cells(kernel))), std::move(index));
  }

  void add_piece(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    const bool is_row = kernel.grid[0] > 1 && kernel.grid[2] == 1;
    if (!is_row || lookup_ != Lookup::None || !random_.chance(15)) return add_piece_of_all(k);
    // Only one block launches.
    std::vector<Statement> before = std::move(kernel.body);
    kernel.body.clear();
    is_lone_block_ = true;
    add_piece_of_all(k);
    is_lone_block_ = false;
    before.push_back(
        only_if(with(Op::Equal, leaf(Op::Ctaid, 0), constant(static_cast<uint32_t>(random_.below(2)))),
                std::move(kernel.body)));
    kernel.body = std::move(before);
  }

  void add_piece_of_all(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    const uint32_t threads = product(kernel.block);
    const auto some = [&] { return constant(static_cast<uint32_t>(random_.below(threads))); };
    if (conflict_ && !is_commuting_ && mix_.turns && random_.chance(70)) return add_turns(k);
    switch (random_.below(is_commuting_ ? 6 : 4)) {
      case 0: {  // one thread
        std::vector<Statement> body = launches(k, {});
        kernel.body.push_back(only_if(with(Op::Equal, leaf(Op::Thread), some()), std::move(body)));
        return;
      }
      case 1: {  // one after another, a barrier between them
        const uint64_t count = random_.between(2, 3);
        for (uint64_t i = 0; i < count; ++i) {
          if (i > 0) kernel.body.push_back(barrier(random_));
          kernel.body.push_back(only_if(with(Op::Equal, leaf(Op::Thread), some()), {launch(k, {})}));
        }
        return;
      }
      case 2:
      case 3:
        if (mix_.turns) return add_turns(k);
        [[fallthrough]];
      default: {  // in no order
        const auto count = static_cast<uint32_t>(random_.between(2, 8));
        std::vector<Statement> body = launches(k, {});
        const uint64_t form = random_.below(3);
        Expression who =
            form == 0 ? with(Op::Less, leaf(Op::Thread), constant(count))
            : form == 1
                ? with(Op::Equal, with(Op::Remainder, std::max(threads / count, 1U), leaf(Op::Thread)),
                       constant(0))
                : with(Op::Less, leaf(Op::Tid, 0), constant(2));
        kernel.body.push_back(only_if(std::move(who), std::move(body)));
      }
    }
  }

  void add_turns(uint32_t k) {
    Kernel& kernel = program_.kernels[k];
    Statement s = turns(kernel, launches(k, {}), true);
    bool all_order_memory = orders_memory(s.turns.relation);
    for_each(kernel.body, [&](const Statement& before) {
      if (before.kind == Kind::Turns)
        all_order_memory = all_order_memory && orders_memory(before.turns.relation);
    });
    if (all_order_memory && !s.turns.is_reversed && !is_commuting_ && random_.chance(20)) {
      reads_cells_ = true;
      // The first one writes what the children of the others find.
      const uint32_t result = kernel.variables++;
      const uint32_t warp = is_by_warp(s.turns.relation) ? 32 : product(kernel.block);
      Expression at = constant(static_cast<uint32_t>(random_.below(4)));
      if (block_cells(kernel) != 0)
        at = with(Op::Add, with(Op::Multiply, block_of(), constant(block_cells(kernel))), std::move(at));
      Statement first = only_if(with(Op::Equal, with(Op::Remainder, warp, leaf(Op::Thread)), constant(0)),
                                {written(std::move(at), result)});
      first.other = std::move(s.body);
      s.body = {std::move(first)};
    }
    kernel.body.push_back(std::move(s));
  }

  // One launch, several, or a loop of them.
  std::vector<Statement> launches(uint32_t k, const std::vector<uint32_t>& counters) {
    std::vector<Statement> body = launches_of_all(k, counters);
    if (multiple_ == 1) return body;
    return {only_if(with(Op::Equal, with(Op::Remainder, multiple_, leaf(Op::Thread)), constant(0)),
                    std::move(body))};
  }

  std::vector<Statement> launches_of_all(uint32_t k, std::vector<uint32_t> counters) {
    const bool has_loop = mix_.loops && random_.chance(35);
    if (!has_loop && needs_two_) return launches_of_both(k, counters);
    if (!has_loop) {
      std::vector<Statement> body = {launch(k, counters)};
      if (mix_.sites && random_.chance(20)) body.push_back(launch(k, counters));
      if (mix_.sites && random_.chance(20)) {
        const uint32_t half = std::max(product(program_.kernels[k].block) / 2, 2U);
        body = {only_if(
            with(Op::Less, with(Op::Remainder, half, leaf(Op::Thread)), constant(std::min(half - 1, 2U))),
            std::move(body))};
        body[0].other = {launch(k, counters)};
      }
      return body;
    }
    const uint32_t counter = program_.kernels[k].variables++;
    counters.push_back(counter);
    const auto trips = static_cast<uint32_t>(random_.between(2, 4));
    std::vector<Statement> body = {launch(k, counters)};
    if (needs_two_) body = launches_of_both(k, counters);
    return {statement(Kind::Loop, counter, trips, {constant(trips)}, std::move(body))};
  }

  std::vector<Statement> launches_of_both(uint32_t k, const std::vector<uint32_t>& counters) {
    std::vector<Statement> both = {launch(k, counters, first_child_), launch(k, counters, first_child_ + 1)};
    if (random_.chance(50)) std::swap(both[0], both[1]);
    return both;
  }

  // In most plain programs all launches of a kernel are one: others would decide over the order as well.
  Statement launch(uint32_t k, const std::vector<uint32_t>& counters, uint32_t kernel_number = 0) {
    if (!repeats_launches_) return new_launch(k, counters, kernel_number);
    const auto [known, is_new] = launches_.try_emplace({kernel_number, counters});
    if (is_new) known->second = new_launch(k, counters, kernel_number);
    return known->second;
  }

  Statement new_launch(uint32_t k, const std::vector<uint32_t>& counters, uint32_t kernel_number) {
    const auto kernels = static_cast<uint32_t>(program_.kernels.size());
    Statement s = statement(Kind::Launch, 0, 0, {});
    Site& site = s.site;
    site.kernel =
        kernel_number != 0 ? kernel_number : static_cast<uint32_t>(random_.between(k + 1, kernels - 1));
    const Kernel& kernel = program_.kernels[k];
    const Kernel& child = program_.kernels[site.kernel];
    for (size_t axis = 0; axis < 3; ++axis) site.grid.at(axis) = {child.grid.at(axis), 1, {}};
    site.block_x = {child.block[0], 1, {}};
    site.stream = random_.chance(90)   ? Stream::Null
                  : random_.chance(50) ? Stream::PerThread
                                       : Stream::FireAndForget;
    if (!mix_.other_streams) site.stream = Stream::Null;
    // Where children look up which cells they use, only arrays of their own tell the blocks' order apart from
    // one that the library may take lightly.
    const bool needs_own_cells = uses_tables_ && !mix_.tolerated;
    site.block_cells = needs_own_cells || random_.chance(95) ? block_cells(kernel) : 0;
    if (lookup_ != Lookup::None || is_lone_block_) site.block_cells = 0;
    const bool moves = conflict_ ? beside_ == Beside::Pointer : random_.chance(25);
    if (lookup_ == Lookup::None && moves) site.cells_at = index_form(kernel, counters);
    site.arguments = {index_of(kernel, child, site, counters),
                      random_.chance(70) ? with(Op::Add, leaf(Op::Linear), number()) : number(),
                      extra(kernel, counters)};
    if (!counters.empty() && random_.chance(50))
      site.arguments[kOperand] = with(Op::Add, site.arguments[kOperand], leaf(Op::Local, counters.back()));
    return s;
  }

  // The same for all launches, mostly: a number of columns, or something beside a cell's number.
  Expression extra(const Kernel& kernel, const std::vector<uint32_t>& counters) {
    if (random_.chance(20)) return leaf(Op::Parameter, kIndex);
    if (random_.chance(beside_ == Beside::Value ? 70 : 25)) return index_form(kernel, counters);
    return constant(static_cast<uint32_t>(random_.below(4)));
  }

  Expression index_of(const Kernel& kernel, const Kernel& child, const Site& site,
                      const std::vector<uint32_t>& counters) {
    if (lookup_ == Lookup::Cells)
      return in_block(kernel, with(Op::Add, constant(kTable), index_form(kernel, counters)));
    if (multiple_ > 1 && random_.chance(60)) return multiple_of_thread();
    // One of two kernels that conflict has words of its own for each thread, or it would itself be in order.
    // Rows conflict by what each child adds.
    const bool is_own =
        (conflict_ == Conflict::Reads && site.kernel == first_child_) || conflict_ == Conflict::Rows;
    if (is_own && random_.chance(70)) return leaf(Op::Thread);
    if (beside_ != Beside::Nothing && random_.chance(60))
      return with(Op::Multiply, thread_number(kernel, {}), constant(pick({1, 1, 2, 4})));
    if (conflict_ && random_.chance(40)) return linear_form(kernel, counters);
    // Another number for each thread, until its upper bits are cut off.
    if (conflict_ && child.values[kIndex] == Width::U8 && random_.chance(40))
      return with(Op::Multiply, leaf(Op::Thread), constant(64));
    return index_form(kernel, counters);
  }

  // The thread's number, which the child may shift, or a product that wraps around: those that launch give 0.
  Expression multiple_of_thread() {
    const auto bits = static_cast<uint32_t>(std::countr_zero(multiple_));
    switch (random_.below(3)) {
      case 0:
        return leaf(Op::Thread);
      case 1:
        return with(Op::ShiftLeft, 32 - bits, leaf(Op::Thread));
      default:
        return with(Op::Multiply, leaf(Op::Thread), constant(1U << (32 - bits)));
    }
  }

  static Expression number_in_plane() {
    return with(Op::Add, leaf(Op::Tid, 0), with(Op::Multiply, leaf(Op::Ntid, 0), leaf(Op::Tid, 1)));
  }

  // A multiple of the thread's number, from below or from above, and something beside it.
  Expression linear_form(const Kernel& kernel, const std::vector<uint32_t>& counters) {
    Expression t =
        with(Op::Multiply, thread_number(kernel, random_.chance(60) ? std::vector<uint32_t>() : counters),
             constant(pick({1, 1, 2, 4})));
    if (random_.chance(20)) return with(Op::Subtract, constant(pick({64, 100, 128})), std::move(t));
    switch (random_.below(6)) {
      case 0:
        return with(Op::Add, std::move(t), leaf(Op::Parameter, kIndex));
      case 1:
      case 3:
        return with(Op::Add, std::move(t),
                    with(Op::Remainder, pick({3, 8}), with(Op::Input, 0, thread_number(kernel, counters))));
      case 2:
        if (fetched_ != ~0U) return with(Op::Add, std::move(t), leaf(Op::Local, fetched_));
        [[fallthrough]];
      default:
        return with(Op::Add, std::move(t), constant(static_cast<uint32_t>(random_.below(5))));
    }
  }

  // The number of a cell: hardly ever another one for each thread.
  Expression index_form(const Kernel& kernel, const std::vector<uint32_t>& counters) {
    if (random_.chance(20)) return linear_form(kernel, counters);
    Expression t = thread_number(kernel, counters);
    if (is_constant(t, 0)) return t;
    if (!counters.empty() && random_.chance(25))
      return with(Op::Add, leaf(Op::Thread), leaf(Op::Local, counters.back()));
    const uint32_t k = pick({2, 3, 4});
    switch (random_.below(13)) {
      case 0:
        return with(Op::Divide, k, std::move(t));
      case 1:
        return with(Op::Remainder, k, std::move(t));
      case 2:
        return with(Op::And, std::move(t), constant(pick({0, 1, 2, 4, 5, 30})));
      case 3:
        return with(Op::Minimum, std::move(t), constant(k));
      case 4:
        return with(Op::ShiftRight, pick({1, 2, 3}), std::move(t));
      case 5:  // times a parameter, which may be 0
        return with(Op::Multiply, std::move(t), leaf(Op::Parameter, kIndex));
      case 6:
        return constant(static_cast<uint32_t>(random_.below(3)));
      case 7:
        return with(Op::Remainder, k, with(Op::Input, 0, std::move(t)));
      case 8:
        if (fetched_ != ~0U) return leaf(Op::Local, fetched_);
        return with(Op::Remainder, k, std::move(t));
      case 9:
        return select(with(Op::Less, t, constant(k)), t, constant(0));
      case 10:
        return with(Op::Subtract, constant(product(kernel.block) * 4), std::move(t));
      default:
        return t;
    }
  }
  Expression thread_number(const Kernel& kernel, const std::vector<uint32_t>& counters) {
    // Where there are three dimensions, several threads have this number.
    if (kernel.block[2] > 1 && random_.chance(30)) return number_in_plane();
    if (!counters.empty() && random_.chance(50)) return leaf(Op::Local, counters.back());
    switch (random_.below(9)) {
      case 3:
        return number_in_plane();
      case 0:
        return leaf(Op::Tid, static_cast<uint32_t>(random_.below(mix_.dimensions ? 3 : 1)));
      case 1:
        return leaf(Op::Tid, 0);
      case 2:
        return constant(0);
      default:
        return leaf(Op::Thread);
    }
  }

  // ---- the host ----

  void make_steps() {
    const uint64_t count = random_.between(1, 2);
    for (uint64_t i = 0; i < count; ++i) {
      Step step;
      const Kernel& kernel = program_.kernels[0];
      step.stream = mix_.streams ? static_cast<uint32_t>(random_.below(kHostStreams)) : 0;
      step.grid = kernel.grid;
      step.block = kernel.block;
      step.arguments = {static_cast<uint32_t>(random_.below(3)), random_.number(), random_.number()};
      program_.steps.push_back(std::move(step));
    }
  }

  Random random_;
  const Mix& mix_;
  Program program_;
  bool is_commuting_ = false, reads_cells_ = false, needs_two_ = false;
  bool uses_messages_ = false, uses_tables_ = false, is_lone_block_ = false;
  Lookup lookup_ = Lookup::None;
  bool repeats_launches_ = false;
  Beside beside_ = Beside::Nothing;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Statement> launches_;  // by kernel and loops
  uint32_t multiple_ = 1;  // only threads whose number is a multiple launch
  Style style_ = Style::Ordered;
  std::optional<Conflict> conflict_;  // of plain programs
  uint32_t first_child_ = 1, fetched_ = ~0U;
};

}  // namespace

Candidate make_ordered_program(uint64_t seed, const Mix& mix) { return OrderMaker(seed, mix).make(); }

}  // namespace klap::differential::random
