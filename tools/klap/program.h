// The program that is to run: found as a shell finds it, and asked whether a library can be preloaded into
// it.
#pragma once

#include <string>

namespace klap::tool {

// Exit codes of env and timeout for programs that cannot be run.
inline constexpr int kCannotRun = 126;
inline constexpr int kNotFound = 127;

struct FoundProgram {
  std::string path;     // empty: not found
  std::string problem;  // why it cannot run, or why nothing can be preloaded into it; empty: it can
  int exit_code = 0;    // with a problem
};

FoundProgram find_program(const std::string& name);

// Why the loader would not take the library into programs of this machine; empty if it would.
std::string library_problem(const std::string& library);

}  // namespace klap::tool
