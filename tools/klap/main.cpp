// klap is the command for people who have a program: it runs it with the library preloaded, and says what
// became of its launches and what is missing on a machine. What it shares with klap-ptx is the same code.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "klap/commands.h"
#include "klap/given_settings.h"
#include "klap_ptx/command_line.h"
#include "klap_ptx/subcommands.h"

namespace klap::tool {

namespace {

using Words = std::vector<std::string>;

void add_library(CLI::App& command, std::string& library) {
  command.add_option("--library", library, "The preload library, if it is not beside this program")
      ->type_name("FILE");
}

void add_run(CLI::App& app, const std::shared_ptr<const Words>& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Run a program with its launches from kernels made fast");
  command.prefix_command();  // whatever follows the program is the program's, so set_program_apart() takes it
  command.add_option("--set", options->settings, "One setting, as granularity=grid; any number of times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->check(CLI::Validator(setting_problem, ""));
  command.add_option("--config", options->config, "Config file (TOML) with settings for single kernels")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  CLI::Option* const compare = command.add_flag("--compare", options->compare,
                                                "Run it natively first, and compare time and exit code");
  command
      .add_flag("--native", options->native, "Only measure its kernels as they are, as a baseline of report")
      ->excludes(compare);
  command.add_flag("--profile", options->profile, "Measure what a report shows: times and sizes of children");
  command.add_flag("--stats", options->stats, "At the end, print all that is known of each kernel");
  command
      .add_option("--report", options->report,
                  "Keep the statistics (JSON); %p is the process, %r the rank under MPI")
      ->type_name("FILE");
  command.add_flag("--quiet", options->quiet, "Do not print the three lines at the end");
  add_library(command, options->library);
  set_examples(
      command, {"run ./app --size 4096", "run --compare --set ordering=relaxed ./app"},
      "The exit code is the program's; 128 and the number of the signal that ended it; 125 if klap fails,\n"
      "126 if nothing can be preloaded into the program, 127 if there is none; with --compare 1 if the\n"
      "exit codes differ. The command settings lists the settings.");
  command.final_callback([options, &command, program] {
    if (command.remaining_size() != 0) throw CLI::ExtrasError(command.get_name(), command.remaining());
    if (program->empty()) throw CLI::RequiredError("PROGRAM");
    options->command = *program;
    end_with(run(*options));
  });
}

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& command =
      *app.add_subcommand("doctor", "Check driver, GPU, libraries and folders, with a fix for each");
  add_library(command, options->library);
  command.add_flag("--json", options->json, "Print JSON");
  set_examples(command, {"doctor", "doctor --json"},
               "The exit code is 1 if something is broken. A missing GPU is not.");
  command.final_callback([options] { end_with(doctor(*options)); });
  // The small program, in a process of its own.
  app.add_subcommand("run-sample", "")->group("")->final_callback([] { end_with(run_sample()); });
}

void add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App& command =
      *app.add_subcommand("report", "Show statistics as text or HTML; those of several files are added up");
  command.add_option("FILE", options->files, "Statistics that klap run --report or KLAP_STATS has written")
      ->required();
  command
      .add_option("--baseline", options->baseline, "Statistics of klap run --native, to show what was gained")
      ->type_name("FILE");
  command.add_option("--html", options->html, "Write a page of HTML, which needs no other file; - prints it")
      ->type_name("FILE");
  set_examples(command, {"report stats-*.json", "report stats.json --baseline native.json --html page.html"});
  command.final_callback([options] { report(*options); });
}

// The number of words of a subcommand's own, which end where the program begins.
size_t words_before_program(const CLI::App& command, const Words& words) {
  size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--") {
    const CLI::Option* const option = command.get_option_no_throw(words[at]);
    const bool takes_next = option != nullptr && option->get_items_expected_max() > 0;
    at += takes_next ? 2 : 1;
  }
  return std::min(at, words.size());
}

// Takes the program and its arguments out of the words of run, and puts -- before those of tune, which it
// asks for.
void set_program_apart(const CLI::App& app, Words& words, Words& program) {
  if (words.empty() || (words[0] != "run" && words[0] != "tune")) return;
  const auto begin =
      words.begin() + static_cast<std::ptrdiff_t>(words_before_program(*app.get_subcommand(words[0]), words));
  const bool is_marked = begin != words.end() && *begin == "--";
  if (words[0] == "run") {
    program.assign(begin + (is_marked ? 1 : 0), words.end());
    words.erase(begin, words.end());
  } else if (!is_marked && begin != words.end()) {
    words.insert(begin, "--");
  }
}

constexpr const char* kFooter =
    "Examples:\n"
    "  klap run ./app\n"
    "  klap explain ./app\n\n"
    "Each has its own --help. For single files of device code there is klap-ptx.\n"
    "Exit codes: 0 done; 1 bad input, or something is broken; 2 wrong usage; 3 explain --check found a "
    "launch\n"
    "site that is left; see run --help for those of run.";

FrontCommand front_command() {
  const auto program = std::make_shared<Words>();
  return {
      .name = "klap",
      .description = "Makes programs fast whose CUDA kernels launch kernels.",
      .footer = kFooter,
      .add_subcommands =
          [program](CLI::App& app) {
            add_run(app, program);
            add_explain(app);
            add_doctor(app);
            add_report(app);
            add_tune(app);
            add_cache(app);
            add_config(app);
            add_settings(app);
            add_reasons(app);
          },
      .other = "klap-ptx",
      .of_other = {"inspect", "extract", "rewrite"},
      .prepare = [program](const CLI::App& app, Words& words) { set_program_apart(app, words, *program); }};
}

}  // namespace

}  // namespace klap::tool

int main(int argc, char** argv) {
  return klap::tool::run_front_command(klap::tool::front_command, argc, argv);
}
