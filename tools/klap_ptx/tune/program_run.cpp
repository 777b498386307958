#include "klap_ptx/tune/program_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "support/error.h"

namespace klap::tool {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : added) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

// In a process group of its own, so that what it starts can be killed with it.
pid_t start(const ProgramRun& run) {
  std::vector<std::string> arguments = run.command, environment = merged_environment(run.environment);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, run.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   S_IRUSR | S_IWUSR);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments.front().c_str(), &files, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw Error(ErrorCode::Io, fmt::format("cannot start '{}': {}", arguments.front(), std::strerror(error)));
  return process;
}

}  // namespace

RunOutcome run_program(const ProgramRun& run) {
  constexpr std::chrono::milliseconds kPause(1);
  const auto begin = Clock::now();
  const pid_t process = start(run);
  const auto took = [&begin] { return std::chrono::duration<double>(Clock::now() - begin); };
  RunOutcome outcome;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(process, &status, run.limit.count() == 0 || outcome.is_killed ? 0 : WNOHANG);
    if (ended == process) break;
    if (ended < 0 && errno != EINTR)
      throw Error(ErrorCode::Io, fmt::format("cannot wait for a program: {}", std::strerror(errno)));
    if (ended == 0 && took() > run.limit) {
      kill(-process, SIGKILL);
      outcome.is_killed = true;
    } else if (ended == 0) {
      std::this_thread::sleep_for(kPause);
    }
  }
  outcome.seconds = took().count();
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace klap::tool
