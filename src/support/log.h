// Logging: one spdlog logger, created on first use and silent (level "warn") unless KLAP_LOG says otherwise.
//
// The shim lives inside other people's programs, so the log goes to standard error with a "klap: " prefix,
// never to standard output, and nothing is created before the first message that will be shown.
#pragma once

#include <spdlog/logger.h>

#include <string>

namespace klap {

// The process-wide logger. Never null, safe from any thread.
spdlog::logger& log();

// Sets the level by name: trace, debug, info, warn, error or off. Throws Error(Config) for anything else.
void set_log_level(const std::string& level);

}  // namespace klap
