// Links that programs made (program_links.h), kept in the cache's folder for later processes.
//
// Libraries such as CuPy link their code once and keep the result in files of their own. The next process
// loads that machine code, and has never seen what it was linked from. So the inputs stand in a file beside
// the rewritten modules, whose name is the hash of the result. Whatever goes wrong is one line in the log,
// and the module is loaded as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "jit/cache/cache_folder.h"
#include "runtime/links/program_links.h"

namespace klap::runtime {

class LinkFiles {
 public:
  // `folder` is the cache's, empty if nothing is to be kept. `max_bytes` is the most that may be in it.
  LinkFiles(std::filesystem::path folder, uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}
  // The files that the settings ask for.
  static LinkFiles& instance();

  void keep(std::string_view machine_code, const ProgramLink& link) const;
  // The link of that result; null if it is not known.
  [[nodiscard]] std::shared_ptr<const ProgramLink> find(std::string_view machine_code) const;

 private:
  const std::filesystem::path folder_;
  const uint64_t max_bytes_;
};

std::string link_file(std::string_view machine_code);

std::string encode(const ProgramLink& link);
// Throws Error(Io) that says what is wrong with the bytes.
ProgramLink decode_link(std::string_view bytes);

}  // namespace klap::runtime
