// One compiled program on a machine of its own, and the settings to run it under.
#pragma once

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/machine/machine.h"

namespace klap::emulator {

inline std::string read_ptx(const std::string& name) {
  std::ifstream file(std::string(KLAP_PROGRAMS) + "/" + name + ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The schedules, and the seeds of those that use one.
inline std::vector<MachineOptions> many_options(bool checks, uint64_t seeds = 6) {
  std::vector<MachineOptions> all;
  for (const ScheduleKind kind :
       {ScheduleKind::Fast, ScheduleKind::RoundRobin, ScheduleKind::Random, ScheduleKind::OneBlock,
        ScheduleKind::StarveOne, ScheduleKind::ChildFirst, ScheduleKind::ChildLast}) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      MachineOptions options;
      options.executor.schedule = kind;
      options.executor.seed = seed;
      options.executor.max_steps = 50'000'000;
      options.executor.order.weak_memory = checks;
      options.executor.order.detect_races = checks;
      options.executor.order.detect_uninitialised = checks;
      options.executor.order.seed = seed;
      options.executor.device.memory_bytes = 64 << 20;
      all.push_back(options);
      if (kind == ScheduleKind::Fast) break;
    }
  }
  return all;
}

inline std::string describe(const MachineOptions& options) {
  return std::string(to_string(options.executor.schedule)) + ", seed " +
         std::to_string(options.executor.seed) + (options.executor.order.any() ? ", checked" : "");
}

class Program {
 public:
  explicit Program(const std::string& name, MachineOptions options = {})
      : machine(with_sinks(std::move(options))), image(machine.load({{name, read_ptx(name)}})) {}

  template <typename T>
  T* allocate(size_t count, T value = {}) {
    const auto address = machine.memory().allocate(count * sizeof(T), Owner::Host);
    if (!address) throw std::runtime_error("out of memory");
    T* data = reinterpret_cast<T*>(pointer_to(*address));
    std::fill_n(data, count, value);
    machine.order().initialised(*address, count * sizeof(T));
    return data;
  }

  template <typename... Arguments>
  int launch(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments&... arguments) {
    return launch_in(kLegacyStream, kernel, grid, block, arguments...);
  }
  template <typename... Arguments>
  int launch_in(StreamId stream, const std::string& kernel, Dim3 grid, Dim3 block,
                const Arguments&... arguments) {
    Launch launch;
    launch.image = image;
    launch.kernel = function(kernel);
    launch.grid = grid;
    launch.block = block;
    launch.parameters.resize(launch.kernel->parameter_bytes);
    size_t index = 0;
    [[maybe_unused]] const auto put = [&](const auto& value) {
      std::memcpy(launch.parameters.data() + launch.kernel->parameter_offsets.at(index++), &value,
                  sizeof value);
    };
    (put(arguments), ...);
    return machine.launch(stream, launch);
  }
  [[nodiscard]] const Function* function(const std::string& kernel) const {
    return image->functions.at(image->kernels.at(kernel)).get();
  }

  std::string printed;
  std::vector<std::string> findings;
  Machine machine;
  std::shared_ptr<const Image> image;

 private:
  MachineOptions with_sinks(MachineOptions options) {
    options.print = [this](std::string_view text) { printed += text; };
    options.finding = [this](const std::string& finding) { findings.push_back(finding); };
    return options;
  }
};

}  // namespace klap::emulator
