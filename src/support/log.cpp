#include "support/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

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

}  // namespace

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
