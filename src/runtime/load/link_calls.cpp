#include "runtime/load/link_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "container/archive.h"
#include "container/image.h"
#include "runtime/driver.h"
#include "runtime/links/compiled_code.h"
#include "runtime/links/link_files.h"
#include "runtime/links/program_links.h"
#include "runtime/load/image_rewrite.h"
#include "runtime/load/rewritten_load.h"
#include "runtime/load/stand_ins.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {

namespace {

// PTX ends at its NUL, if it has one.
AddedCode code_of(CodeKind kind, const char* name, std::string bytes, std::string options) {
  if (kind == CodeKind::Ptx) bytes.resize(strnlen(bytes.data(), bytes.size()));
  std::string ptx = kind == CodeKind::Binary ? CompiledCode::instance().ptx_of(bytes) : "";
  return {kind, name != nullptr ? name : "linked code", std::move(bytes), std::move(options), std::move(ptx)};
}

void add_file(ProgramLinks::Handle link, const char* path, const auto& kind_of_bytes, std::string options) {
  try {
    std::string bytes = read_file(path);
    const CodeKind kind = kind_of_bytes(bytes);
    ProgramLinks::instance().add(link, code_of(kind, path, std::move(bytes), std::move(options)));
  } catch (const Error& error) {
    ProgramLinks::instance().spoil(link, error.what());
  }
}

// The code in a file; nothing if it cannot be read, which is the linker's to report.
std::optional<std::string> read_input(const char* path) {
  if (path == nullptr) return std::nullopt;
  try {
    return read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void completed(ProgramLinks::Handle link, const void* image, size_t readable_bytes) {
  const uint64_t bytes = container::machine_code_bytes(image);
  if (bytes == 0 || bytes > readable_bytes) return;
  const std::string_view machine_code(static_cast<const char*>(image), bytes);
  if (!holds_stand_in(machine_code) && !container::has_device_launch(machine_code, "linked code")) return;
  const auto kept = ProgramLinks::instance().complete(link, machine_code);
  if (kept && kept->problem.empty()) LinkFiles::instance().keep(machine_code, *kept);
}

bool is_container(const std::string& bytes) {
  const container::ImageKind kind = container::classify(bytes.c_str());
  return kind != container::ImageKind::Ptx && kind != container::ImageKind::Unknown;
}

// ---- the driver's ----

// Its own compiler has an older form of such code, and options of its own.
constexpr char kNotForTheDriver[] = "the driver links code for link-time optimisation";

// The driver looks at the bytes itself where it is told that they are PTX. CuPy gives it machine code so.
CodeKind kind_of(CUjitInputType type, const std::string& bytes) {
  switch (type) {
    case CU_JIT_INPUT_PTX:
      return is_container(bytes) ? CodeKind::Binary : CodeKind::Ptx;
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
      return CodeKind::Binary;
    default:
      return CodeKind::LtoIr;
  }
}

bool is_lto(CUjitInputType type) { return kind_of(type, "") == CodeKind::LtoIr; }

std::string options_text(const JitOptions& options) {
  return options.count == 0 ? "" : ptxas_options({options.names, options.count}, options.values);
}

// Names that the linker resolves to addresses that only this call knows.
bool binds_symbols(const JitOptions& options) {
  return std::any_of(options.names, options.names + options.count,
                     [](CUjit_option name) { return name == CU_JIT_GLOBAL_SYMBOL_NAMES; });
}

// The target that the program names for the link; empty if there is none.
std::string target_of(const JitOptions& options) {
  for (unsigned i = 0; i < options.count; ++i)
    if (options.names[i] == CU_JIT_TARGET)
      return fmt::format("{}", static_cast<uint32_t>(reinterpret_cast<uintptr_t>(options.values[i])));
  return "";
}

CUresult add(CUlinkState link, CUjitInputType type, std::string bytes, const std::string& name,
             const JitOptions& options) {
  const size_t size = bytes.size() + (type == CU_JIT_INPUT_PTX ? 1 : 0);  // PTX with the NUL that ends it
  return driver()->link_add_data(link, type, bytes.data(), size, name.c_str(), options.count, options.names,
                                 options.values);
}

bool driver_refuses(CUjitInputType type, const AddedCode& code, const std::string& target) {
  CUjit_option name = CU_JIT_TARGET;
  uintptr_t number = 0;
  std::from_chars(target.data(), target.data() + target.size(), number);
  auto* value =
      reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): the driver's convention
  CUlinkState link = nullptr;
  if (driver()->link_create(target.empty() ? 0 : 1, &name, &value, &link) != CUDA_SUCCESS) return false;
  const CUresult result = add(link, type, code.bytes, code.name, {});
  driver()->link_destroy(link);
  return result == CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC;
}

CUjitInputType driver_type(LinkPiece::Kind kind) {
  switch (kind) {
    case LinkPiece::Kind::Ptx:
      return CU_JIT_INPUT_PTX;
    case LinkPiece::Kind::Cubin:
      return CU_JIT_INPUT_CUBIN;
    default:
      return CU_JIT_INPUT_FATBINARY;
  }
}

std::optional<CUresult> add_stand_in(const char* entry_point, CUlinkState link, CUjitInputType type,
                                     const AddedCode& code, const JitOptions& options) {
  CalledLinker linker{link, entry_point, {}, {}};
  linker.refuses = [&](const std::string& target) { return driver_refuses(type, code, target); };
  linker.add = [&](const LinkPiece& piece) {
    return static_cast<int>(add(link, driver_type(piece.kind), piece.bytes, piece.name, options));
  };
  const auto result = add_stand_in(linker, code);
  return result ? std::optional(static_cast<CUresult>(*result)) : std::nullopt;
}

// ---- nvJitLink's ----

// The option that names the target.
std::string target_of(uint32_t count, const char* const* options) {
  const char* const* const end = options + count;
  const auto* const found =
      std::find_if(options, end, [](std::string_view option) { return option.starts_with("-arch="); });
  return found == end ? "" : *found;
}

nvJitLinkResult add(const NvJitLinkFunctions& functions, nvJitLinkHandle link, nvJitLinkInputType type,
                    const std::string& bytes, const std::string& name) {
  const size_t size = bytes.size() + (type == NVJITLINK_INPUT_PTX ? 1 : 0);
  return functions.add_data(link, type, bytes.c_str(), size, name.c_str());
}

bool nvjitlink_refuses(const NvJitLinkFunctions& functions, nvJitLinkInputType type, const AddedCode& code,
                       const std::string& target) {
  const char* option = target.c_str();
  nvJitLinkHandle link = nullptr;
  if (target.empty() || functions.create(&link, 1, &option) != NVJITLINK_SUCCESS) return false;
  const nvJitLinkResult result = add(functions, link, type, code.bytes, code.name);
  functions.destroy(&link);
  return result != NVJITLINK_SUCCESS;
}

nvJitLinkInputType nvjitlink_type(LinkPiece::Kind kind) {
  switch (kind) {
    case LinkPiece::Kind::Ptx:
      return NVJITLINK_INPUT_PTX;
    case LinkPiece::Kind::Cubin:
      return NVJITLINK_INPUT_CUBIN;
    default:
      return NVJITLINK_INPUT_FATBIN;
  }
}

std::optional<nvJitLinkResult> add_stand_in(const char* entry_point, const NvJitLinkFunctions& functions,
                                            nvJitLinkHandle link, nvJitLinkInputType type,
                                            const AddedCode& code) {
  CalledLinker linker{link, entry_point, {}, {}};
  linker.refuses = [&](const std::string& target) {
    return nvjitlink_refuses(functions, type, code, target);
  };
  linker.add = [&](const LinkPiece& piece) {
    return static_cast<int>(add(functions, link, nvjitlink_type(piece.kind), piece.bytes, piece.name));
  };
  const auto result = add_stand_in(linker, code);
  return result ? std::optional(static_cast<nvJitLinkResult>(*result)) : std::nullopt;
}

// The options that change code, as ptxas options.
std::string options_text(uint32_t count, const char* const* options) {
  static constexpr std::array<std::string_view, 4> kSame = {"-maxrregcount=", "-O", "-g", "-lineinfo"};
  constexpr std::string_view kAssembler = "-Xptxas=";
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    if (option.starts_with(kAssembler)) text += " " + std::string(option.substr(kAssembler.size()));
    if (std::ranges::any_of(kSame, [&](std::string_view same) { return option.starts_with(same); }))
      text += " " + std::string(option);
  }
  return text;
}

// The options that say how code for link-time optimisation is compiled, as they are.
std::vector<std::string> lto_options(uint32_t count, const char* const* options) {
  static constexpr std::array<std::string_view, 10> kOthers = {
      "-maxrregcount=",      "-Xptxas=", "-verbose", "-dryrun",      "-no-cache", "-split-compile",
      "-jump-table-density", "-time",    "-ptx",     "-device-stack"};
  std::vector<std::string> out;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    if (std::ranges::none_of(kOthers, [&](std::string_view other) { return option.starts_with(other); }))
      out.emplace_back(option);
  }
  return out;
}

