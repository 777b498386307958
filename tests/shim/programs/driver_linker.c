/* Links PTX by the driver and loads the result as a module: driver_linker FILE. It says what the calls gave.
 */
#include "driver_calls.h"

static char ptx[1 << 20];

int main(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  REQUIRE(file);
  const size_t bytes = fread(ptx, 1, sizeof ptx - 1, file);
  fclose(file);
  open_driver();
  CUlinkState link;
  CHECK(cu.link_create(0, NULL, NULL, &link));
  const CUresult added = cu.link_add_data(link, CU_JIT_INPUT_PTX, ptx, bytes + 1, "input", 0, NULL, NULL);
  printf("added %d\n", (int)added);
  if (added != CUDA_SUCCESS) return 0;
  void* image;
  size_t image_bytes;
  CHECK(cu.link_complete(link, &image, &image_bytes));
  printf("image %p\n", image);
  CUmodule module;
  printf("loaded %d\n", (int)cu.module_load_data(&module, image));
  CHECK(cu.link_destroy(link));
  return 0;
}
