// A file with the times that earlier runs measured, for the parents of one rewritten module on one kind of
// GPU.
//
// The file stands beside the rewritten modules in the cache's folder. Its name is the hash of a text that
// names the module, the GPU's model and the driver (ProfileName). So another build of the program or of
// klap_jit, other settings, and another GPU never find it. The file is only believed if its checksum is right
// and the text in it is the same. It is put into place by one rename, so two processes never mix their bytes;
// the later one wins.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/parents/guard_times.h"

namespace klap::runtime {

// Launches of a parent's variant that are the same in each process (launch_guard.h).
using ProfiledLaunches = std::pair<std::string, std::array<uint64_t, 2>>;

struct GuardProfile {
  // The most launches that are kept: those that spent the most time.
  static constexpr size_t kMostRows = 64;

  std::string name;     // the text that the file's name is the hash of
  int64_t written = 0;  // in seconds since the epoch
  std::map<ProfiledLaunches, GuardTimes> rows;

  void drop_surplus_rows();
};

std::string profile_file(std::string_view name);

std::string encode(const GuardProfile& profile);
// Throws Error(Io) that says what is wrong with the bytes.
GuardProfile decode_profile(std::string_view bytes);

}  // namespace klap::runtime
