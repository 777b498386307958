#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "support/error.h"
#include "support/file.h"

namespace klap::differential {

namespace {

// In the new process: never returns.
[[noreturn]] void become(std::vector<char*>& command, const std::map<std::string, std::string>& variables,
                         const std::filesystem::path& folder) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  dup2(open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open((folder / "error").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  execv(command[0], command.data());
  _exit(127);
}

std::filesystem::path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "klap-differential-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error(ErrorCode::Io, "no temporary folder: " + name);
  return name;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                 std::chrono::seconds limit)
    : deadline_(std::chrono::steady_clock::now() + limit), folder_(new_folder()) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) become(arguments, variables, folder_);
  if (pid_ < 0) throw Error(ErrorCode::Io, "cannot start " + command[0]);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool Process::has_ended() {
  if (pid_ < 0) return true;
  int status = 0;
  if (!outcome_.timed_out && std::chrono::steady_clock::now() > deadline_) {
    outcome_.timed_out = true;
    kill(pid_, SIGKILL);
  }
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = -1;
  outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome_.out = read_file(folder_ / "out");
  outcome_.error = read_file(folder_ / "error");
  return true;
}

Outcome Process::wait() {
  while (!has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return outcome_;
}

TemporaryFolder::TemporaryFolder() : path_(new_folder()) {}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace klap::differential
