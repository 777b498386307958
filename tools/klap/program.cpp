#include "klap/program.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "container/bytes.h"
#include "container/elf64.h"
#include "klap/version.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

constexpr std::string_view kPathWithoutOne = "/bin:/usr/bin";  // where PATH is not set, as for execvp()

std::string search(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), F_OK) == 0 ? name : "";
  const char* const set = std::getenv("PATH");
  std::string_view rest = set != nullptr ? std::string_view(set) : kPathWithoutOne;
  std::string unusable;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    if (access(path.c_str(), X_OK) == 0) return path;
    if (unusable.empty()) unusable = std::move(path);
  }
  return unusable;
}

std::string not_found(const std::string& name) {
  if (name.find('/') != std::string::npos) return "was not found";
  return access(name.c_str(), F_OK) == 0 ? fmt::format("was not found in PATH; write ./{}", name)
                                         : "was not found in PATH";
}

struct ElfFile {
  Elf64_Ehdr header{};
  std::string interpreter;  // the loader that the file asks for; empty: none
};

// Nothing if the file is none for this machine's kind of address.
std::optional<ElfFile> read_elf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  ElfFile file;
  in.read(reinterpret_cast<char*>(&file.header), sizeof file.header);
  if (!in || file.header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  for (unsigned i = 0; i < file.header.e_phnum; ++i) {
    Elf64_Phdr part{};
    in.seekg(static_cast<std::streamoff>(file.header.e_phoff + i * sizeof part));
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (!in) break;
    if (part.p_type != PT_INTERP || part.p_filesz > 4096) continue;
    file.interpreter.resize(part.p_filesz);
    in.seekg(static_cast<std::streamoff>(part.p_offset));
    in.read(file.interpreter.data(), static_cast<std::streamsize>(part.p_filesz));
    file.interpreter.resize(std::strlen(file.interpreter.c_str()));
  }
  return file;
}

bool is_elf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[SELFMAG] = {};
  in.read(magic, sizeof magic);
  return in && std::memcmp(magic, ELFMAG, SELFMAG) == 0;
}

Elf64_Half machine_of_this() {
  const std::optional<ElfFile> self = read_elf("/proc/self/exe");
  return self ? self->header.e_machine : EM_NONE;
}

// The version in a preload library (shim/version.cpp); empty if it is another library.
std::string version_of_library(const std::string& path) {
  const std::string bytes = read_file(path);
  try {
    const container::Elf64 elf(container::as_bytes(bytes), path);
    const container::ElfSection* const section = elf.find(".klap_version");
    if (section == nullptr) return "";
    const std::string_view text = container::as_text(elf.content(*section));
    return std::string(text.substr(0, text.find('\0')));
  } catch (const Error&) {
    return "";  // what is damaged is no such library
  }
}

// The loader ignores LD_PRELOAD in programs that run with rights that their user does not have.
bool gains_rights(const std::string& path, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != getegid())
    return true;
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// The program that the first line of a script names; empty if the file is no script.
std::string interpreter_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("#!")) return "";
  const size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

// Why nothing can be preloaded into an executable file. A script is as good as what interprets it.
std::string preload_problem(const std::string& path) {
  if (!is_elf(path)) {
    const std::string interpreter = interpreter_of(path);
    if (interpreter.empty() || access(interpreter.c_str(), F_OK) == 0) return "";
    return fmt::format("is a script for {}, which is not there; correct its first line", interpreter);
  }
  const std::optional<ElfFile> file = read_elf(path);
  if (!file || file->header.e_machine != machine_of_this())
    return "is for another processor, so the library cannot be preloaded into it";
  if (file->interpreter.empty())
    return "is statically linked, so nothing can be preloaded into it; link it without -static";
  if (file->interpreter.find("ld-musl") != std::string::npos)
    return "is for the C library musl, so the library cannot be preloaded into it; build it with glibc";
  return "";
}

}  // namespace

FoundProgram find_program(const std::string& name) {
  FoundProgram found{.path = search(name), .problem = {}};
  struct stat status {};
  if (found.path.empty() || stat(found.path.c_str(), &status) != 0) {
    return {.path = {}, .problem = not_found(name), .exit_code = kNotFound};
  }
  if (S_ISDIR(status.st_mode)) {
    found.problem = "is a folder";
  } else if (access(found.path.c_str(), X_OK) != 0) {
    found.problem = "is not executable; if it is a program, use chmod +x";
  } else if (gains_rights(found.path, status)) {
    found.problem = "runs with the rights of another user or group, so the loader preloads nothing into it";
  } else {
    found.problem = preload_problem(found.path);
  }
  found.exit_code = found.problem.empty() ? 0 : kCannotRun;
  return found;
}

std::string library_problem(const std::string& library) {
  if (access(library.c_str(), R_OK) != 0) return "cannot be read";
  const std::optional<ElfFile> file = is_elf(library) ? read_elf(library) : std::nullopt;
  if (!file || file->header.e_type != ET_DYN) return "is no shared library";
  if (file->header.e_machine != machine_of_this()) return "is for another processor";
  const std::string version = version_of_library(library);
  if (version.empty()) return "is not libklap_jit.so";
  if (version == KLAP_VERSION) return "";
  return fmt::format("is of version {}, and this program of version {}", version, KLAP_VERSION);
}

}  // namespace klap::tool
