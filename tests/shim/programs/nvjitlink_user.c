/* A library that is linked against nvJitLink, as CUDA's own are: makes a link of one PTX file and prints what
 * each call returned. */
#include <nvJitLink.h>
#include <stdio.h>
#include <stdlib.h>

void link_file(const char* file) {
  const char* options[] = {"-arch=sm_90"};
  nvJitLinkHandle handle = NULL;
  size_t bytes = 0;
  int results[4];
  results[0] = nvJitLinkCreate(&handle, 1, options);
  results[1] = nvJitLinkAddFile(handle, NVJITLINK_INPUT_PTX, file);
  results[2] = nvJitLinkComplete(handle);
  results[3] = nvJitLinkGetLinkedCubinSize(handle, &bytes);
  printf("results %d %d %d %d\n", results[0], results[1], results[2], results[3]);
  void* cubin = malloc(bytes);
  int result = nvJitLinkGetLinkedCubin(handle, cubin);
  printf("last %d %d %d\n", result, nvJitLinkDestroy(&handle), handle == NULL);
  free(cubin);
}
