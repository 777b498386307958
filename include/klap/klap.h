/* klap: the rewriter of klap_jit for programs that load their device code themselves.
 *
 * The preload library finds device code on its way to the driver. A program that calls cuModuleLoadData and
 * cuLaunchKernel itself can instead hand its image to this library, load what comes back, and launch the
 * variants where it wants children aggregated. Nothing here calls the CUDA driver or needs a GPU; NVRTC and
 * nvJitLink of the CUDA toolkit are opened by the first klap_rewrite that has something to rewrite. Nothing
 * is printed.
 *
 * The interface is plain C. No exception leaves it. Every function may be called from any thread; one
 * klap_module is immutable and may be read by several threads at once.
 *
 * To launch variant V of a module that was loaded from klap_module_image():
 *
 * First, once per stream, the queues, one for each launch site of the parent (klap_module_variant_queue()
 * describes those behind the first). For each, allocate klap_queue_bytes(V, N) bytes of device memory, N at
 * least the threads of the parent's grid, and copy what klap_queue_header() gives to its beginning. If
 * V.group_blocks is not 0, everything behind that must be zero. Launches in one stream may share a queue that
 * is made for the larger records and grids and, where some have groups, the smallest of them; launches in
 * different streams may not share any.
 *
 * Second, launch V.parent_variant with the grid, block and shared memory that the parent would get, and with
 * the parent's own parameters plus one for each queue: its address, 8 bytes at V.queue_param_offset of a
 * parameter buffer, or behind the last element of a parameter array.
 *
 * Third, with KLAP_LAUNCHER_HOST, launch V.consumer right behind it in the same stream, in blocks of
 * V.consumer_block_threads threads, as many as fit the device at once, without shared memory, and with one
 * parameter: the queue's address; then the other queues' consumers in the same way, in the order of the
 * queues. The queues are empty again afterwards. With KLAP_LAUNCHER_DEVICE there is no third step: threads of
 * the parent's grid launch the consumer, and nobody else may.
 *
 * Originals stay in the image under their names; launching one runs it as it was written.
 */
#ifndef KLAP_KLAP_H
#define KLAP_KLAP_H

#include <stddef.h>
#include <stdint.h>

#include "klap/version.h"

#if defined(__GNUC__)
#define KLAP_API __attribute__((visibility("default")))
#else
#define KLAP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when functions or fields are added. Existing ones are never changed or taken away. */
#define KLAP_API_VERSION 2

typedef enum klap_status {
  KLAP_OK = 0,
  KLAP_ERROR_ARGUMENT = 1,    /* a parameter of the call is wrong */
  KLAP_ERROR_IMAGE = 2,       /* the image is damaged or not device code */
  KLAP_ERROR_UNSUPPORTED = 3, /* well-formed, but this version cannot treat it */
  KLAP_ERROR_SETTINGS = 4,    /* klap_options::settings is wrong; the text names line and key */
  KLAP_ERROR_TOOLCHAIN = 5,   /* NVRTC or nvJitLink is missing, too old, or refuses its input */
  KLAP_ERROR_BUILD = 6,       /* the rewritten image could not be linked */
  KLAP_ERROR_IO = 7,          /* a file could not be read */
  KLAP_ERROR_MEMORY = 8,      /* out of host memory */
  KLAP_ERROR_INTERNAL = 9     /* a broken invariant of this library */
} klap_status;

/* Bits of klap_options::flags. */
#define KLAP_EXPLAIN_ONLY 1u       /* decide, but build nothing: neither NVRTC nor nvJitLink is opened */
#define KLAP_IGNORE_ENVIRONMENT 2u /* no KLAP_* variable is read */

/* Zero everything, then set struct_bytes to sizeof(klap_options): fields that a later version adds mean their
 * default when zero, and a library older than the program refuses a struct with fields that it does not know
 * and that are not zero. */
typedef struct klap_options {
  size_t struct_bytes;
  uint32_t compute_capability; /* of the device that will load the image: 90 for 9.0. Required. */
  uint32_t flags;
  /* Settings in the format of the config file (TOML text), in its place: KLAP_CONFIG is then not read. An
   * error in them fails the call. NULL: KLAP_CONFIG's file. The environment's KLAP_GRANULARITY,
   * KLAP_LAUNCHER, KLAP_MULTIBLOCK and KLAP_ORDERING win over either, as in the preload library. With
   * KLAP_DISABLE=1 nothing is rewritten. pool_bytes, buffer and double_buffer have no meaning here: the
   * caller allocates. */
  const char* settings;
  /* For bare PTX: the options for the driver's compiler, in ptxas' spelling ("-maxrregcount=64"). May be
   * NULL. Images with machine code carry their own. */
  const char* ptxas_options;
} klap_options;

/* The result of a rewrite: image, variants and explanation. */
typedef struct klap_module klap_module;

typedef enum klap_launcher {
  KLAP_LAUNCHER_HOST = 0,  /* the caller launches the consumer behind the parent */
  KLAP_LAUNCHER_DEVICE = 1 /* the last thread of the parent's grid, or of each group, does */
} klap_launcher;

