// The command line of klap-ptx and of klap: subcommands, short help, and what is said of mistakes.
//
// Exit codes: 0 done, 1 the input is bad or cannot be treated, 2 the command line is wrong, 3 explain --check
// found a launch site that is left.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace klap::tool {

inline constexpr int kBadInput = 1;
inline constexpr int kBadUsage = 2;
inline constexpr int kSiteLeft = 3;

// Options of this group are not listed in the help.
inline constexpr const char* kUnlisted = "Settings";

struct FrontCommand {
  std::string name, description;
  std::string footer;  // of its --help
  std::function<void(CLI::App&)> add_subcommands;
  std::string other;  // the program that has the subcommands below
  std::vector<std::string> of_other;
  // May change the words of the command line before they are parsed; empty: they stay.
  std::function<void(const CLI::App&, std::vector<std::string>& words)> prepare;
};

// Parses the command line and runs the subcommand. A CLI::RuntimeError of a subcommand is its exit code.
int run_front_command(FrontCommand (*make_command)(), int argc, char** argv);

// Ends a subcommand with its exit code, where that is not 0.
void end_with(int exit_code);

// Puts examples below the help of a subcommand, without the name of the program, and a note behind them.
void set_examples(CLI::App& command, const std::vector<std::string>& examples, const std::string& note = "");

}  // namespace klap::tool
