// Runs klap-ptx in a process of its own and keeps its output.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace klap::cli_test {

struct Result {
  int exit_code = -1;  // 128 + N when signal N ended it
  std::string out, err;

  // Standard output as JSON; a test failure and null when it is none.
  [[nodiscard]] nlohmann::json json() const;
};

// A test with a temporary folder. It does not see the KLAP_* variables of the user who runs it.
class Command : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs klap-ptx with the arguments and VARIABLE=VALUE settings.
  Result klap_ptx(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment = {});
  // Runs any command.
  Result command(const std::vector<std::string>& words, const std::vector<std::string>& environment = {});

  // A path in the temporary folder; `write` also makes the file.
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes);

 private:
  std::filesystem::path folder_;
};

// A file the build made with nvcc, see CMakeLists.txt.
std::string program(const std::string& name);
std::string read(const std::string& path);

}  // namespace klap::cli_test
