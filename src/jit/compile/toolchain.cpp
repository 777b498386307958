#include "jit/compile/toolchain.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <sstream>

#include "support/error.h"
#include "support/own_thread.h"
#include "support/toolkit_library.h"

// The header maps the functions to names of its own version; by plain name any version can be asked.
#undef nvJitLinkCreate
#undef nvJitLinkDestroy
#undef nvJitLinkAddData
#undef nvJitLinkAddFile
#undef nvJitLinkComplete
#undef nvJitLinkGetLinkedCubinSize
#undef nvJitLinkGetLinkedCubin
#undef nvJitLinkGetLinkedPtxSize
#undef nvJitLinkGetLinkedPtx
#undef nvJitLinkGetErrorLogSize
#undef nvJitLinkGetErrorLog
#undef nvJitLinkGetInfoLogSize
#undef nvJitLinkGetInfoLog

namespace klap::jit {
namespace {

std::atomic<unsigned long> nvrtc_calls{0}, nvjitlink_calls{0};
std::atomic<bool> nvrtc_opened{false}, nvjitlink_opened{false};

struct Nvrtc {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;

  // Since 12.4 NVRTC can leave out textures and the CUDA runtime's functions and types, which no template
  // uses. What it makes is the same, a tenth sooner.
  [[nodiscard]] bool can_leave_out_runtime() const {
    int major = 0, minor = 0;
    return version(&major, &minor) == NVRTC_SUCCESS && std::pair(major, minor) >= std::pair(12, 4);
  }

  // NVRTC opens a second library by its name, which the loader does not find where it does not find NVRTC.
  // Its name has NVRTC's own version, so none of another version is taken.
  void open_builtins(void* library) const {
    int major = 0, minor = 0;
    if (version(&major, &minor) == NVRTC_SUCCESS)
      open_beside(library, fmt::format("libnvrtc-builtins.so.{}.{}", major, minor));
  }

  static const Nvrtc& get() {
    static const Nvrtc opened = [] {
      Nvrtc n;
      void* library = open_toolkit_library("nvrtc", "KLAP_NVRTC");
      resolve(library, "nvrtcVersion", n.version);
      resolve(library, "nvrtcCreateProgram", n.create);
      resolve(library, "nvrtcDestroyProgram", n.destroy);
      resolve(library, "nvrtcCompileProgram", n.compile);
      resolve(library, "nvrtcGetPTXSize", n.ptx_size);
      resolve(library, "nvrtcGetPTX", n.ptx);
      resolve(library, "nvrtcGetProgramLogSize", n.log_size);
      resolve(library, "nvrtcGetProgramLog", n.log);
      resolve(library, "nvrtcGetErrorString", n.error_string);
      n.open_builtins(library);
      nvrtc_opened.store(true);
      wait_first_at_exit();
      return n;
    }();
    return opened;
  }
};

struct NvJitLink {
  nvJitLinkResult (*create)(nvJitLinkHandle*, uint32_t, const char**) = nullptr;
  nvJitLinkResult (*destroy)(nvJitLinkHandle*) = nullptr;
  nvJitLinkResult (*add_data)(nvJitLinkHandle, nvJitLinkInputType, const void*, size_t,
                              const char*) = nullptr;
  nvJitLinkResult (*add_file)(nvJitLinkHandle, nvJitLinkInputType, const char*) = nullptr;
  nvJitLinkResult (*complete)(nvJitLinkHandle) = nullptr;
  nvJitLinkResult (*cubin_size)(nvJitLinkHandle, size_t*) = nullptr;
  nvJitLinkResult (*cubin)(nvJitLinkHandle, void*) = nullptr;
  nvJitLinkResult (*ptx_size)(nvJitLinkHandle, size_t*) = nullptr;
  nvJitLinkResult (*ptx)(nvJitLinkHandle, char*) = nullptr;
  nvJitLinkResult (*error_log_size)(nvJitLinkHandle, size_t*) = nullptr;
  nvJitLinkResult (*error_log)(nvJitLinkHandle, char*) = nullptr;
  nvJitLinkResult (*info_log_size)(nvJitLinkHandle, size_t*) = nullptr;
  nvJitLinkResult (*info_log)(nvJitLinkHandle, char*) = nullptr;
  nvJitLinkResult (*version)(unsigned*, unsigned*) = nullptr;

