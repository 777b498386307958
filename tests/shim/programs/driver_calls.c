#include "driver_calls.h"

#include <dlfcn.h>

struct driver_calls cu;
static void* library;

void close_driver(void) { REQUIRE(dlclose(library) == 0); }

void open_driver(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library);
  CUdriverProcAddressQueryResult status;
  *(void**)&cu.get_proc_address = dlsym(library, "cuGetProcAddress_v2");
  REQUIRE(cu.get_proc_address);
#define X(member, name, version, flags, signature) \
  CHECK(cu.get_proc_address(name, (void**)&cu.member, version, flags, &status));
  DRIVER_CALLS(X)
#undef X
  CUcontext context;
  CHECK(cu.init(0));
  CHECK(cu.retain(&context, 0));
  CHECK(cu.set_current(context));
}
