// A driver API program that links driver_module.cu itself, with the device runtime, and loads the result in
// every way: as it lies in the linker's memory, as a copy behind the link's end, and from a file. The inputs
// are PTX, from memory and from a file, a fatbin, and machine code and PTX together in two units.
//
// Natively all of it is right. Preloaded, the module is made from the inputs of the link. The harness counts
// the children, which tells that every load was rewritten.
#include "driver_link.h"
#include "linked_module.h"

namespace {

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
