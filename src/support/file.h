// Whole-file reading and writing with errors that name the file and the system's reason.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace klap {

// The file's bytes. Throws Error(Io).
std::string read_file(const std::filesystem::path& path);

// Makes the folder if it is missing. The folder around it must be there: a mistyped path is an error, and no
// new tree. Throws Error(Io).
void make_folder(const std::filesystem::path& path);

// Throws Error(Io) if a file of that name cannot be made because there is no folder for it.
void require_folder_of(const std::filesystem::path& file);

// Writes the bytes into a folder that is there. Throws Error(Io); a partly written file is removed.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// The name with every %p replaced by the id of this process, and every %r by its rank where it is one of
// several under MPI or Slurm. Elsewhere %r is the id, too. So the processes of one command are kept apart.
std::string with_process(std::string file);

}  // namespace klap
