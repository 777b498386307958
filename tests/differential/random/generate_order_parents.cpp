#include "random/generate_order_parents.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "random/generate_parts.h"

namespace klap::differential::random {

namespace {

class ParentMaker {
 public:
  explicit ParentMaker(OrderPlan& plan) : plan_(plan), random_(plan.random), mix_(plan.mix) {}

  void make_parent(uint32_t k) {
    Kernel& kernel = plan_.program.kernels[k];
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
    if (mix_.blocks && (plan_.lookup != Lookup::None || random_.chance(50)))
      kernel.grid = k == 0 && random_.chance(30) ? Dim3{2, 1, 2} : Dim3{2, 1, 1};
    if (k == 0 && kernel.grid[0] > 1 && random_.chance(30)) kernel.grid[0] = 3;
    kernel.values = {Width::U32, Width::U32, Width::U32};
    plan_.begin_kernel(kernel);
    fetched_ = ~0U;
    if (plan_.uses_messages) {
      kernel.message = index_form(kernel, {});
      if (plan_.lookup == Lookup::Message) kernel.message = in_block(kernel, *kernel.message);
      kernel.barrier_after_message = random_.chance(40);
    }
    plan_.reads_cells = random_.chance(20);
    if (plan_.reads_cells) {
      const uint32_t result = kernel.variables++;
      Expression at = with(Op::Add, leaf(Op::Thread), constant(block_cells(kernel) / 4));
      if (block_cells(kernel) != 0)
        at = with(Op::Add, with(Op::Multiply, block_of(), constant(block_cells(kernel))), leaf(Op::Thread));
      kernel.body.push_back(
          only_if(with(Op::Less, leaf(Op::Thread), plan_.number()), {written(std::move(at), result)}));
      kernel.body.push_back(barrier(random_));
    }
    if (random_.chance(30)) {
      kernel.body.push_back(statement(Kind::StoreOwn, 1, 0, {index_form(kernel, {})}));
      fetched_ = kernel.variables++;
      kernel.body.push_back(
          statement(Kind::Fetch, fetched_, 1, {constant(static_cast<uint32_t>(random_.below(4)))}));
    }
    const uint64_t pieces =
        mix_.sites && (!plan_.conflict || random_.chance(50)) ? random_.between(1, k == 0 ? 3 : 2) : 1;
    for (uint64_t i = 0; i < pieces; ++i) {
      if (i > 0 && (!plan_.is_commuting || random_.chance(40))) kernel.body.push_back(barrier(random_));
      add_piece(k);
    }
    kernel.body.push_back(statement(Kind::StoreOwn, 1, 0, {constant(1)}));
  }

