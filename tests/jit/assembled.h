// Machine code that ptxas makes of PTX. Many tests run at a time, each in a process of its own. So each call
// has a folder of its own and leaves nothing behind.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "support/file.h"

namespace klap::test {

// Fails the test, with ptxas's message, and returns nothing if ptxas does not take the text. `options` are
// further ones, each with a space behind it.
inline std::string assembled(const std::string& ptx, int sm = 90, const std::string& options = "") {
  std::string folder = testing::TempDir() + "klap-assembled-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder " + folder);
  const std::string file = folder + "/unit.ptx";
  write_file(file, ptx);
  const std::string command = std::string(KLAP_PTXAS) + " -arch=sm_" + std::to_string(sm) + " -c " + options +
                              "-o " + file + ".o " + file + " >" + file + ".log 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_EQ(0, status) << read_file(file + ".log");
  const std::string made = status == 0 ? read_file(file + ".o") : "";
  std::filesystem::remove_all(folder);
  return made;
}

}  // namespace klap::test
