#include "random/waits/generate.h"

#include <array>

#include "random/random_source.h"
#include "random/waits/make_body.h"

namespace klap::differential::waits {

namespace {

constexpr uint64_t kMostGrids = 120, kMostThreads = 2500, kMostWords = 1U << 16;

// Programs that follow each other run in one process. They poll or not together, as those that do need more
// room on the device.
constexpr uint64_t kAlike = 16, kPolling = 0x10c;

using random::Random;

class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : random_(seed) { program_.seed = seed; }

  Program make() {
    const auto kernels = static_cast<uint32_t>(random_.between(2, 3));
    program_.kernels.resize(kernels);
    program_.polls = Random(program_.seed / kAlike ^ kPolling).chance(25);
    uint32_t sites = 0;
    for (uint32_t k = kernels; k-- > 0;) {
      const bool launches = k == 0 || (k + 1 < kernels && random_.chance(50));
      program_.kernels[k].is_recursive = launches && random_.chance(40);
      shape(program_.kernels[k], k == 0, launches);
      make_body(random_, program_, k, launches, sites);
    }
    const uint64_t steps = random_.between(1, 2);
    for (uint64_t i = 0; i < steps; ++i) {
      Step step;
      step.depth = program_.kernels[0].is_recursive ? static_cast<uint32_t>(random_.between(1, 3)) : 0;
      for (uint32_t v = 0; v < program_.kernels[0].values; ++v) step.arguments.push_back(random_.number());
      program_.steps.push_back(step);
    }
    prepare(program_);
    return std::move(program_);
  }

 private:
  void shape(Kernel& kernel, bool is_first, bool launches) {
    using Dimensions = std::array<uint32_t, 3>;
    static constexpr std::array<Dimensions, 8> kLines = {
        {{32, 1, 1}, {1, 1, 1}, {7, 1, 1}, {33, 1, 1}, {4, 1, 1}, {16, 1, 1}, {48, 1, 1}, {64, 1, 1}}};
    static constexpr std::array<Dimensions, 4> kSolids = {{{8, 4, 1}, {2, 3, 4}, {3, 5, 1}, {5, 1, 2}}};
    const size_t lines = is_first ? kLines.size() : kLines.size() - 2;
    kernel.block =
        random_.chance(25) ? kSolids.at(random_.below(kSolids.size())) : kLines.at(random_.below(lines));
    kernel.grid = {static_cast<uint32_t>(random_.between(1, 3)), 1, 1};
    if (random_.chance(15)) kernel.grid[1 + random_.below(2)] = 2;
    kernel.values = static_cast<uint32_t>(random_.below(3));
    static constexpr std::array<uint32_t, 4> kBytes = {1, 2, 4, 8};
    if (random_.chance(45)) {
      kernel.local_elements = static_cast<uint32_t>(random_.between(2, 9));
      kernel.local_bytes = kBytes.at(random_.below(4));
      kernel.is_generic = random_.chance(40);
    }
    kernel.has_shared = random_.chance(55) && (launches || kernel.threads() % 32 == 0);
    // The executor runs no kernels that wait and that are launched with an array of their launch's size.
    const bool is_launched_and_waits = launches && (!is_first || kernel.is_recursive);
    kernel.is_dynamic = kernel.has_shared && random_.chance(is_launched_and_waits ? 4 : 40);
    kernel.slot_bytes = kBytes.at(random_.below(3));
  }

  Random random_;
  Program program_;
};

bool has(const std::vector<Statement>& list, Kind kind) {
  bool found = false;
  random::for_each(list, [&](const Statement& s) { found = found || s.kind == kind; });
  return found;
}

// Launches that wait at the same time are limited, and the emulator takes its time.
bool is_affordable(const Program& program) {
  const Layout layout = lay_out(program);
  return layout.grids <= kMostGrids && layout.threads <= kMostThreads && layout.words <= kMostWords;
}

}  // namespace

Program generate(uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt) {
    Program program = ProgramMaker(seed + (attempt << 40)).make();
    program.seed = seed;
    const std::vector<Statement>& first = program.kernels[0].body;
    if (has(first, Kind::Launch) && has(first, Kind::Wait) && is_affordable(program)) return program;
  }
}

}  // namespace klap::differential::waits
