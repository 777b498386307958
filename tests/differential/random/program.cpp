#include "program.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>

namespace klap::differential::random {

bool has_kind(const std::vector<Statement>& body, Kind kind) {
  bool found = false;
  for_each(body, [&](const Statement& s) { found = found || s.kind == kind; });
  return found;
}

namespace {

bool is_one_of(Kind kind, std::initializer_list<Kind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool any_statement(const Kernel& kernel, const std::function<bool(const Statement&)>& is) {
  bool found = false;
  for_each(kernel.body, [&](const Statement& s) { found = found || is(s); });
  return found;
}

}  // namespace

bool uses(const Kernel& kernel, Op op) {
  bool found = false;
  const auto look = [&](const Expression& e) { found = found || e.op == op; };
  if (kernel.message) for_each_expression(*kernel.message, look);
  for_each(kernel.body, [&](const Statement& s) { expressions_of(s, look); });
  return found;
}

bool is_recursive(const Program& program, uint32_t kernel) {
  bool found = false;
  for_each(program.kernels[kernel].body,
           [&](const Statement& s) { found = found || (s.kind == Kind::Launch && s.site.kernel == kernel); });
  return found;
}

bool synchronises(const Statement& statement) {
  if (is_one_of(statement.kind, {Kind::Exchange, Kind::Shuffle, Kind::Barrier, Kind::Turns})) return true;
  return std::ranges::any_of(statement.body, synchronises) ||
         std::ranges::any_of(statement.other, synchronises);
}

bool uses_cells(const Program& program) {
  return std::ranges::any_of(program.kernels, [](const Kernel& k) { return has_kind(k.body, Kind::Cell); });
}

bool is_by_warp(Relation relation) {
  return relation >= Relation::WarpBarrier && relation <= Relation::Shuffle;
}
bool is_by_word(Relation relation) { return relation >= Relation::SharedAtomic; }
bool is_by_global_word(Relation relation) {
  return relation >= Relation::GlobalAcquire && relation <= Relation::GlobalAtomic;
}
bool orders_memory(Relation relation) { return relation != Relation::Vote && relation != Relation::Shuffle; }

void prepare(Program& program) {
  uint32_t id = 0;
  for (Kernel& kernel : program.kernels) {
    for_each(kernel.body, [&](Statement& s) {
      if (s.kind == Kind::Launch) s.site.id = id++;
    });
  }
}

// ---- legality ----

namespace {

// Whether lanes work together, of blocks that are multiples of 32.
bool needs_whole_warps(const Kernel& kernel) {
  return any_statement(kernel, [](const Statement& s) {
    return s.kind == Kind::Shuffle || (s.kind == Kind::Turns && is_by_warp(s.turns.relation));
  });
}

// The same for all threads of a block. Of variables only the counters of uniform loops are.
bool is_uniform(const Expression& e, const std::set<uint32_t>& counters) {
  switch (e.op) {
    case Op::Tid:
    case Op::Thread:
    case Op::Linear:
    case Op::Own:
      return false;
    case Op::Local:
      return counters.contains(e.value);
    default:
      return std::ranges::all_of(e.operands, [&](const Expression& o) { return is_uniform(o, counters); });
  }
}

class Checker {
 public:
  Checker(const Program& program, uint32_t number)
      : program_(program), number_(number), kernel_(program.kernels[number]) {}

  std::string run() {
    if (has_kind(kernel_.body, Kind::Shuffle)) {
      if (product(kernel_.block) % 32 != 0) return "a shuffle in a block that is no multiple of 32";
      if (has_kind(kernel_.body, Kind::Return)) return "a shuffle in a kernel whose threads may return";
    }
    check_turns();
    check(kernel_.body, true);
    if (own_launches_ > 1) say("a kernel that launches itself at two places");
    return problem_;
  }

 private:
  void say(const char* text) {
    if (problem_.empty()) problem_ = text;
  }

