// One run of the program that is tuned, with the preload library and some settings, or natively.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace klap::tool {

struct ProgramRun {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // added to this process's own
  std::string output;                              // file that receives what it prints, both streams
  std::chrono::duration<double> limit{};           // after which it is killed; 0: none
};

struct RunOutcome {
  int exit_code = 0;  // 128 and the signal's number where a signal ended it, as in a shell
  bool is_killed = false;
  double seconds = 0;
};

// Throws Error(Io) if the program cannot be started.
RunOutcome run_program(const ProgramRun& run);

}  // namespace klap::tool
