/* Opens a library that is linked against nvJitLink, out of everybody else's sight, and lets it link a file.
 * Arguments: the library, the file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  printf("before %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*link_file)(const char*) = (void (*)(const char*))dlsym(library, "link_file");
  if (link_file == NULL) return 1;
  link_file(argv[2]);
  printf("behind %d\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") != NULL);
  /* The plain name, which the library's own handle knows. */
  printf("plain %d\n", dlsym(library, "nvJitLinkCreate") != NULL);
  printf("others %d\n", dlsym(library, "nvJitLinkVersion") != NULL);
  return 0;
}
