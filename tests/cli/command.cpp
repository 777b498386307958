#include "command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace klap::cli_test {

namespace {

std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

nlohmann::json Result::json() const {
  nlohmann::json parsed = nlohmann::json::parse(out, nullptr, false);
  if (!parsed.is_discarded()) return parsed;
  ADD_FAILURE() << "not JSON:\n" << out << "\nstandard error:\n" << err;
  return {};
}

void Command::SetUp() {
  std::string name = testing::TempDir() + "klap-cli-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

void Command::TearDown() { std::filesystem::remove_all(folder_); }

Result Command::klap_ptx(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment) {
  std::vector<std::string> words{KLAP_PTX};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return command(words, environment);
}

Result Command::command(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
  std::string line = "env";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string assignment = *entry;
    if (assignment.starts_with("KLAP_")) line += " -u " + assignment.substr(0, assignment.find('='));
  }
  for (const std::string& setting : environment) line += " " + shell_word(setting);
  for (const std::string& word : words) line += " " + shell_word(word);
  const int status =
      std::system((line + " >" + shell_word(path(".out")) + " 2>" + shell_word(path(".err"))).c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read(path(".out")),
          .err = read(path(".err"))};
}

std::string Command::write(const std::string& name, const std::string& bytes) {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

std::string program(const std::string& name) { return PROGRAMS + name; }

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace klap::cli_test
