/* A library that is linked against nvJitLink, as CUDA's own are: links PTX with the device runtime, writes
 * the result to a file, and prints what each call returned. */
#include <nvJitLink.h>
#include <stdio.h>
#include <stdlib.h>

void link_file(const char* ptx, const char* device_runtime, const char* result) {
  const char* options[] = {"-arch=sm_90"};
  nvJitLinkHandle handle = NULL;
  size_t bytes = 0;
  printf("create %d\n", nvJitLinkCreate(&handle, 1, options));
  printf("ptx %d\n", nvJitLinkAddFile(handle, NVJITLINK_INPUT_PTX, ptx));
  printf("runtime %d\n", nvJitLinkAddFile(handle, NVJITLINK_INPUT_LIBRARY, device_runtime));
  printf("complete %d\n", nvJitLinkComplete(handle));
  printf("size %d\n", nvJitLinkGetLinkedCubinSize(handle, &bytes));
  char* cubin = malloc(bytes);
  printf("cubin %d\n", nvJitLinkGetLinkedCubin(handle, cubin));
  FILE* file = fopen(result, "wb");
  printf("written %d\n", file != NULL && fwrite(cubin, 1, bytes, file) == bytes);
  if (file != NULL) fclose(file);
  free(cubin);
  printf("destroy %d %d\n", nvJitLinkDestroy(&handle), handle == NULL);
}
