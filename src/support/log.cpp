#include "support/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "support/error.h"

namespace klap {

namespace {

int open_for_append(const std::string& file) {
  return open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
}

// One write a line, so that lines of several processes do not mix.
class AppendingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit AppendingSink(std::string file) : file_(std::move(file)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!failed_ && append(line)) return;
    if (!failed_)
      std::fprintf(stderr, "klap: warning: %s: cannot write the log: %s\n", file_.c_str(),
                   std::strerror(errno));
    failed_ = true;
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
  }

  [[nodiscard]] bool append(const spdlog::memory_buf_t& line) const {
    const int descriptor = open_for_append(file_);
    if (descriptor < 0) return false;
    const ssize_t written = write(descriptor, line.data(), line.size());
    const int error = written < 0 ? errno : ENOSPC;  // a short write
    close(descriptor);
    errno = error;
    return written == static_cast<ssize_t>(line.size());
  }

  void flush_() override {}

  const std::string file_;
  bool failed_ = false;
};

// Set when the logger could not write a line of this thread.
thread_local bool lost_line = false;

// In place of spdlog's own, which says nothing of klap and asks for memory.
void note_lost_line(const std::string& why) {
  lost_line = true;
  write_log_line("warning", why.size() < 100 ? std::string_view(why) : "a line of the log is lost");
}

}  // namespace

void write_log_line(const char* level, std::string_view line) noexcept {
  char text[1200];
  const int length = std::snprintf(text, sizeof text, "klap: %s: %.*s\n", level,
                                   static_cast<int>(std::min<size_t>(line.size(), 1100)), line.data());
  if (length > 0) (void)!write(STDERR_FILENO, text, static_cast<size_t>(length));
}

void log_without_memory(spdlog::level::level_enum level, std::string_view line) noexcept {
  try {
    spdlog::logger& logger = log();
    lost_line = false;
    logger.log(level, line);
    if (!lost_line) return;
  } catch (...) {
    // There is not even a logger.
  }
  write_log_line(level >= spdlog::level::err ? "error" : "warning", line);
}

spdlog::logger& log() {
  // Leaked on purpose: messages may come from other libraries' exit handlers, after static destructors ran.
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("klap", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("klap: %l: %v");
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::trace);
    made->set_error_handler(note_lost_line);
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

void set_log_file(const std::string& file) {
  const int descriptor = open_for_append(file);
  if (descriptor < 0)
    throw Error(ErrorCode::Io, std::string("cannot append: ") + std::strerror(errno)).at(file);
  close(descriptor);
  const auto level = log().level();
  log().sinks() = {std::make_shared<AppendingSink>(file)};
  log().set_pattern("%Y-%m-%dT%H:%M:%S.%e [%P] klap: %l: %v");
  log().set_level(level);
}

}  // namespace klap
