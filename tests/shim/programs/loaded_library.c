/* A library whose constructor uses CUDA, as objects of static storage in a plug-in do: the thread holds the
 * loader's lock meanwhile. */
#include <stddef.h>

extern void (*loading_library)(void);

__attribute__((constructor)) static void use_cuda(void) {
  if (loading_library != NULL) loading_library();
}
