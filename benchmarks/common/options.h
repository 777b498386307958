// Command-line options of the benchmark programs: --name VALUE or --name=VALUE, --flag, and --help.
//
// A mistake in a measuring command must never pass as a measurement, so anything unknown, malformed or below
// an option's smallest sensible value ends the program with exit code 2 and one line that says what was
// wrong.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class Options {
 public:
  Options(std::string program, std::string summary);

  // Each registers one option; the variable holds the default and receives the value given.
  void integer(const char* name, long long& value, long long smallest, const char* help);
  void text(const char* name, std::string& value, const char* help);
  void choice(const char* name, std::string& value, std::vector<std::string> allowed, const char* help);
  void flag(const char* name, bool& value, const char* help);

  // Reads the command line. Prints the options and exits with 0 on --help; exits with 2 on a mistake.
  void parse(int argc, char** argv) const;

 private:
  struct Option {
    std::string name;
    std::string shown;  // what --help prints after the name
    std::string help;
    bool takes_value;
    // Stores a value; returns what is wrong with it, empty when nothing is.
    std::function<std::string(std::string_view)> store;
  };

  [[nodiscard]] const Option* find(std::string_view name) const;
  [[noreturn]] void mistake(const std::string& message) const;
  [[noreturn]] void print_help() const;

  std::string program_;
  std::string summary_;
  std::vector<Option> options_;
};

}  // namespace bench
