// Command-line options of the benchmark programs; see options.h.
#include "options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace bench {

Options::Options(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {}

void Options::integer(const char* name, long long& value, long long smallest, const char* help) {
  auto store = [&value, smallest](std::string_view text) -> std::string {
    long long parsed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error != std::errc() || end != text.data() + text.size()) return "is not a whole number";
    if (parsed < smallest) return "must be at least " + std::to_string(smallest);
    value = parsed;
    return "";
  };
  options_.push_back({name, "N", std::string(help) + " (" + std::to_string(value) + ")", true, store});
}

void Options::text(const char* name, std::string& value, const char* help) {
  auto store = [&value](std::string_view text) -> std::string {
    value = text;
    return "";
  };
  options_.push_back({name, "TEXT", help, true, store});
}

void Options::choice(const char* name, std::string& value, std::vector<std::string> allowed,
                     const char* help) {
  std::string shown;
  for (const std::string& word : allowed) shown += (shown.empty() ? "" : "|") + word;
  auto store = [&value, words = std::move(allowed), shown](std::string_view text) -> std::string {
    for (const std::string& word : words) {
      if (word == text) {
        value = word;
        return "";
      }
    }
    return "must be one of " + shown;
  };
  options_.push_back({name, shown, std::string(help) + " (" + value + ")", true, store});
}

void Options::flag(const char* name, bool& value, const char* help) {
  auto store = [&value](std::string_view) -> std::string {
    value = true;
    return "";
  };
  options_.push_back({name, "", help, false, store});
}

const Options::Option* Options::find(std::string_view name) const {
  for (const Option& option : options_) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

void Options::mistake(const std::string& message) const {
  std::fprintf(stderr, "%s: %s (--help lists the options)\n", program_.c_str(), message.c_str());
  std::exit(2);
}

void Options::print_help() const {
  std::printf("%s: %s\n\n", program_.c_str(), summary_.c_str());
  for (const Option& option : options_) {
    const std::string left = "--" + option.name + (option.takes_value ? " " + option.shown : "");
    std::printf("  %-26s %s\n", left.c_str(), option.help.c_str());
  }
  std::exit(0);
}

void Options::parse(int argc, char** argv) const {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--help" || word == "-h") print_help();
    if (word.substr(0, 2) != "--") mistake("unexpected argument '" + std::string(word) + "'");
    word.remove_prefix(2);
    const size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const Option* option = find(name);
    if (option == nullptr) mistake("unknown option --" + name);
    std::string_view value;
    if (equals != std::string_view::npos) {
      if (!option->takes_value) mistake("--" + name + " takes no value");
      value = word.substr(equals + 1);
    } else if (option->takes_value) {
      if (++i >= argc) mistake("--" + name + " needs a value");
      value = argv[i];
    }
    const std::string wrong = option->store(value);
    if (!wrong.empty()) mistake("--" + name + ": '" + std::string(value) + "' " + wrong);
  }
}

}  // namespace bench
