// Makes what the preload library asks of the system fail: its allocations, its file operations, and its own
// calls of the driver. Preloaded behind it; whatever the program, the driver or NVRTC ask for goes on as it
// is, told apart by the return address.
//
//   KLAP_TEST_FAIL_KIND   "memory", "file" or "driver"
//   KLAP_TEST_FAIL_AT     the one request of that kind that fails, counted from 1
//   KLAP_TEST_FAIL_FROM   likewise, and all that come later
//   KLAP_TEST_FAIL_REPORT receives at exit how many requests there were and how many failed
//
// The library's own driver calls are those that it makes where it cannot be cancelled: the calls of the
// program that it only passes on are made outside.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/driver.h"

using klap::runtime::CountFunctions;
using klap::runtime::CountKernels;
using klap::runtime::EmulatorCounts;
using klap::runtime::FuncGetName;
using klap::runtime::FuncLoad;
using klap::runtime::InstantiateGraph;
using klap::runtime::KernelGetName;
using klap::runtime::ListFunctions;
using klap::runtime::ListKernels;

#define VISIBLE extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { kMemory, kFile, kDriver, kKinds };
constexpr const char* kNames[kKinds] = {"memory", "file", "driver"};

struct Counter {
  std::atomic<unsigned long> requests{0}, failed{0};
};
constinit Counter counters[kKinds];
constinit std::atomic<unsigned long> launches{0};  // by the library in place of the program

uintptr_t library_begin = 0, library_end = 0;
int failing_kind = -1;
unsigned long fail_at = 0, fail_from = 0;

bool is_of_library(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return address >= library_begin && address < library_end;
}

bool count(Kind kind) {
  const unsigned long number = counters[kind].requests.fetch_add(1) + 1;
  if (kind != failing_kind) return false;
  const bool fails = number == fail_at || (fail_from != 0 && number >= fail_from);
  if (fails) counters[kind].failed.fetch_add(1);
  return fails;
}

bool fails(Kind kind, const void* caller) { return is_of_library(caller) && count(kind); }

int find_library(dl_phdr_info* object, size_t, void*) {
  if (std::strstr(object->dlpi_name, "libklap_jit") == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    library_begin = object->dlpi_addr + segment.p_vaddr;
    library_end = library_begin + segment.p_memsz;
  }
  return 1;
}

unsigned long number_in(const char* variable) {
  const char* const text = getenv(variable);
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

__attribute__((constructor)) void begin() {
  const char* const kind = getenv("KLAP_TEST_FAIL_KIND");
  for (int i = 0; kind != nullptr && i < kKinds; ++i) {
    if (std::strcmp(kind, kNames[i]) == 0) failing_kind = i;
  }
  fail_at = number_in("KLAP_TEST_FAIL_AT");
  fail_from = number_in("KLAP_TEST_FAIL_FROM");
  dl_iterate_phdr(find_library, nullptr);
}

__attribute__((destructor)) void end() {
  const char* const name = getenv("KLAP_TEST_FAIL_REPORT");
  if (name == nullptr) return;
  FILE* const report = std::fopen(name, "w");
  if (report == nullptr) return;
  for (int i = 0; i < kKinds; ++i) {
    std::fprintf(report, "%s %lu %lu\n", kNames[i], counters[i].requests.load(), counters[i].failed.load());
  }
  std::fprintf(report, "launches %lu 0\n", launches.load());
  std::fclose(report);
}

// The C library's. The plain name means the preload library's here.
void* real_dlsym(void* handle, const char* name) {
  static void* (*found)(void*, const char*) = nullptr;
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (found != nullptr) break;
    found = reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
  return found(handle, name);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(real_dlsym(RTLD_NEXT, name));
}

// ---- the driver ----

bool cannot_be_cancelled() {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_setcancelstate(before, nullptr);
  return before == PTHREAD_CANCEL_DISABLE;
}

template <class Function, int index>
struct Call;
template <class... Args, int index>
struct Call<CUresult (*)(Args...), index> {
  static inline CUresult (*real)(Args...) = nullptr;
  static inline bool is_launch = false;
  static CUresult make(Args... args) {
    if (cannot_be_cancelled()) {
      if (count(kDriver)) return CUDA_ERROR_OUT_OF_MEMORY;
      if (is_launch) launches.fetch_add(1);
    }
    return real(args...);
  }
  static void* stand_in_for(void* function, const char* symbol) {
    real = reinterpret_cast<CUresult (*)(Args...)>(function);
    is_launch = std::strncmp(symbol, "cuLaunch", 8) == 0;
    return reinterpret_cast<void*>(&make);
  }
};

struct Row {
  const char* symbol;
  void* (*stand_in_for)(void* function, const char* symbol);
};
enum { kFirstIndex = __COUNTER__ };
constexpr Row kRows[] = {
#define X(member, symbol, type) {symbol, Call<type, __COUNTER__ - kFirstIndex>::stand_in_for},
    KLAP_DRIVER_FUNCTIONS(X) KLAP_OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X
};
constexpr size_t kRowCount = sizeof kRows / sizeof *kRows;

// The library asks for all functions of its table in its order, and for single ones where the program does.
// These must be the driver's own, which it recognises; the first two of the table are passed on as they are.
void* look_up(void* handle, const char* name) {
  static size_t expected = 0;
  void* const found = real_dlsym(handle, name);
  expected = expected < kRowCount && std::strcmp(name, kRows[expected].symbol) == 0 ? expected + 1 : 0;
  if (found == nullptr || expected <= 2) return found;
  return kRows[expected - 1].stand_in_for(found, name);
}

}  // namespace

