// A driver API program that links driver_module.cu itself, with the device runtime, and loads the result in
// every way: as it lies in the linker's memory, as a copy behind the link's end, and from a file. The inputs
// are PTX, from memory and from a file, a fatbin, and machine code and PTX together in two units.
//
// Natively all of it is right. Preloaded, the module is made from the inputs of the link. The harness counts
// the children, which tells that every load was rewritten.
#include "linked_module.h"

namespace {

struct Linker {
  decltype(&cuLinkCreate) create;
  decltype(&cuLinkAddData) add_data;
  decltype(&cuLinkAddFile) add_file;
  decltype(&cuLinkComplete) complete;
  decltype(&cuLinkDestroy) destroy;
};
Linker linker;

void open_linker() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  look_up(get, "cuLinkCreate", linker.create);
  look_up(get, "cuLinkAddData", linker.add_data);
  look_up(get, "cuLinkAddFile", linker.add_file);
  look_up(get, "cuLinkComplete", linker.complete);
  look_up(get, "cuLinkDestroy", linker.destroy);
}

// The first versions of the functions, which have their plain names; CuPy takes them.
void open_first_linker() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  linker.create = reinterpret_cast<decltype(linker.create)>(dlsym(library, "cuLinkCreate"));
  linker.add_data = reinterpret_cast<decltype(linker.add_data)>(dlsym(library, "cuLinkAddData"));
  linker.add_file = reinterpret_cast<decltype(linker.add_file)>(dlsym(library, "cuLinkAddFile"));
}

// One link with a log, as programs have it.
class Link {
 public:
  Link() {
    step(linker.create(2, names_, values_, &state_), "cuLinkCreate");
    add_file(CU_JIT_INPUT_LIBRARY, device_runtime());
  }
  ~Link() { end(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void add_data(CUjitInputType type, std::string bytes, const char* name) {
    const size_t size = type == CU_JIT_INPUT_PTX ? bytes.size() + 1 : bytes.size();
    step(linker.add_data(state_, type, bytes.data(), size, name, 0, nullptr, nullptr), "cuLinkAddData");
  }
  void add_file(CUjitInputType type, const std::string& path) {
    step(linker.add_file(state_, type, path.c_str(), 0, nullptr, nullptr), "cuLinkAddFile");
  }
  // The result, which ends with the link.
  const void* complete() {
    void* image = nullptr;
    step(linker.complete(state_, &image, &bytes_), "cuLinkComplete");
    return image;
  }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  void end() {
    if (state_ != nullptr) check(linker.destroy(state_), "cuLinkDestroy");
    state_ = nullptr;
  }

 private:
  void step(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) give_up(std::string(what) + ": error " + std::to_string(result) + " " + log_);
  }

  CUlinkState state_ = nullptr;
  size_t bytes_ = 0;
  char log_[2048] = "";
  // The driver writes to the values, such as how long the log is, until the link ends.
  CUjit_option names_[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values_[2] = {log_, reinterpret_cast<void*>(sizeof log_)};
};

// Loads the result in every way.
void test_link(const char* what, Link& link) {
  const auto* const image = static_cast<const char*>(link.complete());
  CUmodule module = nullptr;
  CUresult result = driver.module_load_data(&module, image);
  test_module("cuModuleLoadData", what, result, module);
  test_library("cuLibraryLoadData", what, image);
  const std::string copy(image, link.bytes());
  link.end();
  module = nullptr;
  result = driver.module_load_data_ex(&module, copy.c_str(), 0, nullptr, nullptr);
  test_module("cuModuleLoadDataEx of a copy", what, result, module);

  char file[] = "/tmp/program_links.XXXXXX";
  const int opened = mkstemp(file);
  if (opened < 0 || write(opened, copy.data(), copy.size()) != static_cast<ssize_t>(copy.size()))
    give_up("cannot write a file");
  close(opened);
  module = nullptr;
  result = driver.module_load(&module, file);
  test_module("cuModuleLoad", what, result, module);
  unlink(file);
}

}  // namespace

int main(int, char** argv) {
  program_name = "program_links";
  open_driver();
  open_linker();
  const std::string folder = folder_of(argv[0]);
  const std::string ptx = folder + "/driver_module.ptx", fatbin = folder + "/driver_module.fatbin";
  {
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, read_file(ptx), "module");
    test_link("PTX from memory", link);
  }
  {
    Link link;
    link.add_file(CU_JIT_INPUT_PTX, ptx);
    test_link("PTX from a file", link);
  }
  {
    Link link;
    link.add_data(CU_JIT_INPUT_FATBINARY, read_file(fatbin), nullptr);
    test_link("a fatbin", link);
  }
  {
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, read_file(folder + "/driver_child.ptx"), "child");
    link.add_file(CU_JIT_INPUT_FATBINARY, folder + "/driver_parent.fatbin");
    test_link("two units", link);
  }
  open_first_linker();
  {
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, read_file(ptx), "module");
    test_link("the linker's functions by their plain names", link);
  }
  return finish();
}
