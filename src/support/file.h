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

// The name with every %p replaced by the id of this process, which keeps the processes of one command apart.
std::string with_process_id(std::string file);

}  // namespace klap
