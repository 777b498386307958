/* A library that gets at another one's linker by its handle alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void link_file(const char* ptx, const char* device_runtime, const char* result) {
  (void)ptx, (void)device_runtime, (void)result;
  Dl_info info;
  char file[4096];
  if (dladdr((void*)link_file, &info) == 0) return;
  strcpy(file, info.dli_fname);
  strcpy(strrchr(file, '/'), "/libown_linker.so");
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  int (*create_link)(void**) = library != NULL ? (int (*)(void**))dlsym(library, "create_link") : NULL;
  void* link = NULL;
  printf("jumped %d\n", create_link != NULL ? create_link(&link) : -1);
}
