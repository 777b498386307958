#include "klap_ptx/subcommands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/views.h"
#include "jit/data/stage.h"
#include "klap_ptx/command_line.h"
#include "klap_ptx/commands.h"
#include "klap_ptx/input.h"
#include "klap_ptx/tune/counter_metrics.h"
#include "settings/spelling.h"
#include "settings/table.h"

namespace klap::tool {

namespace {

// The footer of commands that take settings as options, behind two examples.
constexpr const char* kSettingsAsOptions =
    "Each setting of kernels is an option, too: --granularity warp. The command settings lists them.";

void add_file(CLI::App& command, std::string& file) {
  command.add_option("FILE", file, "PTX, fatbin, cubin, object, executable or shared object")->required();
}

std::string sm_problem(const std::string& sm) {
  constexpr uint32_t kLeast = 50, kMost = 999;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(sm.data(), sm.data() + sm.size(), number);
  const bool is_number = error == std::errc() && end == sm.data() + sm.size();
  return is_number && number >= kLeast && number <= kMost
             ? ""
             : fmt::format("'{}' is no compute capability (fix: use 90 for 9.0)", sm);
}

void add_sm(CLI::App& command, uint32_t& sm) {
  command.add_option("--sm", sm, "Compute capability to choose code for, 90 for 9.0")
      ->check(CLI::Validator(sm_problem, "UINT"))
      ->capture_default_str();
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "Print JSON"); }

// The settings of kernels that the command line can give for all of them, above everything else: one option
// for each row of the settings table that is both a variable and a key.
void add_policy(CLI::App& command, PolicyOptions& policy) {
  for (const settings::Setting& setting : settings::table()) {
    if (setting.variable.empty() || setting.key.empty()) continue;
    const auto valid = [&setting](const std::string& value) -> std::string {
      const auto problem = settings::check_value(setting, setting.key, value);
      return problem ? problem->what() : "";
    };
    command
        .add_option(fmt::format("--{}", setting.key), policy.values[std::string(setting.variable)],
                    fmt::format("In place of {}, for every kernel", setting.variable))
        ->check(CLI::Validator(valid, settings::describe_values(setting)))
        ->group(kUnlisted);  // there is a page of them
  }
  command.add_option("--config", policy.values["KLAP_CONFIG"], "Config file (TOML) in place of KLAP_CONFIG")
      ->type_name("FILE");
}

void add_verbose(CLI::App& command, bool& verbose) {
  command.add_flag("--verbose", verbose, "Print what is known of each launch site as key=value, too");
}

void add_debug_units(CLI::App& command, PolicyOptions& policy) {
  command.add_flag("--debug-units", policy.debug_units,
                   "Treat units compiled for debugging (-G) like others");
}

std::string reason_problem(const std::string& reason) {
  const std::vector<std::string_view> reasons = site_reasons();
  if (std::ranges::count(reasons, reason) != 0) return "";
  const auto near = settings::nearest(reason, reasons);
  return fmt::format(
      "unknown reason '{}'; {}", reason,
      near ? fmt::format("did you mean '{}'?", *near) : program_name() + " reasons lists them");
}

// Takes a pass by name; "help" lists them and is the end, with or without a file.
void add_dump_after(CLI::App& command, std::string& pass) {
  const auto known = [](const std::string& name) -> std::string {
    if (name == "help" || jit::pass_by_name(name)) return "";
    const auto near = settings::nearest(name, jit::pass_names());
    return fmt::format("unknown pass '{}'; {}", name,
                       near ? fmt::format("did you mean '{}'?", *near) : "--dump-after=help lists them");
  };
  command
      .add_option_function<std::string>(
          "--dump-after",
          [&pass](const std::string& name) {
            pass = name;
            if (name != "help") return;
            fmt::print("{}", jit::pass_list());
            throw CLI::Success();
          },
          "Print what this pass of the pipeline left; 'help' lists the passes")
      ->type_name("PASS")
      ->check(CLI::Validator(known, ""))
      ->trigger_on_parse();
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command = *app.add_subcommand("inspect", "List images, units, kernels and launch sites");
  add_file(command, options->file);
  add_dump_after(command, options->dump_after);
  for (const analysis::View& view : analysis::views()) {
    command.add_flag_callback(
        fmt::format("--{}", view.name), [options, name = view.name] { options->analyses.emplace_back(name); },
        fmt::format("Print for each function {}", view.shows));
  }
  command.add_option("--kernel", options->kernel, "Only this kernel, by mangled or demangled name or glob");
  add_policy(command, options->policy);
  add_debug_units(command, options->policy);
  add_sm(command, options->policy.sm);
  add_json(command, options->json);
  set_examples(command, {"inspect ./app", "inspect ./app --loops --kernel 'bfs_*'"}, kSettingsAsOptions);
  command.final_callback([options] { inspect(*options); });
}

void add_extract(CLI::App& app) {
  auto options = std::make_shared<ExtractOptions>();
  CLI::App& command =
      *app.add_subcommand("extract", "Write every unit's PTX, machine code and options as files");
  add_file(command, options->file);
  command.add_option("-o,--output", options->folder, "Folder to write to, made if missing")->required();
  add_json(command, options->json);
  set_examples(command, {"extract ./app -o parts", "extract kernels.fatbin -o parts --json"});
  command.final_callback([options] { extract(*options); });
}

void add_rewrite(CLI::App& app) {
  auto options = std::make_shared<RewriteOptions>();
  CLI::App& command = *app.add_subcommand("rewrite", "Add aggregated variants of the kernels that launch");
  add_file(command, options->file);
  const auto known_ending = [](const std::string& out) -> std::string {
    return out.ends_with(".cubin") || out.ends_with(".ptx")
               ? ""
               : fmt::format("'{}' must end in .cubin or .ptx", out);
  };
  command.add_option("-o,--output", options->out, "OUT.cubin: the linked image; OUT.ptx: the rewritten PTX")
      ->required()
      ->check(CLI::Validator(known_ending, "*.cubin|*.ptx"));
  add_policy(command, options->policy);
  add_debug_units(command, options->policy);
  add_sm(command, options->policy.sm);
  add_verbose(command, options->verbose);
  add_json(command, options->json);
  set_examples(command,
               {"rewrite ./app -o app.cubin", "rewrite kernels.ptx -o rewritten.ptx --granularity block"},
               kSettingsAsOptions);
  command.final_callback([options] { rewrite(*options); });
}

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command =
      *app.add_subcommand("explain", "Say for every launch site what would be done, or why not");
  add_file(command, options->file);
  command.add_flag("--check", options->check, "Exit with 3 if a launch site is left, for CI");
  command.add_option("--only", options->only, "Only sites whose parent or child has this in its name")
      ->type_name("KERNEL");
  command.add_option("--reason", options->reason, "Only sites that are left for this reason")
      ->type_name("REASON")
      ->check(CLI::Validator(reason_problem, ""));
  add_policy(command, options->policy);
  add_debug_units(command, options->policy);
  add_sm(command, options->policy.sm);
  add_verbose(command, options->verbose);
  add_json(command, options->json);
  set_examples(
      command, {"explain ./app", "explain ./app --check --only bfs_expand"},
      std::string(kSettingsAsOptions) +
          "\nThe exit code is 1 if nothing could be judged, and 3 with --check if a launch site that is\n"
          "shown is left, or a unit has no PTX. Code that nothing calls does not count.");
  command.final_callback([options] { end_with(explain(*options)); });
}