  // Threads that returned would never take their turn.
  void check_turns() {
    bool by_warp = false, any = false, orders_all = true;
    for_each(kernel_.body, [&](const Statement& s) {
      if (s.kind != Kind::Turns) return;
      any = true;
      by_warp = by_warp || is_by_warp(s.turns.relation);
      if (s.turns.count == 0) say("turns of nobody");
      if (!s.other.empty() || has_kind(s.body, Kind::Turns)) say("turns within turns");
      if (std::ranges::any_of(s.body, synchronises)) say("threads that wait for others in their turn");
      orders_all = orders_all && orders_memory(s.turns.relation);
    });
    if (!orders_all && has_kind(kernel_.body, Kind::Cell)) say("cells beside turns of launches");
    if (any && has_kind(kernel_.body, Kind::Return)) say("turns in a kernel whose threads may return");
    if (by_warp && product(kernel_.block) % 32 != 0)
      say("turns of lanes in a block that is no multiple of 32");
  }

  void check(const CellAccess& c, size_t operands) {
    const bool is_scalar = c.elements == 1 && (c.bytes == 1 || c.bytes == 2 || c.bytes == 4 || c.bytes == 8);
    const bool is_vector = c.bytes == 4 && (c.elements == 2 || c.elements == 4);
    const bool is_word = c.elements == 1 && c.bytes >= 4;
    if (operands != 3 && operands != 5) say("an access with another number of operands");
    if (c.shift > 63) say("an offset shifted too far");
    if (c.op == CellOp::AtomicAddFloat && c.bytes != 4) say("a floating-point number of no such size");
    if (!is_scalar && !is_vector) say("a cell of no such size");
    if (c.op >= CellOp::AtomicAdd && !is_word) say("an atomic operation of no such size");
    if ((c.op == CellOp::Scratch || c.op == CellOp::Poll) && (c.bytes != 4 || c.elements != 1))
      say("a wide scratch");
    if (c.form == CellForm::Relaxed && c.elements != 1) say("a relaxed vector");
    if (c.via == Via::OwnAddress && kernel_.own_words < 4) say("no room for an address");
    if (c.via == Via::OwnAddress && kernel_.own_words % 2 != 0) say("an address that is not aligned");
  }

  void check(const std::vector<Statement>& body, bool uniform) {
    for (const Statement& s : body) check(s, uniform);
  }

  void check(const Statement& s, bool uniform) {
    if (!uniform && is_one_of(s.kind, {Kind::Exchange, Kind::Shuffle, Kind::Barrier, Kind::Turns}))
      say("threads that wait for others apart");
    if (s.kind == Kind::StoreOwn && s.number == 0) say("a store to the message");
    if (s.kind == Kind::StoreOwn && s.number >= kernel_.own_words)
      say("a store beyond the thread's own words");
    if (s.kind == Kind::Fetch && s.limit >= kernel_.own_words) say("a fetch beyond the thread's own words");
    if (s.kind == Kind::Cell) check(s.cell, s.values.size());
    if (s.kind == Kind::Call && s.limit >= program_.functions.size()) say("a call of nothing");
    const bool inside = uniform && (s.values.empty() || is_uniform(s.values[0], counters_));
    if (s.kind == Kind::Loop && inside) counters_.insert(s.number);
    check(s.body, s.kind == Kind::If || s.kind == Kind::Loop ? inside : uniform && s.kind != Kind::Turns);
    if (s.kind == Kind::Loop) counters_.erase(s.number);
    check(s.other, inside);
    if (s.kind == Kind::Launch) check(s.site);
    expressions_of(s, [&](const Expression& e) {
      if (e.op == Op::Own && e.value >= kernel_.own_words) say("a read beyond the thread's own words");
      if ((e.op == Op::Divide || e.op == Op::Remainder) && e.value == 0) say("a division by zero");
    });
  }

