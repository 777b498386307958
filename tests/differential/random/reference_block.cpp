#include "random/reference_block.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>

namespace klap::differential::random {

namespace {

struct Thread {
  Dim3 index{};
  uint32_t in_block = 0, linear = 0;
  bool returned = false;
  std::vector<uint32_t> variables;
  std::vector<uint32_t> trips;  // counters of the loops it is in, outermost first
  std::vector<uint32_t> limits;
};

constexpr uint32_t kWarp = 32;

class Block {
 public:
  Block(World& world, const Grid& grid, uint32_t block, std::vector<Grid>& launched)
      : world_(world),
        grid_(grid),
        kernel_(world.program.kernels[grid.kernel]),
        block_(block),
        index_(
            {block % grid.grid[0], block / grid.grid[0] % grid.grid[1], block / grid.grid[0] / grid.grid[1]}),
        launched_(launched),
        clocks_(grid.number, block, world.has_cells ? product(grid.block) : 0) {
    const uint32_t threads = product(grid.block);
    for (uint32_t t = 0; t < threads; ++t) {
      const Dim3 at = {t % grid.block[0], t / grid.block[0] % grid.block[1],
                       t / grid.block[0] / grid.block[1]};
      threads_.push_back(
          {at, t, block * threads + t, false, std::vector<uint32_t>(kernel_.variables), {}, {}});
    }
    shared_.resize(threads);
  }

  void run() {
    if (kernel_.message) {
      for (Thread& t : threads_) store_own(t, 0, evaluate(*kernel_.message, t));
    }
    run_together(kernel_.body);
  }

 private:
  // ---- statements in which threads wait for each other: all threads step by step ----

  void run_together(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      if (synchronises(s)) {
        run_together(s);
      } else {
        in_any_order([&](Thread& t) { run(s, t); });
      }
    }
  }

  template <class Action>
  void in_any_order(const Action& action) {
    if (world_.is_backwards()) {
      for (Thread& t : std::views::reverse(threads_)) action(t);
    } else {
      for (Thread& t : threads_) action(t);
    }
  }

  void run_together(const Statement& s) {
    switch (s.kind) {
      case Kind::If:
        if (const auto condition = uniform(s.values[0])) run_together(*condition != 0 ? s.body : s.other);
        return;
      case Kind::Loop:
        return loop_together(s);
      case Kind::Exchange:
        return exchange(s);
      case Kind::Shuffle:
        return shuffle(s);
      case Kind::Barrier:
        return meet();
      case Kind::Turns:
        return turns(s);
      default:
        throw Error(ErrorCode::Internal, "a statement in which nobody waits");
    }
  }

  // Nothing if no thread is left.
  std::optional<uint32_t> uniform(const Expression& e) {
    std::optional<uint32_t> value;
    for (Thread& t : threads_) {
      if (t.returned) continue;
      const uint32_t own = evaluate(e, t);
      if (value && *value != own) throw Error(ErrorCode::Internal, "a condition that is not uniform");
      value = own;
    }
    return value;
  }

  void loop_together(const Statement& s) {
    const auto value = uniform(s.values[0]);
    if (!value) return;
    const uint32_t trips = *value % (s.limit + 1);
    for (Thread& t : threads_) enter_loop(s, t);
    for (uint32_t i = 0; i < trips; ++i) {
      for (Thread& t : threads_) set_counter(s, t, i);
      run_together(s.body);
    }
    for (Thread& t : threads_) leave_loop(s, t, trips);
  }

  void meet() {
    if (world_.has_cells) clocks_.meet(0, static_cast<uint32_t>(threads_.size()));
  }

  void turns(const Statement& s) {
    const auto threads = static_cast<uint32_t>(threads_.size());
    const bool by_word = is_by_word(s.turns.relation);
    if (by_word) meet();
    if (is_by_warp(s.turns.relation)) {
      for (uint32_t first = 0; first < threads; first += kWarp) {
        turns(s, world_.is_backwards() ? threads - kWarp - first : first, kWarp);
      }
    } else {
      turns(s, 0, threads);
    }
    if (by_word) meet();
    if (is_by_global_word(s.turns.relation)) {
      world_.store_flag(grid_.own + world_.layout.flags[grid_.kernel] + block_,
                        std::min(s.turns.count, threads));
    }
  }