// What the preload library takes for the C library's, since it comes next.
VISIBLE void* dlsym(void* __restrict handle, const char* __restrict name) noexcept {
  return is_of_library(CALLER) ? look_up(handle, name) : real_dlsym(handle, name);
}

// ---- memory and threads ----

VISIBLE void* malloc(size_t bytes) noexcept {
  return fails(kMemory, CALLER) ? nullptr : __libc_malloc(bytes);
}
VISIBLE void* calloc(size_t count, size_t bytes) noexcept {
  return fails(kMemory, CALLER) ? nullptr : __libc_calloc(count, bytes);
}
VISIBLE void* realloc(void* memory, size_t bytes) noexcept {
  return fails(kMemory, CALLER) ? nullptr : __libc_realloc(memory, bytes);
}
VISIBLE void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(kMemory, CALLER) ? nullptr : __libc_memalign(alignment, bytes);
}
VISIBLE void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static const auto real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (!fails(kMemory, CALLER)) return real(at, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
VISIBLE int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                           void* argument) noexcept {
  static const auto real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return fails(kMemory, CALLER) ? EAGAIN : real(thread, attributes, run, argument);
}

// ---- files ----

// FUNCTION(result, name, what a failure returns, errno, (parameters), (arguments))
#define FUNCTION(result, name, failure, error, parameters, arguments) \
  VISIBLE result name parameters {                                    \
    static const auto real = next<result parameters>(#name);          \
    if (!fails(kFile, CALLER)) return real arguments;                 \
    errno = error;                                                    \
    return failure;                                                   \
  }
FUNCTION(ssize_t, read, -1, EIO, (int file, void* to, size_t bytes), (file, to, bytes))
FUNCTION(ssize_t, write, -1, ENOSPC, (int file, const void* from, size_t bytes), (file, from, bytes))
FUNCTION(ssize_t, writev, -1, ENOSPC, (int file, const iovec* parts, int count), (file, parts, count))
FUNCTION(FILE*, fopen, nullptr, EMFILE, (const char* name, const char* mode), (name, mode))
FUNCTION(FILE*, fopen64, nullptr, EMFILE, (const char* name, const char* mode), (name, mode))
FUNCTION(int, flock, -1, ENOLCK, (int file, int operation) noexcept, (file, operation))
FUNCTION(int, mkdir, -1, ENOSPC, (const char* name, mode_t mode) noexcept, (name, mode))
FUNCTION(int, rename, -1, EIO, (const char* from, const char* to) noexcept, (from, to))
FUNCTION(int, renameat, -1, EIO, (int in, const char* from, int out, const char* to) noexcept,
         (in, from, out, to))
FUNCTION(int, unlinkat, -1, EIO, (int in, const char* name, int flags) noexcept, (in, name, flags))
FUNCTION(int, stat, -1, EIO, (const char* name, struct stat* status) noexcept, (name, status))
FUNCTION(int, lstat, -1, EIO, (const char* name, struct stat* status) noexcept, (name, status))
FUNCTION(int, fstat, -1, EIO, (int file, struct stat* status) noexcept, (file, status))
FUNCTION(int, fstatat, -1, EIO, (int in, const char* name, struct stat* status, int flags) noexcept,
         (in, name, status, flags))
FUNCTION(int, fchmod, -1, EPERM, (int file, mode_t mode) noexcept, (file, mode))
FUNCTION(int, futimens, -1, EPERM, (int file, const timespec* times) noexcept, (file, times))
FUNCTION(DIR*, fdopendir, nullptr, EMFILE, (int file), (file))
FUNCTION(int, access, -1, EIO, (const char* name, int mode) noexcept, (name, mode))
FUNCTION(char*, getcwd, nullptr, ENOENT, (char* to, size_t bytes) noexcept, (to, bytes))
FUNCTION(ssize_t, readlink, -1, EIO, (const char* name, char* to, size_t bytes) noexcept, (name, to, bytes))
FUNCTION(off64_t, lseek64, -1, EIO, (int file, off64_t offset, int from) noexcept, (file, offset, from))
FUNCTION(int, fdatasync, -1, EIO, (int file), (file))
FUNCTION(int, fsync, -1, EIO, (int file), (file))

VISIBLE int open(const char* name, int flags, ...) {
  static const auto real = next<int(const char*, int, mode_t)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (!fails(kFile, CALLER)) return real(name, flags, mode);
  errno = EMFILE;
  return -1;
}
VISIBLE int openat(int in, const char* name, int flags, ...) {
  static const auto real = next<int(int, const char*, int, mode_t)>("openat");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (!fails(kFile, CALLER)) return real(in, name, flags, mode);
  errno = EMFILE;
  return -1;
}
VISIBLE void* dlopen(const char* name, int flags) noexcept {
  static const auto real = next<void*(const char*, int)>("dlopen");
  const bool is_opened = name != nullptr && (flags & RTLD_NOLOAD) == 0;
  return is_opened && fails(kFile, CALLER) ? nullptr : real(name, flags);
}