// Bytes of a kind that is not known are taken for LTO-IR, if the program leaves the type to nvJitLink.
CodeKind kind_of(nvJitLinkInputType type, const std::string& bytes) {
  if (type == NVJITLINK_INPUT_PTX) return CodeKind::Ptx;
  if (type == NVJITLINK_INPUT_LTOIR || type == NVJITLINK_INPUT_INDEX) return CodeKind::LtoIr;
  if (type != NVJITLINK_INPUT_ANY) return CodeKind::Binary;
  switch (container::classify(bytes.c_str())) {
    case container::ImageKind::Ptx:
      return CodeKind::Ptx;
    case container::ImageKind::Unknown:
      return CodeKind::LtoIr;
    default:
      return CodeKind::Binary;
  }
}

}  // namespace

void link_created(CUlinkState link, const JitOptions& options) {
  ProgramLinks::instance().begin(link, options_text(options), {}, target_of(options));
  if (binds_symbols(options))
    ProgramLinks::instance().spoil(link, "the program's link gives symbols addresses of its own");
}

void link_data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                     const JitOptions& options) {
  if (is_lto(type)) ProgramLinks::instance().spoil(link, kNotForTheDriver);
  std::string code(static_cast<const char*>(data), bytes);
  const CodeKind kind = kind_of(type, code);
  ProgramLinks::instance().add(link, code_of(kind, name, std::move(code), options_text(options)));
}