  static const NvJitLink& get() {
    static const NvJitLink opened = [] {
      NvJitLink n;
      void* library = open_toolkit_library("nvJitLink", "KLAP_NVJITLINK");
      resolve(library, "nvJitLinkCreate", n.create);
      resolve(library, "nvJitLinkDestroy", n.destroy);
      resolve(library, "nvJitLinkAddData", n.add_data);
      resolve(library, "nvJitLinkAddFile", n.add_file);
      resolve(library, "nvJitLinkComplete", n.complete);
      resolve(library, "nvJitLinkGetLinkedCubinSize", n.cubin_size);
      resolve(library, "nvJitLinkGetLinkedCubin", n.cubin);
      resolve(library, "nvJitLinkGetLinkedPtxSize", n.ptx_size);
      resolve(library, "nvJitLinkGetLinkedPtx", n.ptx);
      resolve(library, "nvJitLinkGetErrorLogSize", n.error_log_size);
      resolve(library, "nvJitLinkGetErrorLog", n.error_log);
      resolve(library, "nvJitLinkGetInfoLogSize", n.info_log_size);
      resolve(library, "nvJitLinkGetInfoLog", n.info_log);
      resolve(library, "nvJitLinkVersion", n.version);
      nvjitlink_opened.store(true);
      wait_first_at_exit();
      return n;
    }();
    return opened;
  }
};

std::vector<const char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<const char*> out;
  out.reserve(strings.size());
  for (const std::string& s : strings) out.push_back(s.c_str());
  return out;
}

// One nvJitLink session; destroyed whatever happens.
class LinkSession {
 public:
  explicit LinkSession(const std::vector<std::string>& options) : api_(NvJitLink::get()) {
    std::vector<const char*> arguments = c_strings(options);
    if (api_.create(&handle_, static_cast<uint32_t>(arguments.size()), arguments.data()) !=
        NVJITLINK_SUCCESS) {
      const std::string text = handle_ != nullptr ? logs() : std::string();
      if (handle_ != nullptr) api_.destroy(&handle_);
      throw Error(ErrorCode::Unsupported, "nvJitLink refuses its options: " + text);
    }
  }
  ~LinkSession() { api_.destroy(&handle_); }
  LinkSession(const LinkSession&) = delete;
  LinkSession& operator=(const LinkSession&) = delete;

  void add(const LinkInput& input) {
    nvJitLinkResult result = NVJITLINK_SUCCESS;
    if (input.kind == LinkInputKind::Library) {
      result = api_.add_file(handle_, NVJITLINK_INPUT_LIBRARY, std::string(input.bytes).c_str());
    } else if (input.kind == LinkInputKind::Ptx) {
      const std::string text(input.bytes);  // with the terminating NUL that nvJitLink wants for PTX
      result = api_.add_data(handle_, NVJITLINK_INPUT_PTX, text.c_str(), text.size() + 1, input.name.c_str());
    } else {
      const auto kind = input.kind == LinkInputKind::LtoIr ? NVJITLINK_INPUT_ANY : NVJITLINK_INPUT_CUBIN;
      result = api_.add_data(handle_, kind, input.bytes.data(), input.bytes.size(), input.name.c_str());
    }
    if (result != NVJITLINK_SUCCESS) fail("cannot add " + input.name, result);
  }

  std::string cubin() { return finish(api_.cubin_size, api_.cubin); }
  // Without the NUL at its end.
  std::string ptx() {
    std::string text = finish(api_.ptx_size, api_.ptx);
    text.resize(strnlen(text.data(), text.size()));
    return text;
  }

 private:
  std::string finish(nvJitLinkResult (*get_size)(nvJitLinkHandle, size_t*), const auto& get) {
    const nvJitLinkResult result = api_.complete(handle_);
    if (result != NVJITLINK_SUCCESS) fail("cannot link", result);
    size_t size = 0;
    if (get_size(handle_, &size) != NVJITLINK_SUCCESS || size == 0) fail("no linked image", result);
    std::string out(size, '\0');
    if (get(handle_, out.data()) != NVJITLINK_SUCCESS) fail("no linked image", result);
    return out;
  }

