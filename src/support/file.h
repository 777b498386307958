// Whole-file reading and writing with errors that name the file and the system's reason.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace klap {

// The file's bytes. Throws Error(Io).
std::string read_file(const std::filesystem::path& path);

// Writes the bytes, creating missing parent folders. Throws Error(Io); a partly written file is removed.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace klap
