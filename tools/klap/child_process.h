// Runs a program in the foreground: it gets the terminal, the standard streams and the signals.
#pragma once

#include <string>
#include <vector>

namespace klap::tool {

struct Ended {
  int exit_code = 0;              // 128 and the signal's number if a signal ended it, as in a shell
  int signal = 0;                 // that signal; 0: it ended by itself
  bool was_asked_to_end = false;  // a signal for this process went on to it
  double seconds = 0;             // by the clock on the wall
};

// Takes the environment of this process. Throws Error(Io) if the program cannot be started.
Ended run_in_foreground(const std::vector<std::string>& command);

// Becomes the program. Throws Error(Io) if that fails.
[[noreturn]] void become(const std::vector<std::string>& command);

}  // namespace klap::tool
