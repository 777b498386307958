// NVRTC's functions, as far as klap_jit calls them, in front of NVRTC itself: what was compiled once is kept
// in a file, so that hundreds of tests that need the same few templates do not compile them again one by one.
//
// The same text, options and headers give the same PTX as long as the library is the same; a file's name is
// the hash of all of these, and the file begins with all of them, so that two that hash alike are not mixed
// up. What does not compile is never kept. KLAP_NVRTC_ONCE_DIR names another folder than the build's.
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#define KLAP_STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

struct Program {
  std::string request;  // all that decides what comes out, but the options
  std::string ptx;      // of an earlier compilation
  nvrtcProgram real = nullptr;
  std::function<nvrtcResult(nvrtcProgram*)> create;
};

void* the_library() {
  static void* const library = dlopen(KLAP_REAL_NVRTC, RTLD_NOW | RTLD_LOCAL);
  return library;
}

template <typename Function>
Function* real(Function*, const char* name) {
  void* const library = the_library();
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

#define KLAP_REAL(function, ...)                                               \
  [&] {                                                                        \
    static auto* const found = real(&(function), #function);                   \
    return found == nullptr ? NVRTC_ERROR_INTERNAL_ERROR : found(__VA_ARGS__); \
  }()

void append(std::string& request, const char* part) {
  const std::string text = part == nullptr ? "" : part;
  request += fmt::format("{}\n{}\n", text.size(), text);
}

// The library, by what tells it from another one.
std::string library_identity() {
  struct stat status {};
  if (stat(KLAP_REAL_NVRTC, &status) != 0) return {};
  return fmt::format("{} {} {}.{}", KLAP_REAL_NVRTC, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::filesystem::path folder() {
  const char* const chosen = std::getenv("KLAP_NVRTC_ONCE_DIR");
  return chosen != nullptr ? chosen : KLAP_COMPILED;
}

std::filesystem::path file_of(const std::string& request) {
  return folder() / fmt::format("{:016x}", std::hash<std::string>()(request));
}

// The PTX that was made of the request before; empty if none was.
std::string look_up(const std::string& request) {
  std::ifstream in(file_of(request), std::ios::binary);
  std::stringstream all;
  if (!in || !(all << in.rdbuf())) return {};
  const std::string text = all.str();
  return text.starts_with(request) ? text.substr(request.size()) : std::string();
}

// Whole or not at all: other processes read it.
void keep(const std::string& request, const std::string& ptx) {
  std::error_code ignored;
  std::filesystem::create_directories(folder(), ignored);
  const std::filesystem::path file = file_of(request);
  const std::filesystem::path unfinished = file.string() + fmt::format(".{}", getpid());
  {
    std::ofstream out(unfinished, std::ios::binary);
    if (!(out << request << ptx << std::flush)) return;
  }
  std::filesystem::rename(unfinished, file, ignored);
}

// Compiles with the library itself, and keeps what comes out.
nvrtcResult compile_really(Program& program, const std::string& request, int count,
                           const char* const* options) {
  if (program.real == nullptr) {
    if (const nvrtcResult result = program.create(&program.real); result != NVRTC_SUCCESS) return result;
  }
  const nvrtcResult result = KLAP_REAL(nvrtcCompileProgram, program.real, count, options);
  size_t size = 0;
  if (result != NVRTC_SUCCESS || KLAP_REAL(nvrtcGetPTXSize, program.real, &size) != NVRTC_SUCCESS || size < 2)
    return result;
  std::string ptx(size, '\0');
  if (KLAP_REAL(nvrtcGetPTX, program.real, ptx.data()) == NVRTC_SUCCESS) keep(request, ptx);
  return result;
}

Program& known(nvrtcProgram program) { return *reinterpret_cast<Program*>(program); }

}  // namespace

KLAP_STAND_IN nvrtcResult nvrtcVersion(int* major, int* minor) {
  return KLAP_REAL(nvrtcVersion, major, minor);
}

KLAP_STAND_IN const char* nvrtcGetErrorString(nvrtcResult result) {
  static auto* const found = real(&nvrtcGetErrorString, "nvrtcGetErrorString");
  return found == nullptr ? "there is no NVRTC at " KLAP_REAL_NVRTC : found(result);
}

KLAP_STAND_IN nvrtcResult nvrtcCreateProgram(nvrtcProgram* out, const char* source, const char* name,
                                             int count, const char* const* headers,
                                             const char* const* names) {
  auto* const program = new Program;
  std::vector<std::string> kept{source, name == nullptr ? "" : name};
  append(program->request, library_identity().c_str());
  append(program->request, source);
  append(program->request, name);
  for (int i = 0; i < count; ++i) {
    append(program->request, names[i]);
    append(program->request, headers[i]);
    kept.insert(kept.end(), {headers[i], names[i]});
  }
  program->create = [kept = std::move(kept)](nvrtcProgram* made) {
    std::vector<const char*> texts, their_names;
    for (size_t i = 2; i < kept.size(); i += 2) {
      texts.push_back(kept[i].c_str());
      their_names.push_back(kept[i + 1].c_str());
    }
    return KLAP_REAL(nvrtcCreateProgram, made, kept[0].c_str(), kept[1].c_str(),
                     static_cast<int>(texts.size()), texts.data(), their_names.data());
  };
  *out = reinterpret_cast<nvrtcProgram>(program);
  return NVRTC_SUCCESS;
}

KLAP_STAND_IN nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  Program* const ours = &known(*program);
  nvrtcResult result = NVRTC_SUCCESS;
  if (ours->real != nullptr) result = KLAP_REAL(nvrtcDestroyProgram, &ours->real);
  delete ours;
  *program = nullptr;
  return result;
}

KLAP_STAND_IN nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  Program& ours = known(program);
  std::string request = ours.request;
  for (int i = 0; i < count; ++i) append(request, options[i]);
  append(request, "PTX");
  ours.ptx = look_up(request);
  return ours.ptx.empty() ? compile_really(ours, request, count, options) : NVRTC_SUCCESS;
}

KLAP_STAND_IN nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) {
  const Program& ours = known(program);
  if (ours.ptx.empty()) return KLAP_REAL(nvrtcGetPTXSize, ours.real, size);
  *size = ours.ptx.size();
  return NVRTC_SUCCESS;
}

KLAP_STAND_IN nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  const Program& ours = known(program);
  if (ours.ptx.empty()) return KLAP_REAL(nvrtcGetPTX, ours.real, ptx);
  std::memcpy(ptx, ours.ptx.data(), ours.ptx.size());
  return NVRTC_SUCCESS;
}

KLAP_STAND_IN nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  const Program& ours = known(program);
  if (ours.ptx.empty()) return KLAP_REAL(nvrtcGetProgramLogSize, ours.real, size);
  *size = 1;
  return NVRTC_SUCCESS;
}

KLAP_STAND_IN nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  const Program& ours = known(program);
  if (ours.ptx.empty()) return KLAP_REAL(nvrtcGetProgramLog, ours.real, log);
  *log = '\0';
  return NVRTC_SUCCESS;
}
