#include "klap_ptx/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "klap/version.h"
#include "klap_ptx/input.h"
#include "settings/spelling.h"
#include "support/error.h"

namespace klap::tool {

namespace {

// Help with a line for each option that is listed.
class ShortHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = make_description(app) + make_usage(app, std::move(name));
    for (const bool is_positional : {true, false}) {
      const auto shown = app->get_options([is_positional](const CLI::Option* option) {
        return option->get_group() != kUnlisted && option->get_positional() == is_positional;
      });
      for (const CLI::Option* option : shown) text += make_option(option, is_positional);
    }
    text += make_subcommands(app, mode);
    const std::string footer = app->get_footer();
    return footer.empty() ? text : text + "\n" + footer + "\n";
  }

  // The kind of value and the default, without the limits of the value.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string type = option->get_type_name();
    type = type.substr(0, type.find(':'));
    if (type == "UINT" || type == "FLOAT") type = "N";
    // A positional argument stands for itself.
    std::string text = option->get_positional() ? "" : " " + type;
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return text;
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = CLI::Formatter::make_usage(app, std::move(name));
    if (app->get_prefix_command()) text.insert(text.find_last_not_of('\n') + 1, " PROGRAM [ARGUMENTS...]");
    return text;
  }
};

// `command` is the subcommand that is meant, with a blank before it; empty if none is.
int usage_error(std::string_view message, std::string_view command) {
  fmt::print(stderr, "{0}: {1}\nRun {0}{2} --help for more.\n", program_name(), message, command);
  return kBadUsage;
}

std::string subcommand_path(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return "";
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->get_name() == words[0]) return " " + words[0] + subcommand_path(*command, words.subspan(1));
  return "";
}

std::vector<std::string> listed_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Returns what to say of a word that is no subcommand of `app`.
std::string unknown_subcommand(const CLI::App& app, const FrontCommand& front, const std::string& word) {
  if (word == "help") return "there is no subcommand 'help'; did you mean --help?";
  const std::string path = app.get_parent() == nullptr ? "" : app.get_name() + " ";
  if (path.empty() && std::ranges::count(front.of_other, word) != 0)
    return fmt::format("'{0}' is a subcommand of {1}: {1} {0}", word, front.other);
  const std::vector<std::string> names = listed_subcommands(app);
  const std::string known = fmt::format("the subcommands are {}", fmt::join(names, ", "));
  const auto near = settings::nearest(word, {names.begin(), names.end()});
  return fmt::format("unknown subcommand '{}{}'; {}", path, word,
                     near ? fmt::format("did you mean '{}{}'?", path, *near) : known);
}

// Returns what is wrong with the words that should name a subcommand; CLI11 would only say that one is
// required.
std::string check_subcommand(const CLI::App& app, const FrontCommand& front,
                             std::span<const std::string> words) {
  if (app.get_subcommands({}).empty()) return "";
  if (words.empty())
    return fmt::format("a subcommand is required: {}", fmt::join(listed_subcommands(app), ", "));
  const std::string& word = words[0];
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    if (app.get_option_no_throw(name) != nullptr) return "";
    const std::vector<std::string> names = long_options(app);
    const auto near = settings::nearest(name, {names.begin(), names.end()});
    return near ? fmt::format("unknown option '{}'; did you mean {}?", name, *near)
                : fmt::format("unknown option '{}' before a subcommand; options follow the subcommand", name);
  }
  const std::vector<const CLI::App*> all = app.get_subcommands({});
  const auto next = std::ranges::find(all, word, &CLI::App::get_name);
  return next == all.end() ? unknown_subcommand(app, front, word)
                           : check_subcommand(**next, front, words.subspan(1));
}

const CLI::App& parsed_subcommand(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

// Returns what to say of the first word that a subcommand does not know.
std::string unknown_word(const CLI::App& app) {
  const CLI::App& command = parsed_subcommand(app);
  const std::vector<std::string> names = long_options(command), words = command.remaining();
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word.find_first_not_of('-') == std::string::npos) continue;
    const std::string name = word.substr(0, word.find('='));
    // "-json" is one dash away from what was meant.
    const auto near =
        settings::nearest(name.starts_with("--") ? name : "-" + name, {names.begin(), names.end()});
    return fmt::format("unknown option '{}'{}", name, near ? fmt::format("; did you mean {}?", *near) : "");
  }
  return fmt::format("one argument too many: {}", fmt::join(words, " "));
}

// The error of an option whose value is missing tells the option, and its values in CLI11's own form.
std::string missing_value(const CLI::App& app, std::string_view error) {
  const std::string name(error.substr(0, error.find(':')));
  const CLI::Option* const option = parsed_subcommand(app).get_option_no_throw(name);
  if (option == nullptr) return std::string(error);
  const std::string type = option->get_type_name();
  return fmt::format("{} needs a value: {}", name, type.substr(type.find(':') + 1));
}

// "Could not convert: --samples = many"
std::string wrong_number(std::string_view error) {
  const size_t name = error.find("--"), value = error.find(" = ");
  if (name == std::string_view::npos || value == std::string_view::npos) return std::string(error);
  return fmt::format("{}: '{}' is no number", error.substr(name, value - name), error.substr(value + 3));
}

int parse_and_run(const FrontCommand& command, std::vector<std::string> words) {
  CLI::App app{command.description, command.name};
  app.set_version_flag("--version", command.name + " " KLAP_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<ShortHelp>());
  app.footer(command.footer);
  command.add_subcommands(app);
  const std::string path = subcommand_path(app, words);
  if (const std::string problem = check_subcommand(app, command, words); !problem.empty())
    return usage_error(problem, path);
  if (command.prepare) command.prepare(app, words);
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& request) {
    return app.exit(request);  // prints the help or the version
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ExtrasError&) {
    return usage_error(unknown_word(app), path);
  } catch (const CLI::ArgumentMismatch& error) {
    return usage_error(missing_value(app, error.what()), path);
  } catch (const CLI::ConversionError& error) {
    return usage_error(wrong_number(error.what()), path);
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), path);
  }
  // A full disk must not pass for success.
  if (std::fflush(stdout) != 0) {
    throw Error(ErrorCode::Io, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  return 0;
}

}  // namespace

int run_front_command(FrontCommand (*make_command)(), int argc, char** argv) {
  try {
    return parse_and_run(make_command(), {argv + std::min(argc, 1), argv + argc});
  } catch (const std::system_error& error) {
    // fmt throws it, which only prints.
    fmt::print(stderr, "{}: cannot write to standard output: {}\n", program_name(), error.code().message());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program_name(), error.what());
    return kBadInput;
  }
}

void end_with(int exit_code) {
  if (exit_code != 0) throw CLI::RuntimeError(exit_code);
}

void set_examples(CLI::App& command, const std::vector<std::string>& examples, const std::string& note) {
  std::string text = "Examples:";
  for (const std::string& example : examples) text += fmt::format("\n  {} {}", program_name(), example);
  command.footer(note.empty() ? text : text + "\n\n" + note);
}

}  // namespace klap::tool
