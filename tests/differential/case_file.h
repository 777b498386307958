// Cases as files: JSON with the host's steps and all memories, and the PTX in a file beside it.
//
// This is how a random program that failed is kept and run again (klap_case --file). Memory is written as
// numbers of the buffer's element size, with runs counted ("5*12" is twelve fives). So a person can read and
// change it.
#pragma once

#include <filesystem>

#include "case.h"

namespace klap::differential {

// Writes `file` and, beside it, the PTX under the same name with the extension .ptx. Throws Error(Io).
void write_case(const Case& c, const std::filesystem::path& file);
// Throws Error(Io) or Error(Parse) with the file's name.
Case read_case(const std::filesystem::path& file);

}  // namespace klap::differential
