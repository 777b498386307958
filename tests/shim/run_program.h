// Runs one test program in a fresh process with the shim preloaded, and reads the output of both the program
// and the fake driver.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace klap::shim_test {

// One line of the fake driver's call log: "name key=value ...".
struct Call {
  std::string text;
  [[nodiscard]] std::string name() const;
  // The value behind "KEY=", empty if there is none.
  [[nodiscard]] std::string operator[](const std::string& key) const;
};

struct Outcome {
  int status = -1;  // exit status; 128 + N for signal N
  std::string out, error;
  std::vector<Call> calls;

  [[nodiscard]] std::vector<Call> called(const std::string& name) const;
  // Successful launches of any entry point, in order.
  [[nodiscard]] std::vector<Call> launches() const;
  // The rest of the program's output line that begins with `key`.
  [[nodiscard]] std::string said(const std::string& key) const;
  // Lines that klap wrote at level "warning" and above.
  [[nodiscard]] std::vector<std::string> complaints() const;
};

struct Options {
  std::map<std::string, std::string> environment;  // added to the test's own
  bool preload = true;
  std::string preload_before, preload_behind;  // other libraries around the shim
};

// The folder of the objects that are loaded from files.
extern const std::string kObjects;

// Runs KLAP_PROGRAMS/`program` with these arguments.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments = {},
                    const Options& options = {});

// The role of a launch: the recording variant takes the original's two parameters and the queue, the consumer
// the queue alone.
enum class Role { Original, Variant, Consumer };
Role role(const Call& launch);
// Roles in order, one letter each: "O", "V", "C".
std::string roles(const Outcome& run);
// A variant's parameters behind the program's: its queue, as the consumer gets it, and the whole grid.
std::string added_parameters(const Call& variant, const Call& consumer);

// Whether the library and the programs are built with a sanitizer.
inline constexpr bool kIsSanitized = sizeof KLAP_SANITIZER > 1;

// A file in a folder that is removed at the end of the scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace klap::shim_test