  // Of the threads from `first` on.
  void turns(const Statement& s, uint32_t first, uint32_t threads) {
    const TurnsForm& form = s.turns;
    const uint32_t count = std::min(form.count, threads);
    // Whose turn it is with a lock is open.
    const bool is_backwards = form.relation == Relation::Lock ? world_.is_backwards() : form.is_reversed;
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t thread = first + (is_backwards ? count - 1 - i : i);
      if (world_.has_cells && i > 0 && form.relation != Relation::Lock) clocks_.follow(last, thread);
      run(s.body, threads_[thread]);
      if (world_.has_cells && !is_by_word(form.relation))
        clocks_.meet(first, form.relation == Relation::SomeLanes ? count : threads);
      last = thread;
    }
  }

  void exchange(const Statement& s) {
    meet();
    std::vector<uint32_t> indices;
    for (Thread& t : threads_) {
      indices.push_back(t.returned ? 0 : evaluate(s.values[1], t) % static_cast<uint32_t>(threads_.size()));
    }
    for (Thread& t : threads_) {
      if (!t.returned) shared_[t.in_block] = evaluate(s.values[0], t);
    }
    for (Thread& t : threads_) {
      if (!t.returned) t.variables[s.number] = shared_[indices[t.in_block]];
    }
  }

  void shuffle(const Statement& s) {
    std::vector<uint32_t> given;
    for (Thread& t : threads_) given.push_back(evaluate(s.values[0], t));
    for (Thread& t : threads_) t.variables[s.number] = given[t.in_block ^ s.limit];
  }

  // ---- statements of one thread ----

  static void enter_loop(const Statement& s, Thread& t) {
    t.trips.push_back(0);
    t.limits.push_back(std::max(s.limit, 1U));
    if (!t.returned) t.variables[s.number] = 0;
  }
  static void set_counter(const Statement& s, Thread& t, uint32_t i) {
    t.trips.back() = i;
    if (!t.returned) t.variables[s.number] = i;
  }
  static void leave_loop(const Statement& s, Thread& t, uint32_t trips) {
    t.trips.pop_back();
    t.limits.pop_back();
    if (!t.returned) t.variables[s.number] = trips;
  }

  void run(const std::vector<Statement>& body, Thread& t) {
    for (const Statement& s : body) run(s, t);
  }

  void run(const Statement& s, Thread& t) {
    if (t.returned) return;
    switch (s.kind) {
      case Kind::Assign:
        t.variables[s.number] = evaluate(s.values[0], t);
        return;
      case Kind::StoreOwn:
        return store_own(t, s.number, evaluate(s.values[0], t));
      case Kind::Update:
        return update(static_cast<Sum>(s.number), evaluate(s.values[0], t) % kSumWords,
                      evaluate(s.values[1], t));
      case Kind::If:
        return run(evaluate(s.values[0], t) != 0 ? s.body : s.other, t);
      case Kind::Loop:
        return loop(s, t);
      case Kind::Return:
        t.returned = true;
        return;
      case Kind::Call:
        t.variables[s.number] =
            call(world_.program.functions[s.limit], evaluate(s.values[0], t), evaluate(s.values[1], t));
        return;
      case Kind::Launch:
        return launch(s.site, t);
      case Kind::Cell:
        t.variables[s.number] = access(s, t);
        return;
      case Kind::Fetch:
        t.variables[s.number] = own(t, s.limit);
        return;
      case Kind::Exchange:
      case Kind::Shuffle:
      case Kind::Barrier:
      case Kind::Turns:
        throw Error(ErrorCode::Internal, "a thread that waits for others alone");
    }
  }

  void loop(const Statement& s, Thread& t) {
    const uint32_t trips = evaluate(s.values[0], t) % (s.limit + 1);
    enter_loop(s, t);
    for (uint32_t i = 0; i < trips && !t.returned; ++i) {
      set_counter(s, t, i);
      run(s.body, t);
    }
    leave_loop(s, t, trips);
  }

