// Logging: one spdlog logger, created on first use and silent (level "warn") unless KLAP_LOG says otherwise.
//
// The shim lives inside other people's programs, so the log goes to standard error with a "klap: " prefix or
// to a file, never to standard output. Nothing is created before the first message that will be shown. The
// file is opened anew for each line: programs close descriptors they do not know and get these numbers for
// files of their own. A line of the log must never end up in one of those.
#pragma once

#include <spdlog/logger.h>

#include <string>
#include <string_view>

namespace klap {

// The process-wide logger. Never null, safe from any thread.
spdlog::logger& log();

// Logs a line that must not be lost: where the logger fails, for lack of memory for example, the line goes to
// standard error by itself.
void log_without_memory(spdlog::level::level_enum level, std::string_view line) noexcept;

// Writes such a line to standard error without the logger, whose locks may be held for ever in a forked
// child.
void write_log_line(const char* level, std::string_view line) noexcept;

// Sets the level by name: trace, debug, info, warn, error or off. Throws Error(Config) for anything else.
void set_log_level(const std::string& level);

// Appends to that file from here on, each line with time and process. If a line cannot be written, it and all
// later ones go to standard error, after one warning. Throws Error(Io) when the file cannot be opened now.
void set_log_file(const std::string& file);

}  // namespace klap
