#include "random/generate.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "random/generate_addresses.h"
#include "random/generate_code.h"
#include "random/generate_order.h"
#include "random/random_source.h"
#include "random/reference.h"
#include "support/error.h"

namespace klap::differential::random {

namespace {

struct Feature {
  std::string_view name;
  bool Mix::*member;
  bool legal_today;
};
constexpr std::array<Feature, 20> kFeatures = {{
    {"nested", &Mix::nested, false},
    {"recursion", &Mix::recursion, false},
    {"loops", &Mix::loops, false},
    {"sites", &Mix::sites, false},
    {"barriers", &Mix::barriers, false},
    {"shuffles", &Mix::shuffles, false},
    {"dynamic_shared", &Mix::dynamic_shared, false},
    {"varying_blocks", &Mix::varying_blocks, false},
    {"following", &Mix::following, false},
    {"functions", &Mix::functions, true},
    {"exits", &Mix::exits, true},
    {"refused", &Mix::refused, true},
    {"structures", &Mix::structures, true},
    {"dimensions", &Mix::dimensions, true},
    {"messages", &Mix::messages, true},
    {"previous", &Mix::previous, true},
    {"null_stream", &Mix::null_stream, true},
    {"per_thread", &Mix::per_thread, true},
    {"fire_and_forget", &Mix::fire_and_forget, true},
    {"streams", &Mix::streams, true},
}};

constexpr std::array<Feature, 14> kOrderFeatures = {{
    {"plain", &Mix::plain, false},
    {"turns", &Mix::turns, false},
    {"child_turns", &Mix::child_turns, false},
    {"unordered", &Mix::unordered, false},
    {"blocks", &Mix::blocks, false},
    {"tables", &Mix::tables, false},
    {"tolerated", &Mix::tolerated, false},
    {"widths", &Mix::widths, false},
    {"forms", &Mix::forms, false},
    {"ways", &Mix::ways, false},
    {"atomics", &Mix::atomics, false},
    {"aliases", &Mix::aliases, false},
    {"other_streams", &Mix::other_streams, false},
    {"addresses", &Mix::addresses, false},
}};

// Changes one feature, as in "+loops".
bool change_feature(Mix& mix, std::span<const Feature> features, std::string_view item) {
  if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) return false;
  const auto found = std::ranges::find(features, item.substr(1), &Feature::name);
  if (found == features.end()) return false;
  mix.*found->member = item[0] == '+';
  return true;
}

void change_mix(Mix& mix, std::string_view item) {
  if (change_feature(mix, kFeatures, item) || change_feature(mix, kOrderFeatures, item)) return;
  const bool is_legal = item == "legal";
  if (is_legal || item == "all" || item == "swarm" || item == "order" || item == "waits") {
    mix = {};
    mix.swarm = item == "swarm";
    mix.order = item == "order";
    mix.waits = item == "waits";
    for (const Feature& f : kFeatures) mix.*f.member = !is_legal || f.legal_today;
    return;
  }
  std::string names;
  for (const Feature& f : kFeatures) names += (names.empty() ? "" : ", ") + std::string(f.name);
  for (const Feature& f : kOrderFeatures) names += ", " + std::string(f.name);
  throw Error(ErrorCode::Config, "\"" + std::string(item) + "\" is not a mix")
      .fix("all, legal, swarm, order, waits, or + or - and one of " + names);
}

// What a program may cost: launches that wait at the same time are limited (2,048 by default), and the
// emulator takes its time.
constexpr uint64_t kMostGrids = 500, kMostThreads = 12000, kMostWords = 1U << 17;

class ProgramMaker {
 public:
  ProgramMaker(uint64_t seed, const Mix& mix) : random_(seed), mix_(mix) { program_.seed = seed; }

  Program make() {
    make_functions();
    // Without nesting, those of the first half launch and the others are launched.
    const auto kernels = static_cast<uint32_t>(random_.between(2, mix_.nested ? 4 : 3));
    const uint32_t roots = mix_.nested ? kernels - 1 : kernels / 2;
    program_.kernels.resize(kernels);
    for (uint32_t k = kernels; k-- > 0;) make_kernel(k, k < roots);
    make_steps(roots);
    program_.previous_words = static_cast<uint32_t>(random_.between(1, 64));
    prepare(program_);
    return std::move(program_);
  }

