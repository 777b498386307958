// klap_case: runs differential test cases on the CUDA driver that it finds, and compares all memories with
// the CPU reference.
//
//   klap_case --list
//   klap_case NAME... | --file CASE.json... | --graphs A..B [--copies]   [--seeds A..B]
//
// One line of JSON per run: case, seed, result (equal, different, failed), detail. Exit codes: 0 all equal,
// 1 something is not, 2 wrong usage, 77 no driver or no device. An emulated driver starts anew for each seed;
// on a GPU the seeds are repetitions. Preloaded, it runs cases with the settings that they are made for,
// where the environment does not say otherwise.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "case_file.h"
#include "device.h"
#include "graphs/random_graph.h"
#include "own_settings.h"
#include "support/error.h"

namespace klap::differential {

namespace {

struct Seeds {
  uint64_t first = 1, last = 1;
};

Seeds parse_seeds(const std::string& text) {
  const size_t dots = text.find("..");
  Seeds seeds;
  seeds.first = std::stoull(text.substr(0, dots));
  seeds.last = dots == std::string::npos ? seeds.first : std::stoull(text.substr(dots + 2));
  return seeds;
}

std::vector<Case> chosen(const std::vector<std::string>& names, const std::vector<std::string>& files,
                         const std::string& graphs, bool copies) {
  std::vector<Case> cases;
  for (const std::string& name : names) {
    const Case* found = find_case(name);
    if (found == nullptr) throw Error(ErrorCode::Config, "there is no case " + name + " (see --list)");
    cases.push_back(*found);
  }
  for (const std::string& file : files) cases.push_back(read_case(file));
  if (graphs.empty()) return cases;
  const Seeds of_graphs = parse_seeds(graphs);
  for (uint64_t seed = of_graphs.first; seed <= of_graphs.last; ++seed)
    cases.push_back(graphs::random_graph(seed, copies));
  return cases;
}

bool run_and_print(Device& device, const Case& c, uint64_t seed) {
  const auto begin = std::chrono::steady_clock::now();
  device.reset(seed);
  const Device::Counts before = device.counts();
  const Result result = device.run(c);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const Device::Counts after = device.counts();
  const nlohmann::json line = {{"case", c.name},
                               {"seed", seed},
                               {"result", to_string(result.kind)},
                               {"detail", result.detail},
                               {"emulated", device.is_emulated()},
                               {"heap_allocations", after.heap_allocations - before.heap_allocations},
                               {"heap_kept", after.heap_kept - before.heap_kept},
                               {"device_launches", after.device_launches - before.device_launches},
                               {"launches_refused", after.launches_refused - before.launches_refused},
                               {"ms", took.count()}};
  std::puts(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return result.kind == Result::Kind::Equal;
}

int run_all(const std::vector<Case>& cases, const Seeds& seeds) {
  Device device;
  if (!device.missing().empty()) {
    std::fprintf(stderr, "klap_case: %s\n", device.missing().c_str());
    return 77;
  }
  bool all_equal = true;
  for (const Case& c : cases) {
    for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
      if (!run_and_print(device, c, seed)) all_equal = false;
    }
  }
  return all_equal ? 0 : 1;
}

int main_or_throw(int argc, char** argv) {
  CLI::App app("Runs differential test cases");
  bool list = false;
  std::vector<std::string> names, files;
  std::string seeds = "1", graphs;
  bool copies = false;
  app.add_flag("--list", list, "The cases by name, and what each would find");
  app.add_option("NAME", names, "Cases by name");
  app.add_option("--file", files, "Cases from files");
  app.add_option("--graphs", graphs, "A..B: random graphs of launches (graphs/random_graph.h)");
  app.add_flag("--copies", copies, "The graphs also copy and fill memory");
  app.add_option("--seeds", seeds, "A..B, or one seed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (list) {
    for (const Case& c : all_cases()) std::printf("%s: %s\n", c.name.c_str(), c.about.c_str());
    return 0;
  }
  const std::vector<Case> cases = chosen(names, files, graphs, copies);
  if (cases.empty()) throw Error(ErrorCode::Config, "no case is named");
  begin_with_settings_of(cases, argv);
  return run_all(cases, parse_seeds(seeds));
}

}  // namespace

}  // namespace klap::differential

int main(int argc, char** argv) {
  try {
    return klap::differential::main_or_throw(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "klap_case: %s\n", error.what());
    return 2;
  }
}
