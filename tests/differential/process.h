// Programs started by the differential tests, with variables of their own and a time limit.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace klap::differential {

struct Outcome {
  int status = -1;  // exit status; 128 + N for signal N
  bool timed_out = false;
  std::string out, error;
};

class Process {
 public:
  // Starts it; throws Error(Io). `variables` are added to this process's own.
  Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
          std::chrono::seconds limit);
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // True once it has ended; also ends it when its time is up.
  bool has_ended();
  Outcome wait();

 private:
  int pid_ = -1;
  std::chrono::steady_clock::time_point deadline_;
  std::filesystem::path folder_;
  Outcome outcome_;
};

// A folder that is removed at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The folder of this program.
std::filesystem::path own_folder();

}  // namespace klap::differential
