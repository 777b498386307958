#include "random/waits/reference.h"

#include <algorithm>
#include <functional>

#include "random/random_source.h"

namespace klap::differential::waits {

namespace {

struct Grid {
  uint32_t kernel = 0, depth = 0, blocks_x = 1;
  uint32_t own = 0, above = 0, above_count = 1;  // words
  std::vector<uint32_t> values;
};

using Threads = std::vector<uint32_t>;  // that take part

class World {
 public:
  explicit World(const Program& of) : program(of), layout(lay_out(of)), memories(initial_memories(of)) {}
  void run(const Grid& grid);

  const Program& program;
  const Layout layout;
  Memories memories;
};

// One block of one grid.
class Block {
 public:
  Block(World& world, const Grid& grid, uint32_t number)
      : world_(world),
        grid_(grid),
        kernel_(world.program.kernels[grid.kernel]),
        number_(number),
        ended_(kernel_.threads()),
        slots_(kernel_.threads()),
        locals_(kernel_.threads(), std::vector<uint64_t>(kernel_.local_elements)) {}

  void run() {
    Threads all(kernel_.threads());
    for (uint32_t t = 0; t < all.size(); ++t) all[t] = t;
    scope_.types = kernel_.types;
    scope_.variables.assign(all.size(), std::vector<uint64_t>(kernel_.types.size()));
    scope_.slots.assign(all.size(), 0);
    run(kernel_.body, all);
    if (world_.program.polls) world_.memories.words[grid_.above + kEndedThreads] += kernel_.threads();
  }

 private:
  // The kernel, or a function that it calls.
  struct Scope {
    std::vector<Type> types;
    std::vector<std::vector<uint64_t>> variables;  // by thread
    Threads slots;                                 // by thread: number of the iteration around the call
    std::vector<const Statement*> loops;
  };

  void run(const std::vector<Statement>& list, const Threads& threads) {
    for (const Statement& s : list) {
      Threads there;
      for (const uint32_t t : threads)
        if (!ended_[t]) there.push_back(t);
      run(s, there);
    }
  }

  void run(const Statement& s, const Threads& threads) {
    switch (s.kind) {
      case Kind::If:
        return branch(s, threads);
      case Kind::Loop:
        return loop(s, threads);
      case Kind::Function:
        return call(s, threads);
      case Kind::Barrier:
        return count(s, threads);
      case Kind::ClearTotal:
        if (!ended_[0]) total_ = 0;
        return;
      default:
        for (const uint32_t t : threads) run(s, t);
    }
  }

  void run(const Statement& s, uint32_t t) {
    const auto value = [&](size_t i) { return evaluate(s.values[i], t); };
    switch (s.kind) {
      case Kind::Assign:
        return set(s.number, t, value(0));
      case Kind::StoreOwn:
        own_word(t, s.number) = value(0);
        return;
      case Kind::AddOwn:
        own_word(t, s.number) += value(0);
        return;
      case Kind::AddAbove:
        above_word(value(0), s.number) += value(1);
        return;
      case Kind::Return:
        ended_[t] = true;
        return;
      case Kind::Launch:
        return launch(s.site, t);
      case Kind::Wait:
        if (s.number != kNoVariable) set(s.number, t, 0);
        return;
      case Kind::Fetch:
        return set(s.number, t, fetched(s, t));
      default:
        return access_own(s, t);
    }
  }

  // Accesses of memory of the block and of the thread.
  void access_own(const Statement& s, uint32_t t) {
    const auto value = [&](size_t i) { return evaluate(s.values[i], t); };
    const uint64_t slot_mask = mask(kernel_.slot_bytes), local_mask = mask(kernel_.local_bytes);
    switch (s.kind) {
      case Kind::StoreShared:
        slots_[t] = value(0) & slot_mask;
        return;
      case Kind::LoadShared:
        return set(s.number, t, static_cast<uint32_t>(slots_[(t + s.limit) % kernel_.threads()]));
      case Kind::AddTotal:
        total_ += value(0);
        return;
      case Kind::LoadTotal:
        return set(s.number, t, total_);
      case Kind::StoreLocal:
        locals_[t][value(0) % kernel_.local_elements] = value(1) & local_mask;
        return;
      case Kind::LoadLocal:
        return set(s.number, t, static_cast<uint32_t>(locals_[t][value(0) % kernel_.local_elements]));
      default:
        return set(s.number, t, 0);
    }
  }

  static uint64_t mask(uint32_t bytes) { return bytes >= 4 ? ~0U : (1U << (8 * bytes)) - 1; }

  void branch(const Statement& s, const Threads& threads) {
    Threads yes, no;
    for (const uint32_t t : threads) (evaluate(s.values[0], t) != 0 ? yes : no).push_back(t);
    run(s.body, yes);
    run(s.other, no);
  }

