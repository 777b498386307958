#include "run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "support/file.h"

namespace klap::shim_test {

const std::string kObjects = KLAP_OBJECTS;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// In the child process: never returns.
[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& variables, const std::string& out,
                         const std::string& error) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string preload_list(const Options& options) {
  std::string list = KLAP_SANITIZER;
  for (const std::string& next :
       {options.preload_before, options.preload ? std::string(KLAP_SHIM) : "", options.preload_behind}) {
    if (!list.empty() && !next.empty()) list += ":";
    list += next;
  }
  return list;
}

}  // namespace

std::string Call::name() const { return text.substr(0, text.find(' ')); }

std::string Call::operator[](const std::string& key) const {
  const size_t at = text.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find(' ', begin) - begin);
}

std::vector<Call> Outcome::called(const std::string& name) const {
  std::vector<Call> found;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(found),
               [&](const Call& call) { return call.name() == name; });
  return found;
}

std::vector<Call> Outcome::launches() const {
  std::vector<Call> found;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(found), [](const Call& call) {
    return call.name().rfind("cuLaunch", 0) == 0 && call["result"] == "0";
  });
  return found;
}

std::string Outcome::said(const std::string& key) const {
  for (const std::string& line : lines_of(out)) {
    if (line.rfind(key + " ", 0) == 0) return line.substr(key.size() + 1);
  }
  return "";
}

std::vector<std::string> Outcome::complaints() const {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(error)) {
    if (line.rfind("klap: warning", 0) == 0 || line.rfind("klap: error", 0) == 0) found.push_back(line);
  }
  return found;
}

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const Options& options) {
  const TemporaryFile out("out"), error("error"), log("calls");
  std::vector<std::string> command = {std::string(KLAP_PROGRAMS) + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> variables = options.environment;
  // These tests are about compiling and loading; what an earlier run has left must not stand in for either.
  variables.emplace("KLAP_CACHE_DISABLE", "1");
  // Where nobody asks otherwise every launch is one call of the same form.
  variables.emplace("KLAP_OPTIMISE", "-dependent_launch");
  // What lasts for the process is left to it. A finding ends the program, and so fails its test.
  if (kIsSanitized) {
    variables.emplace("ASAN_OPTIONS", "detect_leaks=0");
    variables.emplace("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1");
    variables.emplace("TSAN_OPTIONS", "halt_on_error=1:exitcode=66:suppressions=" KLAP_SUPPRESSIONS);
  }
  variables["FAKE_CUDA_LOG"] = log.path();
  variables["LD_LIBRARY_PATH"] = KLAP_FAKE_FOLDER;
  if (const std::string list = preload_list(options); !list.empty()) variables["LD_PRELOAD"] = list;

  const pid_t child = fork();
  if (child == 0) become(command, variables, out.path(), error.path());
  int status = 0;
  waitpid(child, &status, 0);

  Outcome result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out.path());
  result.error = read_file(error.path());
  if (std::filesystem::exists(log.path())) {
    for (std::string& line : lines_of(read_file(log.path()))) result.calls.push_back({std::move(line)});
  }
  return result;
}

Role role(const Call& launch) {
  if (launch["kernel"] == "parent" || launch["kernel"] == "child") return Role::Original;
  const std::string params = launch["params"];
  return std::count(params.begin(), params.end(), ':') == 1 ? Role::Consumer : Role::Variant;
}

std::string roles(const Outcome& run) {
  std::string letters;
  for (const Call& launch : run.launches()) letters += "OVC"[static_cast<int>(role(launch))];
  return letters;
}

std::string added_parameters(const Call& variant, const Call& consumer) {
  unsigned grid[3] = {};
  (void)std::sscanf(variant["grid"].c_str(), "%u,%u,%u", grid, grid + 1, grid + 2);
  std::string whole;
  for (const unsigned extent : grid) {
    for (int byte = 0; byte < 4; ++byte) {
      char text[3];
      (void)std::snprintf(text, sizeof text, "%02x", extent >> 8 * byte & 0xffu);
      whole += text;
    }
  }
  return consumer["params"] + std::string(24, '0') + whole + ":";
}

TemporaryFile::TemporaryFile(const std::string& name) {
  std::string folder = (std::filesystem::temp_directory_path() / "klap-shim-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw std::runtime_error("no temporary folder");
  path_ = std::filesystem::path(folder) / name;
}

TemporaryFile::~TemporaryFile() { std::filesystem::remove_all(path_.parent_path()); }

}  // namespace klap::shim_test
