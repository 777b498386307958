/* Reads kernel names and parameter layouts out of linked cubins, and tells the other images apart. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { EIATTR_KPARAM_INFO = 0x17, EIFMT_SVAL = 4 };

/* .nv.info.KERNEL: records {u8 format, u8 attribute, u16 value or size}, then the payload of that size. */
static void read_params(const unsigned char* info, size_t bytes, struct fake_kernel_info* kernel) {
  kernel->known_params = 1;
  for (size_t at = 0; at + 4 <= bytes;) {
    unsigned format = info[at], attribute = info[at + 1], size = info[at + 2] | info[at + 3] << 8;
    const unsigned char* payload = info + at + 4;
    at += 4 + (format == EIFMT_SVAL ? size : 0);
    if (format != EIFMT_SVAL || attribute != EIATTR_KPARAM_INFO || size != 12 || at > bytes) continue;
    unsigned ordinal = payload[4] | payload[5] << 8;
    uint32_t flags;
    memcpy(&flags, payload + 8, sizeof flags);
    if (ordinal >= FAKE_MAX_PARAMS) abort();
    kernel->param_offset[ordinal] = payload[6] | (unsigned)payload[7] << 8;
    kernel->param_bytes[ordinal] = flags >> 18;
    if (kernel->param_count <= ordinal) kernel->param_count = ordinal + 1;
  }
}

struct fake_kernel_info* fake_find_kernel(struct fake_image* image, const char* name) {
  for (unsigned i = 0; i < image->kernel_count; ++i) {
    if (strcmp(image->kernels[i].name, name) == 0) return &image->kernels[i];
  }
  return NULL;
}

static CUresult read_cubin(const unsigned char* image, struct fake_image* result) {
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)image;
  if (header->e_type != ET_EXEC) return CUDA_ERROR_INVALID_IMAGE; /* not linked */
  const Elf64_Shdr* sections = (const Elf64_Shdr*)(image + header->e_shoff);
  const char* names = (const char*)image + sections[header->e_shstrndx].sh_offset;
  result->kernels = calloc(header->e_shnum, sizeof *result->kernels);
  /* Every function has a .text section; kernels are those with parameters described in .nv.info. */
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const char* name = names + sections[i].sh_name;
    if (strncmp(name, ".nv.info.", 9) != 0) continue;
    struct fake_kernel_info* kernel = &result->kernels[result->kernel_count++];
    snprintf(kernel->name, sizeof kernel->name, "%s", name + 9);
    read_params(image + sections[i].sh_offset, sections[i].sh_size, kernel);
  }
  return CUDA_SUCCESS;
}

CUresult fake_read_image(const void* image, struct fake_image* result) {
  uint32_t magic;
  memset(result, 0, sizeof *result);
  memcpy(&magic, image, sizeof magic);
  if (memcmp(image, ELFMAG, SELFMAG) == 0) return read_cubin(image, result);
  result->any_name = 1;
  if (magic == 0x466243B1u || magic == 0xBA55ED50u) return CUDA_SUCCESS;
  if (!strstr(image, ".version")) return CUDA_ERROR_INVALID_IMAGE;
  /* The driver does not link the device runtime to PTX. */
  return strstr(image, "LaunchDevice") ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}
