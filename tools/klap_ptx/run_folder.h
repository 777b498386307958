// A folder for what runs of a program write, removed at the end.
#pragma once

#include <filesystem>
#include <string>

namespace klap::tool {

class RunFolder {
 public:
  // Throws Error(Io) if there is no place for it.
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace klap::tool
