/* Opens a library that is linked against nvJitLink, out of everybody else's sight, and lets it link.
 * Arguments: the library, PTX, the device runtime, where the result goes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  printf("before %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*link_file)(const char*, const char*, const char*) =
      (void (*)(const char*, const char*, const char*))dlsym(library, "link_file");
  if (link_file == NULL) return 1;
  link_file(argv[2], argv[3], argv[4]);
  printf("behind %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  /* The plain names, which the library's own handle knows. */
  printf("plain %d\n", dlsym(library, "nvJitLinkCreate") != NULL);
  printf("others %d\n", dlsym(library, "nvJitLinkVersion") != NULL);
  return 0;
}
