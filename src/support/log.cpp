#include "support/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

#include "support/error.h"

namespace klap {

spdlog::logger& log() {
  // Leaked on purpose: messages may come from other libraries' exit handlers, after static destructors ran.
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("klap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("klap: %l: %v");
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

void set_log_level(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    throw Error(ErrorCode::Config, "unknown log level '" + level + "'")
        .fix("use one of trace, debug, info, warn, error, off");
  }
  log().set_level(parsed);
}

}  // namespace klap
