#include "runtime/queues/host_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/driver.h"

namespace klap::runtime {

size_t host_page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

CUresult map_host_page(HostPage& page) {
  void* const words =
      mmap(nullptr, host_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  page.words = static_cast<volatile uint64_t*>(words);
  const CUresult result = driver()->mem_host_register(words, host_page_bytes(), CU_MEMHOSTREGISTER_DEVICEMAP);
  return result == CUDA_SUCCESS ? driver()->mem_host_get_device_pointer(&page.in_device, words, 0) : result;
}

void unmap_host_page(void* page) {
  if (page != nullptr) munmap(page, host_page_bytes());
}

}  // namespace klap::runtime
