#include "support/file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "support/error.h"

namespace klap {

namespace {

// The number that a process has among those of one job, from what Open MPI, PMIx, MPICH, MVAPICH and Slurm
// set. Whatever is not a number is no part of a file's name.
std::optional<std::string> rank_of_process() {
  for (const char* const variable :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* const rank = std::getenv(variable);
    if (rank == nullptr || *rank == '\0') continue;
    if (std::ranges::all_of(std::string_view(rank), [](char c) { return c >= '0' && c <= '9'; })) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    throw Error(ErrorCode::Io, "is a folder, not a file").at(path.string());
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::Io, std::string("cannot open: ") + std::strerror(errno)).at(path.string());
  std::string bytes;
  const auto size = std::filesystem::file_size(path, ec);
  constexpr uintmax_t kMostReserved = uintmax_t{1} << 28;  // a file may say that it is longer than it is
  if (!ec) bytes.reserve(std::min(size, kMostReserved));
  std::array<char, 1 << 16> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0)
    bytes.append(block.data(), static_cast<size_t>(in.gcount()));
  if (in.bad())
    throw Error(ErrorCode::Io, std::string("cannot read: ") + std::strerror(errno)).at(path.string());
  return bytes;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec) || std::filesystem::create_directory(path, ec)) return;
  if (ec) throw Error(ErrorCode::Io, "cannot make the folder: " + ec.message()).at(path.string());
}

void require_folder_of(const std::filesystem::path& file) {
  std::error_code ec;
  if (!file.has_parent_path() || std::filesystem::exists(file.parent_path(), ec)) return;
  throw Error(ErrorCode::Io, "cannot create: there is no folder " + file.parent_path().string())
      .at(file.string());
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  require_folder_of(path);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out)
    throw Error(ErrorCode::Io, std::string("cannot create: ") + std::strerror(errno)).at(path.string());
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    const std::string why = std::strerror(errno);
    std::error_code ec;
    if (std::filesystem::is_regular_file(path, ec)) std::filesystem::remove(path, ec);  // never a device
    throw Error(ErrorCode::Io, "cannot write: " + why).at(path.string());
  }
}

std::string with_process(std::string file) {
  const std::string id = std::to_string(getpid()), rank = rank_of_process().value_or(id);
  for (const auto& [name, value] : {std::pair("%p", &id), std::pair("%r", &rank)}) {
    for (size_t at = 0; (at = file.find(name, at)) != std::string::npos; at += value->size())
      file.replace(at, 2, *value);
  }
  return file;
}

}  // namespace klap
