// The subcommands of klap-ptx on the command line. klap offers some of them, too.
#pragma once

#include <CLI/CLI.hpp>

namespace klap::tool {

void add_inspect(CLI::App& app);
void add_extract(CLI::App& app);
void add_rewrite(CLI::App& app);
void add_explain(CLI::App& app);
void add_cache(CLI::App& app);
void add_config(CLI::App& app);
void add_settings(CLI::App& app);
void add_reasons(CLI::App& app);
void add_tune(CLI::App& app);

}  // namespace klap::tool