  [[noreturn]] void fail(const std::string& what, nvJitLinkResult result) {
    const std::string log = logs();
    Error error(ErrorCode::Link,
                fmt::format("{} (nvJitLink result {}): {}", what, static_cast<int>(result), log));
    if (log.find("Unsupported .version") != std::string::npos)
      error.fix("the PTX is of a newer CUDA; name the nvJitLink of that in KLAP_NVJITLINK");
    throw error;
  }

  std::string logs() {
    std::string out;
    size_t size = 0;
    if (api_.error_log_size(handle_, &size) == NVJITLINK_SUCCESS && size > 1) {
      std::string text(size, '\0');
      if (api_.error_log(handle_, text.data()) == NVJITLINK_SUCCESS) out += text.c_str();
    }
    if (api_.info_log_size(handle_, &size) == NVJITLINK_SUCCESS && size > 1) {
      std::string text(size, '\0');
      if (api_.info_log(handle_, text.data()) == NVJITLINK_SUCCESS) out += text.c_str();
    }
    return out.substr(0, out.find_last_not_of('\n') + 1);
  }

  const NvJitLink& api_;
  nvJitLinkHandle handle_ = nullptr;
};

// Fills in size and time; false if there is no such file.
bool look_at(ToolFile& tool) {
  struct stat status {};
  if (stat(tool.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  tool.bytes = static_cast<uint64_t>(status.st_size);
  tool.modified = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return true;
}

// The file that `function` came from.
ToolFile tool_file(const char* library, std::string version, void* function) {
  ToolFile tool{.library = library, .version = std::move(version), .path = {}};
  Dl_info info{};
  if (dladdr(function, &info) != 0 && info.dli_fname != nullptr) tool.path = info.dli_fname;
  look_at(tool);
  return tool;
}

// The file that is opened for a library as far as the environment says so; "" where it does not.
std::string chosen_by_environment(const std::string& library) {
  const char* const variable = library == "nvrtc" ? "KLAP_NVRTC" : "KLAP_NVJITLINK";
  if (const char* file = secure_getenv(variable); file != nullptr && *file != '\0') return file;
  const char* const folders = secure_getenv("LD_LIBRARY_PATH");
  std::istringstream list(folders != nullptr ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');) {
    for (const char* suffix : kToolkitSuffixes) {
      std::string file = fmt::format("{}/lib{}{}", folder, library, suffix);
      if (access(file.c_str(), F_OK) == 0) return file;
    }
  }
  return {};
}

bool changed(const ToolFile& before) {
  ToolFile now = before;
  if (const std::string chosen = chosen_by_environment(before.library); !chosen.empty()) now.path = chosen;
  return look_at(now) && (now.bytes != before.bytes || now.modified != before.modified);
}

}  // namespace

std::string compile_to_ptx(std::string_view source, const std::string& name,
                           const std::vector<std::string>& options,
                           const std::vector<std::pair<std::string, std::string>>& headers) {
  stop_if_process_ends();
  const Nvrtc& nvrtc = Nvrtc::get();
  const bool is_first = nvrtc_calls.fetch_add(1, std::memory_order_relaxed) == 0;
  std::vector<const char*> names, texts;
  for (const auto& [header_name, text] : headers) {
    names.push_back(header_name.c_str());
    texts.push_back(text.c_str());
  }
  const std::string text(source);
  nvrtcProgram program = nullptr;
  nvrtcResult result = nvrtc.create(&program, text.c_str(), name.c_str(), static_cast<int>(names.size()),
                                    texts.data(), names.data());
  if (result != NVRTC_SUCCESS) {
    throw Error(ErrorCode::Toolchain, fmt::format("NVRTC: {}", nvrtc.error_string(result))).at(name);
  }
  const std::unique_ptr<nvrtcProgram, void (*)(nvrtcProgram*)> guard(
      &program, [](nvrtcProgram* p) { Nvrtc::get().destroy(p); });
  std::vector<const char*> arguments = c_strings(options);
  if (nvrtc.can_leave_out_runtime()) arguments.push_back("--minimal");
  result = nvrtc.compile(program, static_cast<int>(arguments.size()), arguments.data());
  if (is_first) wait_first_at_exit();  // NVRTC makes some of its objects when they are first used
  size_t size = 0;
  if (result != NVRTC_SUCCESS) {
    std::string log;
    if (nvrtc.log_size(program, &size) == NVRTC_SUCCESS && size > 1) {
      log.resize(size);
      if (nvrtc.log(program, log.data()) != NVRTC_SUCCESS) log.clear();
    }
    throw Error(ErrorCode::Toolchain, fmt::format("NVRTC: {}\n{}", nvrtc.error_string(result), log.c_str()))
        .at(name);
  }
  if (nvrtc.ptx_size(program, &size) != NVRTC_SUCCESS || size < 2) {
    throw Error(ErrorCode::Toolchain, "NVRTC gave no PTX").at(name);
  }
  std::string ptx(size, '\0');
  if (nvrtc.ptx(program, ptx.data()) != NVRTC_SUCCESS)
    throw Error(ErrorCode::Toolchain, "NVRTC gave no PTX").at(name);
  ptx.resize(size - 1);  // without the NUL
  return ptx;
}

std::string link_to_cubin(const std::vector<LinkInput>& inputs, const std::vector<std::string>& options) {
  stop_if_process_ends();
  const bool is_first = nvjitlink_calls.fetch_add(1, std::memory_order_relaxed) == 0;
  LinkSession session(options);
  for (const LinkInput& input : inputs) session.add(input);
  std::string cubin = session.cubin();
  if (is_first) wait_first_at_exit();  // as with NVRTC
  return cubin;
}

std::string lower_to_ptx(const std::vector<LinkInput>& inputs, std::vector<std::string> options) {
  stop_if_process_ends();
  const bool is_first = nvjitlink_calls.fetch_add(1, std::memory_order_relaxed) == 0;
  for (const char* const option : {"-lto", "-ptx"}) {
    if (std::ranges::find(options, option) == options.end()) options.emplace_back(option);
  }
  LinkSession session(options);
  for (const LinkInput& input : inputs) session.add(input);
  std::string ptx = session.ptx();
  if (is_first) wait_first_at_exit();
  return ptx;
}

std::string nvjitlink_problem() {
  try {
    NvJitLink::get();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string find_device_runtime_archive() {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  Dl_info info{};
  if (nvjitlink_problem().empty() && dladdr(reinterpret_cast<void*>(NvJitLink::get().create), &info) != 0 &&
      info.dli_fname != nullptr) {
    std::error_code ec;
    folders.push_back(fs::canonical(info.dli_fname, ec).parent_path());
  }
  for (const std::string& folder : toolkit_folders()) folders.emplace_back(folder);
  for (const fs::path& folder : folders) {
    std::error_code ec;
    const fs::path archive = folder / "libcudadevrt.a";
    if (fs::is_regular_file(archive, ec)) return archive.string();
  }
  return {};
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  if (Nvrtc::get().version(&major, &minor) != NVRTC_SUCCESS) return "unknown";
  return fmt::format("{}.{}", major, minor);
}

std::string nvjitlink_version() {
  unsigned major = 0, minor = 0;
  if (NvJitLink::get().version(&major, &minor) != NVJITLINK_SUCCESS) return "unknown";
  return fmt::format("{}.{}", major, minor);
}

std::vector<ToolFile> opened_toolchain() {
  std::vector<ToolFile> out;
  if (nvrtc_opened.load()) {
    void* const inside = reinterpret_cast<void*>(Nvrtc::get().version);
    out.push_back(tool_file("nvrtc", nvrtc_version(), inside));
  }
  if (nvjitlink_opened.load()) {
    void* const inside = reinterpret_cast<void*>(NvJitLink::get().version);
    out.push_back(tool_file("nvJitLink", nvjitlink_version(), inside));
  }
  return out;
}

bool toolchain_changed(const std::vector<ToolFile>& before) { return std::ranges::any_of(before, changed); }

ToolchainCalls toolchain_calls() {
  return {nvrtc_calls.load(std::memory_order_relaxed), nvjitlink_calls.load(std::memory_order_relaxed)};
}

}  // namespace klap::jit