  void check(const Site& site) {
    if (site.kernel >= program_.kernels.size() || site.kernel < number_) return say("a launch backwards");
    const Kernel& child = program_.kernels[site.kernel];
    if (site.kernel == number_) {
      ++own_launches_;
      if (site.launchers == 0) say("a kernel that launches itself in all threads");
    }
    if (site.arguments.size() != child.values.size()) say("a launch with another number of arguments");
    for (size_t axis = 0; axis < 3; ++axis) {
      if (site.grid.at(axis).spread == 0 || site.grid.at(axis).most() > child.grid.at(axis))
        say("a grid too large");
    }
    const Extent& x = site.block_x;
    if (x.low == 0 || x.spread == 0 || x.most() > child.block[0]) say("a block too large");
    if (site.follows && site.kernel != number_) say("another kernel in a block like the launching one's");
    if (site.block_cells % kCellAlign != 0) say("cells that are not aligned");
    if (needs_whole_warps(child) && site.follows) say("a shuffle in a block of any size");
    if (needs_whole_warps(child) && (x.spread != 1 || x.low != child.block[0])) {
      say("a shuffle in a block of varying size");
    }
    if (site.neighbour != 0 && !kernel_.barrier_after_message) say("a neighbour's message without a barrier");
  }

  const Program& program_;
  uint32_t number_;
  const Kernel& kernel_;
  std::set<uint32_t> counters_;
  int own_launches_ = 0;
  std::string problem_;
};

std::string problem_of_step(const Program& program, const Step& step) {
  if (step.kernel >= program.kernels.size()) return "a step that launches nothing";
  const Kernel& kernel = program.kernels[step.kernel];
  if (step.arguments.size() != kernel.values.size()) return "a step with another number of arguments";
  for (size_t axis = 0; axis < 3; ++axis) {
    if (step.grid.at(axis) == 0 || step.grid.at(axis) > kernel.grid.at(axis)) return "a step's grid";
    if (step.block.at(axis) == 0 || step.block.at(axis) > kernel.block.at(axis)) return "a step's block";
  }
  if (step.stream >= kHostStreams) return "a step in another stream";
  if (needs_whole_warps(kernel) && step.block != kernel.block) return "a shuffle in a smaller block";
  return "";
}

}  // namespace

std::string problem(const Program& program) {
  for (uint32_t k = 0; k < program.kernels.size(); ++k) {
    if (std::string text = Checker(program, k).run(); !text.empty()) return text;
  }
  for (const Step& step : program.steps) {
    if (std::string text = problem_of_step(program, step); !text.empty()) return text;
  }
  if (program.previous_words == 0 || program.previous_words > kInputWords) return "previous words";
  return "";
}

// ---- layout ----

namespace {

constexpr uint64_t kMost = 1U << 30;
uint64_t capped(uint64_t value) { return std::min(value, kMost); }

struct Cost {
  uint64_t grids = 0, threads = 0;
};

bool uses_flags(const Kernel& kernel) {
  return any_statement(kernel, [](const Statement& s) {
    return s.kind == Kind::Turns && is_by_global_word(s.turns.relation);
  });
}

class LayoutMaker {
 public:
  explicit LayoutMaker(const Program& program) : program_(program) {
    size_t sites = 0;
    for (const Kernel& kernel : program.kernels) {
      for_each(kernel.body, [&](const Statement& s) { sites += s.kind == Kind::Launch ? 1 : 0; });
    }
    layout_.sites.resize(sites);
    layout_.fixed.resize(program.kernels.size());
    layout_.branches.resize(program.kernels.size());
    layout_.flags.resize(program.kernels.size());
    costs_.resize(program.kernels.size());
  }

  Layout make() {
    for (auto k = static_cast<uint32_t>(program_.kernels.size()); k-- > 0;) lay_out_kernel(k);
    for (const Step& step : program_.steps) {
      const Cost cost = cost_of(step.kernel, step.depth);
      layout_.grids = capped(layout_.grids + cost.grids);
      layout_.threads = capped(layout_.threads + cost.threads);
    }
    return std::move(layout_);
  }

