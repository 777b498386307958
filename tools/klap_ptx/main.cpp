// klap-ptx shows the launches that klap_jit sees in a program and what it would do with them, without running
// anything.
#include "klap_ptx/command_line.h"
#include "klap_ptx/subcommands.h"

namespace klap::tool {

namespace {

void add_subcommands(CLI::App& app) {
  add_inspect(app);
  add_extract(app);
  add_rewrite(app);
  add_explain(app);
  add_cache(app);
  add_config(app);
  add_settings(app);
  add_reasons(app);
  add_tune(app);
}

constexpr const char* kFooter =
    "Examples:\n"
    "  klap-ptx explain ./app\n"
    "  klap-ptx inspect ./app --dump-after=sites\n\n"
    "klap-ptx settings lists the library's settings, which explain, rewrite, cache and config follow, too.\n"
    "Exit codes: 0 done; 1 bad input; 2 wrong usage; 3 explain --check found a launch site that is left.";

FrontCommand front_command() {
  return {.name = "klap-ptx",
          .description = "Shows and rewrites the device-side kernel launches of CUDA programs.",
          .footer = kFooter,
          .add_subcommands = add_subcommands,
          .other = "klap",
          .of_other = {"run", "doctor", "report"},
          .prepare = {}};
}

}  // namespace

}  // namespace klap::tool

int main(int argc, char** argv) {
  return klap::tool::run_front_command(klap::tool::front_command, argc, argv);
}