void add_cache(CLI::App& app) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App& cache = *app.add_subcommand("cache", "List, empty or fill the cache of rewritten modules");
  cache.require_subcommand(1);
  set_examples(cache, {"cache ls", "cache warm ./app --sm 90,80"});
  CLI::App& ls = *cache.add_subcommand("ls", "List the cached modules, the one used last first");
  add_json(ls, options->json);
  set_examples(ls, {"cache ls", "cache ls --json"});
  ls.final_callback([options] { cache_ls(*options); });
  CLI::App& clear = *cache.add_subcommand("clear", "Remove all cached modules");
  add_json(clear, options->json);
  set_examples(clear, {"cache clear", "cache clear --json"});
  clear.final_callback([options] { cache_clear(*options); });
  CLI::App& warm = *cache.add_subcommand("warm", "Build a program's modules ahead; needs no GPU");
  add_file(warm, options->file);
  options->sm = {90};
  warm.add_option("--sm", options->sm, "Compute capabilities to build for, 90,80 for 9.0 and 8.0")
      ->delimiter(',')
      ->check(CLI::Validator(sm_problem, "UINT"))
      ->capture_default_str();
  add_policy(warm, options->policy);
  add_json(warm, options->json);
  set_examples(warm, {"cache warm ./app", "cache warm ./app --sm 90,80"}, kSettingsAsOptions);
  warm.final_callback([options] { cache_warm(*options); });
}

