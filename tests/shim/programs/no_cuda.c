/* A process without CUDA: prints the files it has mapped. It uses dlsym, so that the shim's own has run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  char line[4096];
  if (!dlsym(RTLD_DEFAULT, "printf") || dlsym(RTLD_DEFAULT, "cuda_is_not_here")) return 1;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) fputs(line, stdout);
  return 0;
}