 private:
  void lay_out_kernel(uint32_t k) {
    const Kernel& kernel = program_.kernels[k];
    const uint64_t threads = uint64_t{product(kernel.grid)} * product(kernel.block);
    end_ = capped(threads * kernel.own_words);
    layout_.flags[k] = static_cast<uint32_t>(end_);
    if (uses_flags(kernel)) end_ = capped(end_ + product(kernel.grid));
    end_ = (end_ + 1) / 2 * 2;  // addresses of 8 bytes are stored in what threads own
    costs_[k] = {1, threads};
    place(k, kernel.body, 1);
    layout_.fixed[k] = static_cast<uint32_t>(end_);
  }

  void place(uint32_t k, const std::vector<Statement>& body, uint64_t trips) {
    for (const Statement& s : body) {
      place(k, s.body, s.kind == Kind::Loop ? capped(trips * std::max(s.limit, 1U)) : trips);
      place(k, s.other, trips);
      if (s.kind == Kind::Launch) place(k, s.site, trips);
    }
  }

  void place(uint32_t k, const Site& site, uint64_t trips) {
    const Kernel& kernel = program_.kernels[k];
    const uint64_t threads = uint64_t{product(kernel.grid)} * product(kernel.block);
    const uint64_t launches =
        capped(trips * (site.launchers == 0 ? threads : std::min<uint64_t>(site.launchers, threads)));
    SiteRoom& room = layout_.sites[site.id];
    room.trips = static_cast<uint32_t>(trips);
    if (site.kernel == k) {
      layout_.branches[k] = static_cast<uint32_t>(site.launchers * trips);
      return;  // lies behind everything else
    }
    room.offset = static_cast<uint32_t>(end_);
    room.need = layout_.need(site.kernel, site.depth);
    const uint64_t slots = site.launchers == 0 ? threads : site.launchers;
    end_ = capped(end_ + capped(slots * trips) * room.need);
    const Cost child = cost_of(site.kernel, site.depth);
    costs_[k].grids = capped(costs_[k].grids + launches * child.grids);
    costs_[k].threads = capped(costs_[k].threads + launches * child.threads);
  }

  Cost cost_of(uint32_t k, uint32_t depth) const {
    Cost cost = costs_[k];
    if (layout_.branches[k] == 0) return cost;
    for (uint64_t level = 0, grids = 1; level < depth; ++level) {
      grids = capped(grids * layout_.branches[k]);
      cost.grids = capped(cost.grids + grids * costs_[k].grids);
      cost.threads = capped(cost.threads + grids * costs_[k].threads);
    }
    return cost;
  }