 private:
  static Expression block_of() {
    // Grids have an extent in x and one in z.
    return with(Op::Add, with(Op::Multiply, leaf(Op::Ctaid, 2), leaf(Op::Nctaid, 0)), leaf(Op::Ctaid, 0));
  }
  Statement written(Expression at, uint32_t result) {
    Statement s = statement(Kind::Cell, result, 0, {std::move(at), plan_.number(), constant(0)});
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
    Kernel& kernel = plan_.program.kernels[k];
    const bool is_row = kernel.grid[0] > 1 && kernel.grid[2] == 1;
    if (!is_row || plan_.lookup != Lookup::None || !random_.chance(15)) return add_piece_of_all(k);
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
    Kernel& kernel = plan_.program.kernels[k];
    const uint32_t threads = product(kernel.block);
    const auto some = [&] { return constant(static_cast<uint32_t>(random_.below(threads))); };
    if (plan_.conflict && !plan_.is_commuting && mix_.turns && random_.chance(70)) return add_turns(k);
    switch (random_.below(plan_.is_commuting ? 6 : 4)) {
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
    Kernel& kernel = plan_.program.kernels[k];
    Statement s = plan_.turns(kernel, launches(k, {}), true);
    all_order_memory_ = all_order_memory_ && orders_memory(s.turns.relation);
    if (all_order_memory_ && !s.turns.is_reversed && !plan_.is_commuting && random_.chance(20)) {
      plan_.reads_cells = true;
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
    if (plan_.multiple == 1) return body;
    return {only_if(with(Op::Equal, with(Op::Remainder, plan_.multiple, leaf(Op::Thread)), constant(0)),
                    std::move(body))};
  }

  std::vector<Statement> launches_of_all(uint32_t k, std::vector<uint32_t> counters) {
    const bool has_loop = mix_.loops && random_.chance(35);
    if (!has_loop && plan_.needs_two) return launches_of_both(k, counters);
    if (!has_loop) {
      std::vector<Statement> body = {launch(k, counters)};
      if (mix_.sites && random_.chance(20)) body.push_back(launch(k, counters));
      if (mix_.sites && random_.chance(20)) {
        const uint32_t half = std::max(product(plan_.program.kernels[k].block) / 2, 2U);
        body = {only_if(
            with(Op::Less, with(Op::Remainder, half, leaf(Op::Thread)), constant(std::min(half - 1, 2U))),
            std::move(body))};
        body[0].other = {launch(k, counters)};
      }
      return body;
    }
    const uint32_t counter = plan_.program.kernels[k].variables++;
    counters.push_back(counter);
    const auto trips = static_cast<uint32_t>(random_.between(2, 4));
    std::vector<Statement> body = {launch(k, counters)};
    if (plan_.needs_two) body = launches_of_both(k, counters);
    return {statement(Kind::Loop, counter, trips, {constant(trips)}, std::move(body))};
  }

  std::vector<Statement> launches_of_both(uint32_t k, const std::vector<uint32_t>& counters) {
    std::vector<Statement> both = {launch(k, counters, plan_.first_child),
                                   launch(k, counters, plan_.first_child + 1)};
    if (random_.chance(50)) std::swap(both[0], both[1]);
    return both;
  }

  // In most plain programs all launches of a kernel are one: others would decide over the order as well.
  Statement launch(uint32_t k, const std::vector<uint32_t>& counters, uint32_t kernel_number = 0) {
    if (!plan_.repeats_launches) return new_launch(k, counters, kernel_number);
    const auto [known, is_new] = plan_.launches.try_emplace({kernel_number, counters});
    if (is_new) known->second = new_launch(k, counters, kernel_number);
    return known->second;
  }

  Statement new_launch(uint32_t k, const std::vector<uint32_t>& counters, uint32_t kernel_number) {
    const auto kernels = static_cast<uint32_t>(plan_.program.kernels.size());
    Statement s = statement(Kind::Launch, 0, 0, {});
    Site& site = s.site;
    site.kernel =
        kernel_number != 0 ? kernel_number : static_cast<uint32_t>(random_.between(k + 1, kernels - 1));
    const Kernel& kernel = plan_.program.kernels[k];
    const Kernel& child = plan_.program.kernels[site.kernel];
    for (size_t axis = 0; axis < 3; ++axis) site.grid.at(axis) = {child.grid.at(axis), 1, {}};
    site.block_x = {child.block[0], 1, {}};
    site.stream = random_.chance(90)   ? Stream::Null
                  : random_.chance(50) ? Stream::PerThread
                                       : Stream::FireAndForget;
    if (!mix_.other_streams) site.stream = Stream::Null;
    // Where children look up which cells they use, only arrays of their own tell the blocks' order apart from
    // one that the library may take lightly.
    const bool needs_own_cells = plan_.uses_tables && !mix_.tolerated;
    site.block_cells = needs_own_cells || random_.chance(95) ? block_cells(kernel) : 0;
    if (plan_.lookup != Lookup::None || is_lone_block_) site.block_cells = 0;
    const bool moves = plan_.conflict ? plan_.beside == Beside::Pointer : random_.chance(25);
    if (plan_.lookup == Lookup::None && moves) site.cells_at = index_form(kernel, counters);
    site.arguments = {index_of(kernel, child, site, counters),
                      random_.chance(70) ? with(Op::Add, leaf(Op::Linear), plan_.number()) : plan_.number(),
                      extra(kernel, counters)};
    if (!counters.empty() && random_.chance(50))
      site.arguments[kOperand] = with(Op::Add, site.arguments[kOperand], leaf(Op::Local, counters.back()));
    return s;
  }

  // The same for all launches, mostly: a number of columns, or something beside a cell's number.
  Expression extra(const Kernel& kernel, const std::vector<uint32_t>& counters) {
    if (random_.chance(20)) return leaf(Op::Parameter, kIndex);
    if (random_.chance(plan_.beside == Beside::Value ? 70 : 25)) return index_form(kernel, counters);
    return constant(static_cast<uint32_t>(random_.below(4)));
  }

  Expression index_of(const Kernel& kernel, const Kernel& child, const Site& site,
                      const std::vector<uint32_t>& counters) {
    if (plan_.lookup == Lookup::Cells)
      return in_block(kernel, with(Op::Add, constant(kTable), index_form(kernel, counters)));
    if (plan_.multiple > 1 && random_.chance(60)) return multiple_of_thread();
    // One of two kernels that conflict has words of its own for each thread, or it would itself be in order.
    // Rows conflict by what each child adds.
    const bool is_own = (plan_.conflict == Conflict::Reads && site.kernel == plan_.first_child) ||
                        plan_.conflict == Conflict::Rows;
    if (is_own && random_.chance(70)) return leaf(Op::Thread);
    if (plan_.beside != Beside::Nothing && random_.chance(60))
      return with(Op::Multiply, thread_number(kernel, {}), constant(plan_.pick({1, 1, 2, 4})));
    if (plan_.conflict && random_.chance(40)) return linear_form(kernel, counters);
    // Another number for each thread, until its upper bits are cut off.
    if (plan_.conflict && child.values[kIndex] == Width::U8 && random_.chance(40))
      return with(Op::Multiply, leaf(Op::Thread), constant(64));
    return index_form(kernel, counters);
  }

  // The thread's number, which the child may shift, or a product that wraps around: those that launch give 0.
  Expression multiple_of_thread() {
    const auto bits = static_cast<uint32_t>(std::countr_zero(plan_.multiple));
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
             constant(plan_.pick({1, 1, 2, 4})));
    if (random_.chance(20)) return with(Op::Subtract, constant(plan_.pick({64, 100, 128})), std::move(t));
    switch (random_.below(6)) {
      case 0:
        return with(Op::Add, std::move(t), leaf(Op::Parameter, kIndex));
      case 1:
      case 3:
        return with(
            Op::Add, std::move(t),
            with(Op::Remainder, plan_.pick({3, 8}), with(Op::Input, 0, thread_number(kernel, counters))));
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
    const uint32_t k = plan_.pick({2, 3, 4});
    switch (random_.below(13)) {
      case 0:
        return with(Op::Divide, k, std::move(t));
      case 1:
        return with(Op::Remainder, k, std::move(t));
      case 2:
        return with(Op::And, std::move(t), constant(plan_.pick({0, 1, 2, 4, 5, 30})));
      case 3:
        return with(Op::Minimum, std::move(t), constant(k));
      case 4:
        return with(Op::ShiftRight, plan_.pick({1, 2, 3}), std::move(t));
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

  OrderPlan& plan_;
  Random& random_;
  const Mix& mix_;
  bool is_lone_block_ = false;
  bool all_order_memory_ = true;  // all turns of the kernel so far
  uint32_t fetched_ = ~0U;        // the variable that holds what was loaded, if there is one
};

}  // namespace

void make_ordered_parent(OrderPlan& plan, uint32_t k) { ParentMaker(plan).make_parent(k); }

}  // namespace klap::differential::random