void link_file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options) {
  if (is_lto(type)) ProgramLinks::instance().spoil(link, kNotForTheDriver);
  add_file(
      link, path, [type](const std::string& bytes) { return kind_of(type, bytes); }, options_text(options));
}

std::optional<CUresult> add_waiting_data(const char* entry_point, CUlinkState link, CUjitInputType type,
                                         const void* data, size_t bytes, const char* name,
                                         const JitOptions& options) {
  if (data == nullptr || is_lto(type) || !driver_is_complete()) return std::nullopt;
  std::string code(static_cast<const char*>(data), bytes);
  const CodeKind kind = kind_of(type, code);
  return add_stand_in(entry_point, link, type, code_of(kind, name, std::move(code), options_text(options)),
                      options);
}

std::optional<CUresult> add_waiting_file(const char* entry_point, CUlinkState link, CUjitInputType type,
                                         const char* path, const JitOptions& options) {
  const auto bytes = read_input(path);
  return bytes ? add_waiting_data(entry_point, link, type, bytes->data(), bytes->size(), path, options)
               : std::nullopt;
}

void link_completed(CUlinkState link, const void* image, size_t bytes) { completed(link, image, bytes); }

void link_about_to_end(CUlinkState link) { ProgramLinks::instance().end(link); }

void link_created(nvJitLinkHandle link, uint32_t count, const char* const* options) {
  ProgramLinks::instance().begin(link, options_text(count, options), lto_options(count, options),
                                 target_of(count, options));
}

void link_data_added(nvJitLinkHandle link, nvJitLinkInputType type, const void* data, size_t bytes,
                     const char* name) {
  std::string copy(static_cast<const char*>(data), bytes);
  const CodeKind kind = kind_of(type, copy);
  ProgramLinks::instance().add(link, code_of(kind, name, std::move(copy), ""));
}

void link_file_added(nvJitLinkHandle link, nvJitLinkInputType type, const char* path) {
  add_file(
      link, path, [type](const std::string& bytes) { return kind_of(type, bytes); }, "");
}

std::optional<nvJitLinkResult> add_waiting_data(const char* entry_point, const NvJitLinkFunctions& functions,
                                                nvJitLinkHandle link, nvJitLinkInputType type,
                                                const void* data, size_t bytes, const char* name) {
  if (data == nullptr) return std::nullopt;
  std::string code(static_cast<const char*>(data), bytes);
  const CodeKind kind = kind_of(type, code);
  return add_stand_in(entry_point, functions, link, type, code_of(kind, name, std::move(code), ""));
}

std::optional<nvJitLinkResult> add_waiting_file(const char* entry_point, const NvJitLinkFunctions& functions,
                                                nvJitLinkHandle link, nvJitLinkInputType type,
                                                const char* path) {
  const auto bytes = read_input(path);
  return bytes ? add_waiting_data(entry_point, functions, link, type, bytes->data(), bytes->size(), path)
               : std::nullopt;
}

// The machine code's own headers say how long it is.
void link_completed(nvJitLinkHandle link, const void* cubin) { completed(link, cubin, SIZE_MAX); }

void code_compiled(const void* cubin, const std::function<std::string()>& ptx) {
  const uint64_t bytes = container::machine_code_bytes(cubin);
  if (bytes == 0) return;
  const std::string_view machine_code(static_cast<const char*>(cubin), bytes);
  if (container::mentions_device_launch(machine_code, "compiled code"))
    CompiledCode::instance().keep(machine_code, ptx());
}

void link_about_to_end(nvJitLinkHandle link) { ProgramLinks::instance().end(link); }

}  // namespace klap::runtime