  void store_own(const Thread& t, uint32_t word, uint32_t value) {
    world_.store_own(grid_.own + t.linear * kernel_.own_words + word, value,
                     (uint64_t{grid_.number} << 24) + t.linear + 1);
  }

  [[nodiscard]] uint32_t own(const Thread& t, uint32_t word) const {
    return world_.memories.own.at(grid_.own + t.linear * kernel_.own_words + word);
  }

  // In words; bytes wrap around in 64 bits.
  uint64_t cell_offset(const Statement& s, Thread& t) {
    uint64_t row = evaluate(s.values[0], t), column = 0;
    if (s.values.size() > 3) {
      row *= evaluate(s.values[3], t);
      column = evaluate(s.values[4], t);
    }
    const uint64_t bytes = 4 * s.cell.words();
    return ((row * bytes << s.cell.shift) + column * bytes) / 4;
  }

  uint32_t access(const Statement& s, Thread& t) {
    const uint64_t word = grid_.cells + cell_offset(s, t);
    const uint32_t operand = evaluate(s.values[1], t), swapped = evaluate(s.values[2], t);
    if (word > grid_.cells_end || word + s.cell.words() > grid_.cells_end)
      throw Error(ErrorCode::Internal, "an access beyond all cells");
    if (s.cell.via == Via::OwnAddress) {
      store_own(t, 2, 0);
      store_own(t, 3, 0);
    }
    return world_.cells.access(s.cell, static_cast<uint32_t>(word), operand, swapped,
                               clocks_.event(t.in_block));
  }

  void update(Sum sum, uint32_t index, uint32_t value) {
    std::vector<uint32_t>& sums = world_.memories.sums;
    if (sum == Sum::AddWide) {
      const uint64_t at = sum_word(sum, 2 * index);
      const uint64_t total = (sums[at] | uint64_t{sums[at + 1]} << 32) + uint64_t{value} * kWideFactor;
      sums[at] = static_cast<uint32_t>(total);
      sums[at + 1] = static_cast<uint32_t>(total >> 32);
      return;
    }
    uint32_t& word = sums[sum_word(sum, index)];
    if (sum == Sum::Add) word += value;
    if (sum == Sum::Minimum) word = std::min(word, value);
    if (sum == Sum::Maximum) word = std::max(word, value);
    if (sum == Sum::And) word &= value;
    if (sum == Sum::Or) word |= value;
    if (sum == Sum::Xor) word ^= value;
  }

  uint32_t call(const Function& function, uint32_t a, uint32_t b) {
    Thread nobody;
    for (uint32_t i = 0; i < function.trips; ++i) {
      a = evaluate(function.step, nobody, [&](const Expression& e) { return e.value == 0 ? a : b; });
    }
    return a;
  }

  void launch(const Site& site, Thread& t) {
    if (site.launchers != 0 && t.linear >= site.launchers) return;
    const bool is_self = site.kernel == grid_.kernel;
    if (is_self && grid_.depth == 0) return;
    const Kernel& child = world_.program.kernels[site.kernel];
    Grid grid;
    grid.kernel = site.kernel;
    for (size_t axis = 0; axis < 3; ++axis) grid.grid.at(axis) = extent(site.grid.at(axis), t);
    grid.block = {extent(site.block_x, t), child.block[1], child.block[2]};
    if (site.follows) grid.block = grid_.block;
    if (product(grid.grid) == 0) return;  // refused
    for (size_t v = 0; v < child.values.size(); ++v) {
      grid.values.push_back(through(child.values[v], evaluate(site.arguments[v], t)));
    }
    const SiteRoom& room = world_.layout.sites[site.id];
    uint32_t number = t.linear;
    for (size_t i = 0; i < t.trips.size(); ++i) number = number * t.limits[i] + t.trips[i];
    const uint32_t fixed = world_.layout.fixed[grid_.kernel];
    grid.depth = is_self ? grid_.depth - 1 : site.depth;
    grid.room = is_self ? (grid_.room - fixed) / world_.layout.branches[grid_.kernel]
                        : world_.layout.need(site.kernel, site.depth);
    grid.own = grid_.own + (is_self ? fixed : room.offset) + number * grid.room;
    const auto threads = static_cast<uint32_t>(threads_.size());
    const uint32_t owner = t.linear - t.in_block + (t.in_block + site.neighbour) % threads;
    grid.message = {false, grid_.own + owner * kernel_.own_words};
    grid.previous = grid_.previous;
    grid.stream = site.stream;
    grid.launcher = site.stream == Stream::PerThread ? t.linear : block_;
    grid.thread = t.linear;
    place_cells(grid, site, t);
    world_.launch(grid, launched_);
  }