void add_config(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  CLI::App& command = *app.add_subcommand("config", "Print the settings in force and where each came from");
  command.add_option("KERNEL", options->kernel,
                     "Settings of this kernel too; its mangled name, as explain prints it in brackets");
  command.add_option("--child", options->child, "... for its launches of this kernel, by its mangled name");
  command.add_option("--program", options->file, "Let the hints in this file's device code count, too");
  add_policy(command, options->policy);
  add_json(command, options->json);
  set_examples(command, {"config", "config bfs_expand --program ./app"}, kSettingsAsOptions);
  command.final_callback([options] { config(*options); });
}

void add_reasons(CLI::App& app) {
  auto options = std::make_shared<ReasonsOptions>();
  CLI::App& command = *app.add_subcommand("reasons", "List why launches may be left as they are");
  auto* const markdown = command.add_flag("--markdown", options->markdown, "Print Markdown tables");
  command.add_flag("--json", options->json, "Print JSON")->excludes(markdown);
  set_examples(command, {"reasons", "reasons --json"});
  command.final_callback([options] { reasons(*options); });
}

void add_settings(CLI::App& app) {
  auto options = std::make_shared<SettingsOptions>();
  CLI::App& command = *app.add_subcommand("settings", "List the environment variables and config file keys");
  auto* const markdown = command.add_flag("--markdown", options->markdown, "Print a Markdown table");
  auto* const developers = command.add_flag("--developers", options->developers,
                                            "List those for measurements, and the single optimisations");
  command.add_flag("--json", options->json, "Print all as JSON")->excludes(markdown)->excludes(developers);
  set_examples(command, {"settings", "settings --developers"});
  command.final_callback([options] { settings(*options); });
}

void add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App& command =
      *app.add_subcommand("tune", "Run a program with many settings, and keep the best for its later runs");
  set_examples(command, {"tune -- ./app", "tune --check 'grep -q PASSED \"$1\"' -- ./app --size 4096"});
  command.add_option("PROGRAM", options->command, "Program with its arguments, after --")->required();
  command.add_option(
      "--check", options->check,
      "Shell command that fails if a run was wrong; $1 is a file with what the program printed");
  command.add_option("-o,--output", options->out, "Config file to write as well");
  command.add_option("--runs", options->runs, "Runs with each setting alone")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--samples", options->samples, "The most runs with several settings together; 0: none")
      ->capture_default_str();
  command.add_option("--seconds", options->seconds, "Time after which no other setting is tried")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  options->counters = default_metrics();
  command
      .add_option_function<std::string>(
          "--counters", [options](const std::string& text) { options->counters = *parse_counters(text); },
          "Metrics to read as well, by Nsight Compute's names, or none. By default: twelve that GPUs count "
          "at a time")
      ->type_name("METRIC,...")
      ->check([](const std::string& text) {
        return parse_counters(text) ? "" : "names of metrics are needed, separated by commas, or none";
      });
  command.add_flag("--exhaustive", options->exhaustive,
                   "Then try every other combination, to see what the model has missed");
  command.add_option("--pictures", options->pictures,
                     "Folder for SVG pictures of the samples of each kernel");
  command.add_option("--library", options->library, "The preload library, if it is not where it was built");
  add_json(command, options->json);
  command.final_callback([options] { tune(*options); });
}

}  // namespace klap::tool