  const Program& program_;
  Layout layout_;
  std::vector<Cost> costs_;  // of one grid without what it launches of itself
  uint64_t end_ = 0;
};

}  // namespace

uint32_t Layout::need(uint32_t kernel, uint32_t depth) const {
  uint64_t total = fixed[kernel];
  if (branches[kernel] == 0) return static_cast<uint32_t>(total);
  for (uint32_t level = 0; level < depth; ++level) total = capped(fixed[kernel] + branches[kernel] * total);
  return static_cast<uint32_t>(total);
}

Layout lay_out(const Program& program) { return LayoutMaker(program).make(); }

// ---- parameters ----

uint32_t bytes_of_width(Width width) {
  switch (width) {
    case Width::U8:
    case Width::S8:
      return 1;
    case Width::U16:
    case Width::S16:
      return 2;
    case Width::U32:
    case Width::F32:
      return 4;
    case Width::U64:
      return 8;
  }
  return 4;
}

uint32_t through(Width width, uint32_t value) {
  switch (width) {
    case Width::U8:
      return value & 0xffU;
    case Width::S8:
      return static_cast<uint32_t>(static_cast<int8_t>(value));
    case Width::U16:
    case Width::F32:  // of which only small numbers are passed, exactly
      return value & 0xffffU;
    case Width::S16:
      return static_cast<uint32_t>(static_cast<int16_t>(value));
    case Width::U32:
      return value;
    case Width::U64: {  // passed as a product, taken as both halves together
      const uint64_t wide = uint64_t{value} * kWideFactor;
      return static_cast<uint32_t>(wide) ^ static_cast<uint32_t>(wide >> 32);
    }
  }
  return value;
}

namespace {

bool accesses(const Statement& s, Via via) { return s.kind == Kind::Cell && s.cell.via == via; }

bool needs(const Program& program, uint32_t k, Role role) {
  const Kernel& kernel = program.kernels[k];
  switch (role) {
    case Role::Values:
      return true;
    case Role::Message:
      return uses(kernel, Op::Message);
    case Role::Room:
      return is_recursive(program, k);
    case Role::Depth:
      return is_recursive(program, k) || uses(kernel, Op::Depth);
    case Role::Input:
      if (uses(kernel, Op::Input)) return true;
      break;
    case Role::Sums:
      if (has_kind(kernel.body, Kind::Update)) return true;
      break;
    case Role::Previous:
      if (uses(kernel, Op::Previous)) return true;
      break;
    case Role::Own:
      if (kernel.message || uses(kernel, Op::Own) || has_kind(kernel.body, Kind::StoreOwn)) return true;
      if (has_kind(kernel.body, Kind::Fetch) || uses_flags(kernel)) return true;
      if (any_statement(kernel, [](const Statement& s) { return accesses(s, Via::OwnAddress); })) return true;
      break;
    case Role::Cells:
    case Role::Alias:
      if (any_statement(kernel, [&](const Statement& s) {
            return s.kind == Kind::Cell && s.cell.alias == (role == Role::Alias);
          }))
        return true;
      break;
  }
  bool needed = false;
  for_each(kernel.body, [&](const Statement& s) {
    if (needed || s.kind != Kind::Launch) return;
    // A child's message is a word of this kernel's own.
    if (role == Role::Own && needs(program, s.site.kernel, Role::Message)) needed = true;
    if (s.site.kernel != k && needs(program, s.site.kernel, role)) needed = true;
  });
  return needed;
}

uint32_t bytes_of_role(Role role) { return role == Role::Room || role == Role::Depth ? 4 : 8; }

uint32_t aligned(uint32_t offset, uint32_t align) { return (offset + align - 1) / align * align; }

Formal add_values(const Kernel& kernel, const Parameter& parameter, Signature& out) {
  Formal formal;
  formal.is_structure = parameter.values.size() > 1;
  for (const uint32_t value : parameter.values) {
    const uint32_t bytes = bytes_of_width(kernel.values[value]);
    formal.bytes = aligned(formal.bytes, bytes);
    formal.align = std::max(formal.align, bytes);
    out.slots.push_back({Role::Values, value, static_cast<uint32_t>(out.formals.size()), formal.bytes});
    formal.bytes += bytes;
  }
  formal.bytes = aligned(formal.bytes, formal.align);
  return formal;
}

}  // namespace

const Slot* Signature::find(Role role) const {
  const auto found = std::ranges::find(slots, role, &Slot::role);
  return found == slots.end() ? nullptr : &*found;
}

Signature signature(const Program& program, uint32_t k) {
  const Kernel& kernel = program.kernels[k];
  Signature out;
  uint32_t end = 0;
  for (const Parameter& parameter : kernel.parameters) {
    if (!needs(program, k, parameter.role)) continue;
    Formal formal;
    if (parameter.role == Role::Values) {
      if (parameter.values.empty()) continue;
      formal = add_values(kernel, parameter, out);
    } else {
      formal.bytes = formal.align = bytes_of_role(parameter.role);
      out.slots.push_back({parameter.role, 0, static_cast<uint32_t>(out.formals.size()), 0});
    }
    formal.offset = aligned(end, formal.align);
    end = formal.offset + formal.bytes;
    out.formals.push_back(formal);
  }
  return out;
}

}  // namespace klap::differential::random