 private:
  void make_functions() {
    const uint64_t count = mix_.functions ? random_.between(1, 2) : 0;
    for (uint64_t i = 0; i < count; ++i) program_.functions.push_back(make_function(random_));
  }

  void make_kernel(uint32_t k, bool launches) {
    Kernel& kernel = program_.kernels[k];
    const bool guarded = !launches && random_.chance(60);
    kernel.block = random_block(mix_.dimensions && !guarded);
    kernel.grid = random_grid(mix_.dimensions && !guarded);
    kernel.own_words = static_cast<uint32_t>(random_.between(1, 3));
    const uint64_t values = random_.between(0, 5);
    for (uint64_t i = 0; i < values; ++i) kernel.values.push_back(static_cast<Width>(random_.below(kWidths)));
    if (guarded) {
      kernel.bound = static_cast<uint32_t>(random_.below(kernel.values.size() + 1));
      kernel.values.insert(kernel.values.begin() + *kernel.bound, Width::U32);
    }
    kernel.parameters = random_parameters(kernel);
    kernel.dynamic_shared = mix_.dynamic_shared && random_.chance(40);
    CodeMaker code(random_, mix_, program_, k);
    code.make_body();
    if (launches) code.add_launches();
  }

  Dim3 random_block(bool dimensions) {
    static constexpr std::array<Dim3, 8> kLines = {
        {{32, 1, 1}, {64, 1, 1}, {1, 1, 1}, {7, 1, 1}, {33, 1, 1}, {96, 1, 1}, {32, 1, 1}, {64, 1, 1}}};
    static constexpr std::array<Dim3, 4> kSolids = {{{8, 4, 1}, {4, 4, 2}, {3, 5, 1}, {16, 2, 2}}};
    if (dimensions && random_.chance(30)) return kSolids.at(random_.below(kSolids.size()));
    return kLines.at(random_.below(kLines.size()));
  }
  Dim3 random_grid(bool dimensions) {
    Dim3 grid = {static_cast<uint32_t>(random_.between(1, 4)), 1, 1};
    if (dimensions && random_.chance(30)) {
      grid[1] = static_cast<uint32_t>(random_.between(1, 2));
      grid[2] = static_cast<uint32_t>(random_.between(1, 2));
    }
    return grid;
  }

  std::vector<Parameter> random_parameters(const Kernel& kernel) {
    std::vector<Parameter> parameters;
    for (const Role role :
         {Role::Input, Role::Sums, Role::Own, Role::Room, Role::Depth, Role::Message, Role::Previous}) {
      parameters.push_back({role, {}});
    }
    for (uint32_t v = 0; v < kernel.values.size(); ++v) {
      const bool joins = mix_.structures && random_.chance(40) && parameters.back().role == Role::Values;
      if (joins) {
        parameters.back().values.push_back(v);
      } else {
        parameters.push_back({Role::Values, {v}});
      }
    }
    for (size_t i = parameters.size(); i-- > 1;) std::swap(parameters[i], parameters[random_.below(i + 1)]);
    return parameters;
  }

  void make_steps(uint32_t roots) {
    const uint64_t count = random_.between(1, 4);
    for (uint64_t i = 0; i < count; ++i) {
      Step step;
      step.kernel = static_cast<uint32_t>(random_.chance(60) ? 0 : random_.below(std::max(roots, 1U)));
      const Kernel& kernel = program_.kernels[step.kernel];
      step.stream = mix_.streams ? static_cast<uint32_t>(random_.below(3)) : 0;
      step.block = kernel.block;
      step.grid = kernel.grid;
      for (uint32_t& extent : step.grid) extent = static_cast<uint32_t>(random_.between(1, extent));
      if (follows_itself(kernel) && random_.chance(50))
        step.block[0] = static_cast<uint32_t>(random_.between(1, step.block[0]));
      step.depth = is_recursive(program_, step.kernel) ? static_cast<uint32_t>(random_.between(1, 4)) : 0;
      for (size_t v = 0; v < kernel.values.size(); ++v) step.arguments.push_back(random_.number());
      step.wait = random_.chance(20);
      program_.steps.push_back(std::move(step));
    }
  }

