/* A library with a linker of its own, as one has that is linked with nvJitLink's archive: the names are
 * exported, and its own calls of them go through the dynamic linker. */
#include <stdio.h>

__attribute__((visibility("default"))) int __nvJitLinkCreate_13_0(void** link, unsigned count,
                                                                  const char* const* options) {
  (void)options;
  *link = link;
  return 40 + (int)count;
}
__attribute__((visibility("default"))) int __nvJitLinkDestroy_13_0(void** link) {
  *link = 0;
  return 43;
}

void link_file(const char* ptx, const char* device_runtime, const char* result) {
  (void)ptx, (void)device_runtime, (void)result;
  void* link = 0;
  const char* const options[] = {"-arch=sm_90", "-lto"};
  printf("create %d\n", __nvJitLinkCreate_13_0(&link, 2, options));
  printf("destroy %d\n", __nvJitLinkDestroy_13_0(&link));
}

/* Called by another library, and jumps on. */
__attribute__((optimize("O2"))) int create_link(void** link) { return __nvJitLinkCreate_13_0(link, 2, 0); }