  void place_cells(Grid& grid, const Site& site, Thread& t) {
    const Event launch = world_.has_cells ? clocks_.event(t.in_block) : Event{grid_.number, 0, 0, 0, nullptr};
    grid.number = world_.cells.order().add(launch, site.stream);
    const uint64_t cells = uint64_t{grid_.cells} + uint64_t{block_} * site.block_cells +
                           uint64_t{kCellAlign} * evaluate(site.cells_at, t);
    if (cells > grid_.cells_end) throw Error(ErrorCode::Internal, "a pointer beyond all cells");
    grid.cells = static_cast<uint32_t>(cells);
    grid.cells_end = grid_.cells_end;
  }

  uint32_t extent(const Extent& e, Thread& t) {
    return e.spread == 1 ? e.low : e.low + evaluate(e.of, t) % e.spread;
  }

  // ---- expressions ----

  uint32_t evaluate(const Expression& e, Thread& t) {
    return evaluate(e, t, [&](const Expression& p) { return grid_.values.at(p.value); });
  }

  uint32_t evaluate(const Expression& e, Thread& t,
                    const std::function<uint32_t(const Expression&)>& parameter) {
    const auto operand = [&](size_t i) { return evaluate(e.operands.at(i), t, parameter); };
    switch (e.op) {
      case Op::Constant:
        return e.value;
      case Op::Local:
        return t.variables.at(e.value);
      case Op::Parameter:
        return parameter(e);
      case Op::Tid:
        return t.index.at(e.value);
      case Op::Ctaid:
        return index_.at(e.value);
      case Op::Ntid:
        return grid_.block.at(e.value);
      case Op::Nctaid:
        return grid_.grid.at(e.value);
      case Op::Thread:
        return t.in_block;
      case Op::Linear:
        return t.linear;
      case Op::Own:
        return own(t, e.value);
      case Op::Message:
        return world_.read(grid_.message, 0);
      case Op::Depth:
        return grid_.depth;
      case Op::Input:
        return world_.memories.input[operand(0) % kInputWords];
      case Op::Previous:
        return world_.read(grid_.previous, operand(0) % world_.program.previous_words);
      case Op::Divide:
        return operand(0) / e.value;
      case Op::Remainder:
        return operand(0) % e.value;
      case Op::ShiftLeft:
        return operand(0) << (e.value % 32);
      case Op::ShiftRight:
        return operand(0) >> (e.value % 32);
      case Op::Add:
        return operand(0) + operand(1);
      case Op::Subtract:
        return operand(0) - operand(1);
      case Op::Multiply:
        return operand(0) * operand(1);
      case Op::And:
        return operand(0) & operand(1);
      case Op::Or:
        return operand(0) | operand(1);
      case Op::Xor:
        return operand(0) ^ operand(1);
      case Op::Minimum:
        return std::min(operand(0), operand(1));
      case Op::Maximum:
        return std::max(operand(0), operand(1));
      case Op::Equal:
        return operand(0) == operand(1) ? 1 : 0;
      case Op::Less:
        return operand(0) < operand(1) ? 1 : 0;
      case Op::LessSigned:
        return static_cast<int32_t>(operand(0)) < static_cast<int32_t>(operand(1)) ? 1 : 0;
      case Op::Select:
        return operand(0) != 0 ? operand(1) : operand(2);
    }
    return 0;
  }

  World& world_;
  const Grid& grid_;
  const Kernel& kernel_;
  uint32_t block_;
  Dim3 index_;
  std::vector<Grid>& launched_;
  BlockClocks clocks_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> shared_;
};

}  // namespace

void run_block(World& world, const Grid& grid, uint32_t block, std::vector<Grid>& launched) {
  Block(world, grid, block, launched).run();
}

}  // namespace klap::differential::random
