// A driver API program that links driver_module.cu with nvJitLink, the toolkit's linker, and loads the
// result. It reaches nvJitLink in both ways: linked against it, and by the plain names that dlsym finds. The
// inputs are PTX, a fatbin, machine code by NVRTC, and code for link-time optimisation.
//
// Natively all of it is right on a GPU. Preloaded, the module is made from the inputs, which the number of
// children tells.
#include <nvJitLink.h>
#include <nvrtc.h>

#include "driver_link.h"
#include "linked_module.h"

namespace {

// The functions by plain names, or those that the header calls.
struct Linker {
  const char* how;
  nvJitLinkResult (*create)(nvJitLinkHandle*, uint32_t, const char**);
  nvJitLinkResult (*destroy)(nvJitLinkHandle*);
  nvJitLinkResult (*add_data)(nvJitLinkHandle, nvJitLinkInputType, const void*, size_t, const char*);
  nvJitLinkResult (*add_file)(nvJitLinkHandle, nvJitLinkInputType, const char*);
  nvJitLinkResult (*complete)(nvJitLinkHandle);
  nvJitLinkResult (*cubin_size)(nvJitLinkHandle, size_t*);
  nvJitLinkResult (*cubin)(nvJitLinkHandle, void*);
};

template <class F>
void look_up_plain(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) give_up(std::string("nvJitLink has no ") + name);
}

Linker opened() {
  void* const library = dlopen("libnvJitLink.so.13", RTLD_NOW);
  if (library == nullptr) give_up(dlerror());
  Linker linker{};
  linker.how = "opened";
  look_up_plain(library, "nvJitLinkCreate", linker.create);
  look_up_plain(library, "nvJitLinkDestroy", linker.destroy);
  look_up_plain(library, "nvJitLinkAddData", linker.add_data);
  look_up_plain(library, "nvJitLinkAddFile", linker.add_file);
  look_up_plain(library, "nvJitLinkComplete", linker.complete);
  look_up_plain(library, "nvJitLinkGetLinkedCubinSize", linker.cubin_size);
  look_up_plain(library, "nvJitLinkGetLinkedCubin", linker.cubin);
  return linker;
}

Linker linked() {
  return {"linked",
          nvJitLinkCreate,
          nvJitLinkDestroy,
          nvJitLinkAddData,
          nvJitLinkAddFile,
          nvJitLinkComplete,
          nvJitLinkGetLinkedCubinSize,
          nvJitLinkGetLinkedCubin};
}

// The module's source, compiled to relocatable machine code by an NVRTC that the program is linked against,
// or that it opens, as Python's packages do.
std::string compiled(const std::string& source) {
#ifdef LINKED_NVRTC
  const auto create = nvrtcCreateProgram;
  const auto compile = nvrtcCompileProgram;
  const auto get_size = nvrtcGetCUBINSize;
  const auto get = nvrtcGetCUBIN;
#else
  void* const library = dlopen("libnvrtc.so.13", RTLD_NOW);
  if (library == nullptr) give_up(dlerror());
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetCUBINSize) get_size = nullptr;
  decltype(&nvrtcGetCUBIN) get = nullptr;
  look_up_plain(library, "nvrtcCreateProgram", create);
  look_up_plain(library, "nvrtcCompileProgram", compile);
  look_up_plain(library, "nvrtcGetCUBINSize", get_size);
  look_up_plain(library, "nvrtcGetCUBIN", get);
#endif
  const char* options[] = {KLAP_ARCH_OPTION, "-rdc=true"};
  nvrtcProgram program = nullptr;
  size_t bytes = 0;
  if (create(&program, source.c_str(), "module.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS ||
      compile(program, 2, options) != NVRTC_SUCCESS || get_size(program, &bytes) != NVRTC_SUCCESS) {
    give_up("NVRTC does not compile the module");
  }
  std::string cubin(bytes, '\0');
  if (get(program, cubin.data()) != NVRTC_SUCCESS) give_up("NVRTC has no machine code");
  return cubin;
}

void require(nvJitLinkResult result, const char* what) {
  if (result != NVJITLINK_SUCCESS)
    give_up(std::string(what) + ": nvJitLink result " + std::to_string(result));
}

std::string link(const Linker& linker, nvJitLinkInputType type, const std::string& code, bool lto) {
  const char* options[] = {KLAP_ARCH_OPTION, "-lto"};
  nvJitLinkHandle handle = nullptr;
  require(linker.create(&handle, lto ? 2 : 1, options), "create");
  const bool is_text = type == NVJITLINK_INPUT_PTX;
  require(linker.add_data(handle, type, code.c_str(), code.size() + (is_text ? 1 : 0), "module"), "add data");
  require(linker.add_file(handle, NVJITLINK_INPUT_LIBRARY, device_runtime()), "add the device runtime");
  require(linker.complete(handle), "complete");
  size_t bytes = 0;
  require(linker.cubin_size(handle, &bytes), "size");
  std::string cubin(bytes, '\0');
  require(linker.cubin(handle, cubin.data()), "result");
  require(linker.destroy(&handle), "destroy");
  return cubin;
}

void test(const Linker& linker, const char* what, nvJitLinkInputType type, const std::string& code,
          bool lto = false) {
  const std::string cubin = link(linker, type, code, lto);
  const std::string how = std::string(linker.how) + ", " + what;
  CUmodule module = nullptr;
  const CUresult result = driver.module_load_data(&module, cubin.data());
  test_module("cuModuleLoadData", how.c_str(), result, module);
  test_library("cuLibraryLoadData", how.c_str(), cubin.data());
}

}  // namespace

int main(int, char** argv) {
  program_name = "program_nvjitlink";
  open_driver();
  const std::string folder = folder_of(argv[0]);
  const std::string machine_code = compiled(read_file(folder + "/driver_module.cu"));
  for (const Linker& linker : {linked(), opened()}) {
    test(linker, "PTX", NVJITLINK_INPUT_PTX, read_file(folder + "/driver_module.ptx"));
    test(linker, "a fatbin", NVJITLINK_INPUT_FATBIN, read_file(folder + "/driver_module.fatbin"));
    test(linker, "any kind", NVJITLINK_INPUT_ANY, read_file(folder + "/driver_module.ptx"));
    test(linker, "machine code", NVJITLINK_INPUT_CUBIN, machine_code);
    test(linker, "LTO-IR", NVJITLINK_INPUT_FATBIN, read_file(folder + "/driver_module_lto.fatbin"), true);
  }
  return finish();
}