  void loop(const Statement& s, Threads threads) {
    std::vector<uint32_t> bounds(kernel_.threads());
    for (const uint32_t t : threads) {
      bounds[t] = evaluate(s.values[0], t) % (s.limit + 1);
      set(s.number, t, 0);
    }
    scope_.loops.push_back(&s);
    while (true) {
      std::erase_if(threads, [&](uint32_t t) { return ended_[t] || get(s.number, t) >= bounds[t]; });
      if (threads.empty()) break;
      run(s.body, threads);
      for (const uint32_t t : threads) set(s.number, t, get(s.number, t) + 1);
    }
    scope_.loops.pop_back();
  }

  void call(const Statement& s, const Threads& threads) {
    Scope inner;
    inner.types = s.types;
    inner.variables.assign(kernel_.threads(), std::vector<uint64_t>(s.types.size()));
    inner.slots.assign(kernel_.threads(), 0);
    for (const uint32_t t : threads) {
      inner.slots[t] = slot(t, static_cast<uint32_t>(scope_.loops.size()));
      inner.variables[t][0] = kept(s.types[0], evaluate(s.values[0], t));
    }
    std::swap(scope_, inner);
    run(s.body, threads);
    std::vector<uint32_t> results(kernel_.threads());
    for (const uint32_t t : threads) results[t] = evaluate(s.result, t);
    std::swap(scope_, inner);
    for (const uint32_t t : threads) set(s.number, t, results[t]);
  }

  void count(const Statement& s, const Threads& threads) {
    const auto form = static_cast<BarrierForm>(s.limit);
    if (form == BarrierForm::Plain || form == BarrierForm::NotAligned) return;
    uint32_t asking = 0;
    for (const uint32_t t : threads) asking += evaluate(s.values[0], t) != 0 ? 1 : 0;
    const bool all = asking == threads.size();
    const uint32_t result = form == BarrierForm::Count ? asking
                            : form == BarrierForm::All ? all
                            : form == BarrierForm::Any ? asking != 0
                                                       : asking == 0;
    for (const uint32_t t : threads) set(s.number, t, result);
  }

  // The number of the iteration, of so many of the loops around, counted through.
  uint32_t slot(uint32_t t, uint32_t loops) const {
    uint32_t number = scope_.slots[t];
    for (uint32_t i = 0; i < loops; ++i)
      number = number * std::max(scope_.loops[i]->limit, 1U) + get(scope_.loops[i]->number, t);
    return number;
  }

  // The number of a launch among all of its site by the grid.
  uint32_t launch_number(const Site& site, uint32_t t) const {
    const SiteRoom& room = world_.layout.sites[site.id];
    return (site.of_block ? number_ : linear(t)) * room.trips + slot(t, room.loops);
  }

  uint32_t room_of(const Site& site, uint32_t t) const {
    const Layout& layout = world_.layout;
    const SiteRoom& room = layout.sites[site.id];
    const bool is_self = site.kernel == grid_.kernel;
    const auto need = static_cast<uint32_t>(layout.need(site.kernel, is_self ? grid_.depth - 1 : site.depth));
    return is_self ? grid_.own + layout.fixed[grid_.kernel] + (room.offset + launch_number(site, t)) * need
                   : grid_.own + room.offset + launch_number(site, t) * need;
  }

  void launch(const Site& site, uint32_t t) {
    const bool is_self = site.kernel == grid_.kernel;
    if (is_self && grid_.depth == 0) return;
    Grid child;
    child.kernel = site.kernel;
    child.depth = is_self ? grid_.depth - 1 : site.depth;
    child.blocks_x = site.grid_low + evaluate(site.grid_of, t) % site.grid_spread;
    child.own = room_of(site, t);
    child.above = words_of(site.of_block ? number_ * kernel_.threads() : linear(t));
    child.above_count = site.of_block ? kernel_.threads() : 1;
    for (const Expression& e : site.arguments) child.values.push_back(evaluate(e, t));
    const Kernel& launched = world_.program.kernels[child.kernel];
    if (world_.program.polls)
      world_.memories.words[child.above + kLaunchedThreads] +=
          child.blocks_x * launched.grid[1] * launched.grid[2] * launched.threads();
    world_.run(child);
  }

  uint32_t fetched(const Statement& s, uint32_t t) const {
    const Site& site = *site_of(s.site.id);
    if (site.kernel == grid_.kernel && grid_.depth == 0) return 0;
    const Kernel& child = world_.program.kernels[site.kernel];
    const uint32_t thread = evaluate(s.values[0], t) % (child.threads() * child.blocks());
    return world_.memories.words[room_of(site, t) + thread * kAllWords + s.limit];
  }
  const Site* site_of(uint32_t id) const {
    const Site* found = nullptr;
    random::for_each(kernel_.body, [&](const Statement& s) {
      if (s.kind == Kind::Launch && s.site.id == id) found = &s.site;
    });
    return found;
  }