/* How to launch one rewritten parent, and one of its queues: it has one for each of its launch sites. Set
 * struct_bytes before the call. Strings belong to the module. */
typedef struct klap_variant {
  size_t struct_bytes;
  const char* parent;              /* the original kernel, mangled */
  const char* parent_variant;      /* records its launches; takes one more parameter for each queue */
  const char* child;               /* the kernel whose launches are recorded in this queue, mangled */
  const char* consumer;            /* runs all recorded children; one parameter, the queue */
  uint32_t launcher;               /* a klap_launcher */
  uint32_t parent_param_count;     /* parameters of the original */
  uint32_t parent_param_bytes;     /* end of its last one in a parameter buffer, in bytes */
  uint32_t queue_param_offset;     /* of the first added parameter in a parameter buffer, in bytes */
  uint32_t record_bytes;           /* of one record in the queue */
  uint32_t consumer_block_threads; /* threads in a block of the consumer */
  uint32_t child_block_threads;    /* threads in a block of the child as the program launches it; the most if
                                      that differs */
  /* Since version 2. */
  const char* granularity; /* "grid", "block", "multiblock" */
  uint32_t group_blocks;   /* blocks of the parent that launch as one: a group; 0: all blocks of the grid */
  uint32_t queue_count;    /* queues of the parent, at least 1 */
  uint32_t child_shared_bytes; /* dynamic shared memory of that launch, the most if that differs; give the
                                  consumer as much, and let it have that by its attribute. The child's own
                                  limit must be CUDA's default then */
} klap_variant;

/* The KLAP_API_VERSION and KLAP_VERSION that the library was built with. The text is static. */
KLAP_API uint32_t klap_api_version(void);
KLAP_API const char* klap_version(void);

/* Rewrites an image: PTX text, a fatbin, a cubin, or a fatbin wrapper of a running program, whose pointers
 * are followed. `image_bytes` is its length; 0 if not known, for PTX that ends in NUL and for images that
 * state their size. Nothing of the image is kept.
 *
 * On KLAP_OK *module receives a module that the caller frees with klap_module_free(), also when nothing could
 * be rewritten: its image is then empty and the program's own is to be used. Otherwise *module is NULL. */
KLAP_API klap_status klap_rewrite(const void* image, size_t image_bytes, const klap_options* options,
                                  klap_module** module);

/* Rewrites a file: PTX, fatbin, cubin, object file, executable or shared object. If it has several images,
 * the first that launches kernels is taken. */
KLAP_API klap_status klap_rewrite_file(const char* path, const klap_options* options, klap_module** module);

/* Frees the module and all that was got from it. NULL is allowed. */
KLAP_API void klap_module_free(klap_module* module);

/* The linked image, to be given to cuModuleLoadData or cuLibraryLoadData, and its length in bytes. NULL and 0
 * when nothing was rewritten or only an explanation was asked for. Belongs to the module. */
KLAP_API const void* klap_module_image(const klap_module* module, size_t* bytes);

/* The number of rewritten parents, and the one at `index` (from 0). At most variant->struct_bytes bytes are
 * written; fields that this library does not know become zero. Fails with KLAP_ERROR_ARGUMENT only, also
 * where the variant has groups and the struct no room to say so. */
KLAP_API size_t klap_module_variant_count(const klap_module* module);
KLAP_API klap_status klap_module_variant(const klap_module* module, size_t index, klap_variant* variant);

/* Describes queue `queue` (from 0) of the parent; klap_module_variant() describes the first one. */
KLAP_API klap_status klap_module_variant_queue(const klap_module* module, size_t index, size_t queue,
                                               klap_variant* variant);

/* The outcome for each launch site, as JSON (UTF-8): {"sites": [...], "problems": [...]}. Each site has unit,
 * line, column, source, parent, child, verdict ("rewritten" or "left"), reason, detail, facts and notes, as
 * printed by `klap-ptx explain --json`; problems are those of the environment's settings. Belongs to the
 * module. */
KLAP_API const char* klap_module_explain(const klap_module* module);

/* Bytes of device memory for a queue of `records` records of this variant, aligned as cuMemAlloc aligns. At
 * most 16,777,215 records; 0 if the arguments are wrong. */
KLAP_API uint64_t klap_queue_bytes(const klap_variant* variant, uint64_t records);

/* Writes the head of an empty queue at `device_address` into `header`, which has room for `header_bytes`
 * bytes. Returns the bytes written, to be copied to the beginning of the queue; 0 if the arguments are wrong
 * or the room is too small (KLAP_QUEUE_HEADER_BYTES is enough). */
#define KLAP_QUEUE_HEADER_BYTES 256
KLAP_API size_t klap_queue_header(const klap_variant* variant, uint64_t records, uint64_t device_address,
                                  void* header, size_t header_bytes);

/* Why the calling thread's last klap_rewrite, klap_rewrite_file or klap_module_variant failed; "" if it did
 * not. Valid until the thread's next call of one of these. */
KLAP_API const char* klap_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
