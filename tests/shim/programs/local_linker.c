/* Opens libraries that are linked against nvJitLink, out of everybody else's sight, and lets each link.
 * Arguments: PTX, the device runtime, where the result goes, the libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int open_and_link(const char* file, char** arguments) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*link_file)(const char*, const char*, const char*) =
      (void (*)(const char*, const char*, const char*))dlsym(library, "link_file");
  if (link_file == NULL) return 1;
  link_file(arguments[0], arguments[1], arguments[2]);
  printf("behind %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  /* The plain names, which the library's own handle knows. */
  printf("plain %d\n", dlsym(library, "nvJitLinkCreate") != NULL);
  printf("others %d\n", dlsym(library, "nvJitLinkVersion") != NULL);
  return 0;
}

int main(int argc, char** argv) {
  printf("before %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  for (int i = 4; i < argc; ++i) {
    if (open_and_link(argv[i], argv + 1) != 0) return 1;
  }
  return argc < 5;
}