  uint32_t get(uint32_t variable, uint32_t t) const {
    return taken(scope_.types[variable], scope_.variables[t][variable]);
  }
  void set(uint32_t variable, uint32_t t, uint32_t value) {
    scope_.variables[t][variable] = kept(scope_.types[variable], value);
  }
  uint32_t linear(uint32_t t) const { return number_ * kernel_.threads() + t; }
  uint32_t words_of(uint32_t linear_thread) const { return grid_.own + linear_thread * kAllWords; }
  uint32_t& own_word(uint32_t t, uint32_t word) { return world_.memories.words[words_of(linear(t)) + word]; }
  uint32_t& above_word(uint32_t thread, uint32_t word) const {
    return world_.memories.words[grid_.above + thread % grid_.above_count * kAllWords + word];
  }

  uint32_t place(Op op, uint32_t axis, uint32_t t) const {
    const std::array<uint32_t, 3> grid = {grid_.blocks_x, kernel_.grid[1], kernel_.grid[2]};
    const std::array<uint32_t, 3>& block = kernel_.block;
    const auto along = [axis](uint32_t number, const std::array<uint32_t, 3>& extents) {
      return axis == 0   ? number % extents[0]
             : axis == 1 ? number / extents[0] % extents[1]
                         : number / extents[0] / extents[1];
    };
    if (op == Op::Tid) return along(t, block);
    if (op == Op::Ctaid) return along(number_, grid);
    return op == Op::Ntid ? block.at(axis) : grid.at(axis);
  }

  uint32_t evaluate(const Expression& e, uint32_t t) const {
    switch (e.op) {
      case Op::Constant:
        return e.value;
      case Op::Local:
        return get(e.value, t);
      case Op::Parameter:
        return grid_.values[e.value];
      case Op::Tid:
      case Op::Ctaid:
      case Op::Ntid:
      case Op::Nctaid:
        return place(e.op, e.value, t);
      case Op::Thread:
        return t;
      case Op::Linear:
        return linear(t);
      case Op::Depth:
        return grid_.depth;
      case Op::Own:
        return world_.memories.words[words_of(linear(t)) + e.value];
      case Op::Message:
        return above_word(evaluate(e.operands[0], t), e.value);
      case Op::Input:
        return world_.memories.input[evaluate(e.operands[0], t) % kInputWords];
      default:
        return computed(e, t);
    }
  }

  uint32_t computed(const Expression& e, uint32_t t) const {
    const uint32_t a = evaluate(e.operands[0], t);
    const uint32_t b = e.operands.size() > 1 ? evaluate(e.operands[1], t) : e.value;
    switch (e.op) {
      case Op::Add:
        return a + b;
      case Op::Subtract:
        return a - b;
      case Op::Multiply:
        return a * b;
      case Op::And:
        return a & b;
      case Op::Or:
        return a | b;
      case Op::Xor:
        return a ^ b;
      case Op::Minimum:
        return std::min(a, b);
      case Op::Maximum:
        return std::max(a, b);
      case Op::Equal:
        return a == b;
      case Op::Less:
        return a < b;
      case Op::Remainder:
        return a % b;
      case Op::ShiftRight:
        return a >> b;
      default:  // Select
        return a != 0 ? b : evaluate(e.operands[2], t);
    }
  }

  World& world_;
  const Grid& grid_;
  const Kernel& kernel_;
  const uint32_t number_;
  std::vector<bool> ended_;
  std::vector<uint64_t> slots_;
  uint32_t total_ = 0;
  std::vector<std::vector<uint64_t>> locals_;
  Scope scope_;
};

void World::run(const Grid& grid) {
  const Kernel& kernel = program.kernels[grid.kernel];
  const uint32_t blocks = grid.blocks_x * kernel.grid[1] * kernel.grid[2];
  for (uint32_t block = 0; block < blocks; ++block) Block(*this, grid, block).run();
}

}  // namespace

std::vector<uint32_t> step_words(const Program& program, const Layout& layout) {
  std::vector<uint32_t> begins;
  uint64_t next = 0;
  for (const Step& step : program.steps) {
    begins.push_back(static_cast<uint32_t>(next));
    next += kAllWords + layout.need(step.kernel, step.depth);
  }
  return begins;
}

Memories initial_memories(const Program& program) {
  random::Random random(program.seed ^ 0x5eed);
  const Layout layout = lay_out(program);
  Memories memories;
  for (uint32_t i = 0; i < kInputWords; ++i) memories.input.push_back(random.number());
  memories.words.resize(layout.words);
  for (const uint32_t begin : step_words(program, layout))
    for (uint32_t i = 0; i < kWords; ++i) memories.words[begin + i] = random.number();
  return memories;
}

Memories run_reference(const Program& program) {
  World world(program);
  const std::vector<uint32_t> begins = step_words(program, world.layout);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Grid grid;
    grid.kernel = step.kernel;
    grid.depth = step.depth;
    grid.blocks_x = program.kernels[step.kernel].grid[0];
    grid.above = begins[i];
    grid.own = begins[i] + kAllWords;
    grid.values = step.arguments;
    world.run(grid);
  }
  return std::move(world.memories);
}

}  // namespace klap::differential::waits
