#include "klap/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "support/error.h"

namespace klap::tool {

namespace {

using Clock = std::chrono::steady_clock;

// Signals by which others ask a program for something. Stopping is left to the terminal, which stops both.
constexpr std::array kEnding = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

std::vector<char*> argument_pointers(const std::vector<std::string>& command) {
  std::vector<char*> out;
  out.reserve(command.size() + 1);
  for (const std::string& word : command) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// Blocks the signals that are passed on, and those of ended children, so that they can be waited for.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : kPassedOn) sigaddset(&set_, signal);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
    (void)std::signal(SIGCHLD, SIG_DFL);  // whoever started this process may have switched it off
  }
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // In the child, too.
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&set_, &info) < 0 && errno == EINTR) {
    }
    return info;
  }

 private:
  sigset_t set_{}, before_{};
};

// The system's reason, or 0, comes through a pipe that closes when the program begins.
pid_t start(const std::vector<std::string>& command, const BlockedSignals& signals) {
  const std::vector<char*> arguments = argument_pointers(command);
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::Io, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t process = fork();
  if (process == 0) {
    signals.restore();
    execvp(arguments[0], arguments.data());
    const int error = errno;
    const ssize_t ignored = write(ends[1], &error, sizeof error);
    _exit(ignored == sizeof error ? 126 : 127);
  }
  int error = process < 0 ? errno : 0;
  close(ends[1]);
  if (process > 0 && read(ends[0], &error, sizeof error) == sizeof error) waitpid(process, nullptr, 0);
  close(ends[0]);
  if (error != 0)
    throw Error(ErrorCode::Io, fmt::format("cannot start '{}': {}", command.front(), std::strerror(error)));
  return process;
}

bool has_ended(pid_t process, int& status) {
  while (true) {
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) return true;
    if (ended == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Ended run_in_foreground(const std::vector<std::string>& command) {
  const auto begin = Clock::now();
  const BlockedSignals signals;
  const pid_t process = start(command, signals);
  Ended out;
  int status = 0;
  while (!has_ended(process, status)) {
    const siginfo_t got = signals.next();
    if (got.si_signo == SIGCHLD) continue;
    if (std::ranges::count(kEnding, got.si_signo) != 0) out.was_asked_to_end = true;
    // A signal from the terminal has reached the program as well.
    if (got.si_code <= 0) kill(process, got.si_signo);
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  out.exit_code = out.signal != 0 ? 128 + out.signal : WEXITSTATUS(status);
  return out;
}

void become(const std::vector<std::string>& command) {
  execvp(command.front().c_str(), argument_pointers(command).data());
  throw Error(ErrorCode::Io, fmt::format("cannot start '{}': {}", command.front(), std::strerror(errno)));
}

}  // namespace klap::tool