  static bool follows_itself(const Kernel& kernel) {
    bool found = false;
    for_each(kernel.body, [&](const Statement& s) { found = found || s.site.follows; });
    return found;
  }

  Random random_;
  const Mix& mix_;
  Program program_;
};

bool is_affordable(const Program& program) {
  const Layout layout = lay_out(program);
  uint64_t words = 0;
  for (const Step& step : program.steps) words += layout.need(step.kernel, step.depth);
  return layout.grids <= kMostGrids && layout.threads <= kMostThreads && words <= kMostWords;
}

// Halves what costs most until the program is affordable: first how many threads launch, then grids.
void make_affordable(Program& program) {
  uint32_t launchers = 64;
  while (!is_affordable(program)) {
    for (uint32_t k = 0; k < program.kernels.size(); ++k) {
      for_each(program.kernels[k].body, [&](Statement& s) {
        if (s.kind != Kind::Launch) return;
        if (s.site.launchers == 0 || s.site.launchers > launchers) s.site.launchers = std::max(launchers, 1U);
        if (launchers > 0) return;
        s.site.depth = std::min(s.site.depth, 2U);
      });
    }
    if (launchers == 0) {
      if (program.steps.size() == 1) break;
      program.steps.pop_back();
    }
    launchers /= 2;
  }
}

Mix halved(Mix mix, std::span<const Feature> features, uint64_t seed) {
  Random random(~seed);
  for (const Feature& f : features) mix.*f.member = mix.*f.member && random.chance(50);
  return mix;
}

}  // namespace

Mix parse_mix(std::string_view text) {
  Mix mix;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    change_mix(mix, text.substr(0, comma));
    if (comma == text.size()) return mix;
    text.remove_prefix(comma + 1);
  }
}

namespace {

bool depends_on_order(const Program& program) {
  const Memories right = run_reference(program), wrong = run_reference(program, GridOrder::Reversed);
  return right.cells != wrong.cells || right.own != wrong.own || right.sums != wrong.sums;
}

// The next candidate whose result depends on nothing but what CUDA orders. Half of what the mix allows is
// left out at random: features hide each other. Of every five programs in which launches have an order at
// least four show it; in the others, what orders them must not be what keeps children apart.
Program generate_ordered(uint64_t seed, const Mix& wanted) {
  const Mix mix = halved(halved(wanted, kFeatures, seed), kOrderFeatures, seed + 1);
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t number = seed + (attempt << 40);
    auto [program, is_commuting] =
        mix.addresses ? make_address_program(number, mix) : make_ordered_program(number, mix);
    program.seed = seed;
    if (const std::string text = problem(program); !text.empty())
      throw Error(ErrorCode::Internal, "program " + std::to_string(seed) + " has " + text);
    if (own_words(program, lay_out(program)) > kMostWords || !disorder(program).empty()) continue;
    if (is_commuting || seed % 5 == 0 || attempt > 50 || depends_on_order(program)) return program;
  }
}

}  // namespace

Program generate(uint64_t seed, const Mix& wanted) {
  if (wanted.order) return generate_ordered(seed, wanted);
  const Mix mix = wanted.swarm ? halved(wanted, kFeatures, seed) : wanted;
  // The next attempt, should one be too costly even when cut down, is as random and as reproducible.
  for (uint64_t attempt = 0;; ++attempt) {
    Program program = ProgramMaker(seed + (attempt << 40), mix).make();
    program.seed = seed;
    make_affordable(program);
    if (!is_affordable(program)) continue;
    if (const std::string text = problem(program); !text.empty()) {
      throw Error(ErrorCode::Internal, "program " + std::to_string(seed) + " has " + text);
    }
    return program;
  }
}

}  // namespace klap::differential::random
