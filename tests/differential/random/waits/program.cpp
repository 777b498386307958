#include "random/waits/program.h"

#include <algorithm>

namespace klap::differential::waits {

uint64_t kept(Type type, uint32_t value) {
  switch (type) {
    case Type::Word:
    case Type::LongReal:
      return value;
    case Type::Half:
    case Type::Real:
      return value & 0xffffU;
    case Type::Wide:
      return value * kWideFactor;
    case Type::Predicate:
      return value != 0 ? 1 : 0;
  }
  return value;
}

uint32_t taken(Type type, uint64_t kept) {
  return static_cast<uint32_t>(type == Type::Wide ? kept ^ (kept >> 32) : kept);
}

void prepare(Program& program) {
  uint32_t id = 0;
  // Fetches name their sites, so these keep their order.
  std::vector<uint32_t> numbers;
  for (Kernel& kernel : program.kernels) {
    random::for_each(kernel.body, [&](Statement& s) {
      if (s.kind != Kind::Launch) return;
      numbers.resize(std::max<size_t>(numbers.size(), s.site.id + 1), kNoVariable);
      numbers[s.site.id] = id;
      s.site.id = id++;
    });
  }
  const auto is_lost = [&](const Statement& s) {
    return s.kind == Kind::Fetch && (s.site.id >= numbers.size() || numbers[s.site.id] == kNoVariable);
  };
  for (Kernel& kernel : program.kernels) {
    random::for_each(kernel.body, [&](Statement& s) {
      std::erase_if(s.body, is_lost);
      std::erase_if(s.other, is_lost);
    });
    std::erase_if(kernel.body, is_lost);
    random::for_each(kernel.body, [&](Statement& s) {
      if (s.kind == Kind::Fetch) s.site.id = numbers[s.site.id];
    });
  }
}

uint64_t Layout::need(uint32_t kernel, uint32_t depth) const {
  const uint64_t own = fixed[kernel];
  return branches[kernel] == 0 || depth == 0 ? own : own + branches[kernel] * need(kernel, depth - 1);
}

namespace {

class LayoutMaker {
 public:
  explicit LayoutMaker(const Program& program) : program_(program) {}

  Layout make() {
    const size_t kernels = program_.kernels.size();
    out_.fixed.resize(kernels);
    out_.branches.resize(kernels);
    sites_.resize(kernels);
    // Children come behind their parents.
    for (auto k = static_cast<uint32_t>(kernels); k-- > 0;) {
      kernel_ = k;
      out_.fixed[k] = program_.kernels[k].threads() * program_.kernels[k].blocks() * kAllWords;
      visit(program_.kernels[k].body, 1, 0);
    }
    for (const Step& step : program_.steps) {
      count(step.kernel, step.depth, 1);
      out_.words += kAllWords + out_.need(step.kernel, step.depth);
    }
    return std::move(out_);
  }

 private:
  struct Launches {
    uint32_t kernel, depth;
    uint64_t count;
  };

  void visit(const std::vector<Statement>& list, uint32_t trips, uint32_t loops) {
    for (const Statement& s : list) {
      if (s.kind == Kind::Launch) place(s.site, trips, loops);
      const bool is_loop = s.kind == Kind::Loop;
      const uint32_t inner = is_loop ? trips * std::max(s.limit, 1U) : trips;
      visit(s.body, inner, s.kind == Kind::Function ? 0 : loops + (is_loop ? 1 : 0));
      visit(s.other, inner, loops);
    }
  }

  void place(const Site& site, uint32_t trips, uint32_t loops) {
    const Kernel& kernel = program_.kernels[kernel_];
    const uint32_t launches = (site.of_block ? 1 : kernel.threads()) * kernel.blocks() * trips;
    out_.sites.resize(std::max<size_t>(out_.sites.size(), site.id + 1));
    SiteRoom& room = out_.sites[site.id];
    room.trips = trips;
    room.loops = loops;
    sites_[kernel_].push_back({site.kernel, site.depth, launches});
    if (site.kernel == kernel_) {
      room.offset = out_.branches[kernel_];
      out_.branches[kernel_] += launches;
    } else {
      room.offset = out_.fixed[kernel_];
      out_.fixed[kernel_] += static_cast<uint32_t>(launches * out_.need(site.kernel, site.depth));
    }
  }

  void count(uint32_t kernel, uint32_t depth, uint64_t times) {
    constexpr uint64_t kEnough = 1U << 20;
    if (out_.grids > kEnough) return;
    out_.grids += times;
    out_.threads += times * program_.kernels[kernel].threads() * program_.kernels[kernel].blocks();
    for (const Launches& each : sites_[kernel]) {
      const bool is_self = each.kernel == kernel;
      if (is_self && depth == 0) continue;
      count(each.kernel, is_self ? depth - 1 : each.depth, times * each.count);
    }
  }

  const Program& program_;
  uint32_t kernel_ = 0;
  std::vector<std::vector<Launches>> sites_;  // by kernel
  Layout out_;
};

}  // namespace

Layout lay_out(const Program& program) { return LayoutMaker(program).make(); }

}  // namespace klap::differential::waits
