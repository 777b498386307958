// Texts that tests of this folder make are given to the assembler.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/file.h"

namespace klap {

// For each of several architectures.
inline void expect_assembles(const std::string& text) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string file = testing::TempDir() + "/assembling_" + test + ".ptx";
  write_file(file, text);
  for (const char* sm : {"80", "90", "100"}) {
    std::string command = KLAP_PTXAS " -c -arch=sm_";
    command.append(sm).append(" -o ").append(file).append(".o ").append(file);
    command.append(" >").append(file).append(".log 2>&1");
    EXPECT_EQ(0, std::system(command.c_str())) << sm << ": " << read_file(file + ".log") << text;
  }
}

}  // namespace klap
