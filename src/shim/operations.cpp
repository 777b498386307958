#include "shim/operations.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "runtime/launch/stream_turns.h"
#include "shim/guard.h"

namespace klap::shim {

namespace {

enum class Does : uint8_t { Enqueue, Wait };

// Which argument is the stream, from 0 on.
enum : int8_t { kDefaultStream = -1, kEveryStream = -2 };

struct OperationName {
  std::string_view name;
  int8_t stream;
  Does does = Does::Enqueue;
};

// A function whose versions have the stream at different places, or in a structure, concerns all streams.
constexpr OperationName kNames[] = {{"cuMemcpy", kDefaultStream},
                                    {"cuMemcpyPeer", kDefaultStream},
                                    {"cuMemcpyHtoD", kDefaultStream},
                                    {"cuMemcpyDtoH", kDefaultStream},
                                    {"cuMemcpyDtoD", kDefaultStream},
                                    {"cuMemcpyDtoA", kDefaultStream},
                                    {"cuMemcpyAtoD", kDefaultStream},
                                    {"cuMemcpyHtoA", kDefaultStream},
                                    {"cuMemcpyAtoH", kDefaultStream},
                                    {"cuMemcpyAtoA", kDefaultStream},
                                    {"cuMemcpy2D", kDefaultStream},
                                    {"cuMemcpy2DUnaligned", kDefaultStream},
                                    {"cuMemcpy3D", kDefaultStream},
                                    {"cuMemcpy3DPeer", kDefaultStream},
                                    {"cuMemcpyAsync", 3},
                                    {"cuMemcpyPeerAsync", 5},
                                    {"cuMemcpyHtoDAsync", 3},
                                    {"cuMemcpyDtoHAsync", 3},
                                    {"cuMemcpyDtoDAsync", 3},
                                    {"cuMemcpyHtoAAsync", 4},
                                    {"cuMemcpyAtoHAsync", 4},
                                    {"cuMemcpy2DAsync", 1},
                                    {"cuMemcpy3DAsync", 1},
                                    {"cuMemcpy3DPeerAsync", 1},
                                    {"cuMemcpyBatchAsync", kEveryStream},
                                    {"cuMemcpy3DBatchAsync", kEveryStream},
                                    {"cuMemsetD8", kDefaultStream},
                                    {"cuMemsetD16", kDefaultStream},
                                    {"cuMemsetD32", kDefaultStream},
                                    {"cuMemsetD2D8", kDefaultStream},
                                    {"cuMemsetD2D16", kDefaultStream},
                                    {"cuMemsetD2D32", kDefaultStream},
                                    {"cuMemsetD8Async", 3},
                                    {"cuMemsetD16Async", 3},
                                    {"cuMemsetD32Async", 3},
                                    {"cuMemsetD2D8Async", 5},
                                    {"cuMemsetD2D16Async", 5},
                                    {"cuMemsetD2D32Async", 5},
                                    {"cuMemPrefetchAsync", kEveryStream},
                                    {"cuMemPrefetchBatchAsync", 7},
                                    {"cuMemDiscardBatchAsync", 4},
                                    {"cuMemDiscardAndPrefetchBatchAsync", 7},
                                    {"cuMemBatchDecompressAsync", 4},
                                    {"cuMemMapArrayAsync", 2},
                                    {"cuStreamAttachMemAsync", 0},
                                    {"cuEventRecord", 1},
                                    {"cuEventRecordWithFlags", 1},
                                    {"cuStreamWaitEvent", 0},
                                    {"cuStreamAddCallback", 0},
                                    {"cuLaunchHostFunc", 0},
                                    {"cuStreamWriteValue32", 0},
                                    {"cuStreamWriteValue64", 0},
                                    {"cuStreamWaitValue32", 0},
                                    {"cuStreamWaitValue64", 0},
                                    {"cuStreamBatchMemOp", 0},
                                    {"cuStreamBeginCapture", 0},
                                    {"cuStreamBeginCaptureToGraph", 0},
                                    {"cuGraphUpload", 1},
                                    {"cuLaunchCooperativeKernel", 8},
                                    {"cuLaunchCooperativeKernelMultiDevice", kEveryStream},
                                    {"cuLaunch", kDefaultStream},
                                    {"cuLaunchGrid", kDefaultStream},
                                    {"cuLaunchGridAsync", 3},
                                    {"cuSignalExternalSemaphoresAsync", 3},
                                    {"cuWaitExternalSemaphoresAsync", 3},
                                    {"cuGraphicsMapResources", 2},
                                    {"cuGraphicsUnmapResources", 2},
                                    {"cuGLMapBufferObject", kDefaultStream},
                                    {"cuGLMapBufferObjectAsync", 3},
                                    {"cuGLUnmapBufferObject", kDefaultStream},
                                    {"cuGLUnmapBufferObjectAsync", 1},
                                    {"cuStreamSynchronize", 0, Does::Wait},
                                    {"cuStreamQuery", 0, Does::Wait},
                                    {"cuCtxSynchronize", kEveryStream, Does::Wait}};

#if defined(__x86_64__)
constexpr int kRegisters = 6;
#else
constexpr int kRegisters = 8;
#endif

// A program may be given an entry in place of one function of the driver.
struct Entry {
  void* function;
  const OperationName* operation;
  bool per_thread;  // null is the thread's own stream
  bool between_devices;
};

constexpr size_t kMostEntries = 256, kEntryBytes = 16;  // as in operations.S
std::array<Entry, kMostEntries> entries;
size_t entries_taken = 0;
std::mutex mutex;  // for the two above; an entry that the program has stays as it is

// A copy in the legacy stream of one device waits for that of the other one.
bool may_be_between_devices(std::string_view name) {
  return name.starts_with("cuMemcpy") && name.find("Hto") == name.npos && name.find("toH") == name.npos;
}

const OperationName* operation_named(std::string_view name) {
  for (const OperationName& operation : kNames) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

// An exported symbol says more behind the name of the function.
struct Symbol {
  std::string_view name;
  bool per_thread = false;
};
Symbol parts_of(std::string_view symbol) {
  Symbol parts{symbol};
  for (const std::string_view convention : {"_ptsz", "_ptds"}) {
    if (!parts.name.ends_with(convention)) continue;
    parts = {parts.name.substr(0, parts.name.size() - convention.size()), true};
  }
  for (const std::string_view version : {"_v2", "_v3"}) {
    if (parts.name.ends_with(version)) parts.name.remove_suffix(version.size());
  }
  return parts;
}

CUstream stream_of(const Entry& entry, const uint64_t* registers, const uint64_t* stack) {
  const int place = entry.operation->stream;
  if (place == kEveryStream) return runtime::kAllStreams;
  uint64_t handle = 0;
  if (place != kDefaultStream) {
    handle = place < kRegisters ? registers[place] : stack[place - kRegisters];
  }
  if (handle == 0 && entry.per_thread) return CU_STREAM_PER_THREAD;
  const bool is_legacy = handle == 0 || handle == reinterpret_cast<uint64_t>(CU_STREAM_LEGACY);
  if (is_legacy && entry.between_devices) return runtime::kAllLegacyStreams;
  return reinterpret_cast<CUstream>(handle);
}

}  // namespace
}  // namespace klap::shim

extern "C" {

// The entries of operations.S, one behind the other.
__attribute__((visibility("hidden"))) extern char klap_shim_operations[];

// Called by entry `index` with the program's arguments: those in registers, and those in memory. The result
// is the driver's function.
__attribute__((visibility("hidden"))) void* klap_shim_operation_begins(uint64_t index,
                                                                       const uint64_t* registers,
                                                                       const uint64_t* stack) {
  using namespace klap;
  const shim::Entry& entry = shim::entries[index];
  if (!shim::others_may_launch()) return entry.function;
  const CUstream stream = shim::stream_of(entry, registers, stack);
  const bool waits = entry.operation->does == shim::Does::Wait;
  waits ? runtime::before_wait(stream) : runtime::begin_operation(stream);
  return entry.function;
}

__attribute__((visibility("hidden"))) void klap_shim_operation_ends() { klap::runtime::end_operation(); }

}  // extern "C"

namespace klap::shim {

namespace {

void* entry_for(const OperationName* operation, void* function, bool per_thread) noexcept {
  if (operation == nullptr) return function;
  const std::lock_guard lock(mutex);
  const auto is_same = [&](const Entry& entry) {
    return entry.function == function && entry.operation == operation && entry.per_thread == per_thread;
  };
  size_t index = 0;
  while (index < entries_taken && !is_same(entries[index])) ++index;
  if (index == kMostEntries) return function;
  if (index == entries_taken)
    entries[entries_taken++] = {function, operation, per_thread, may_be_between_devices(operation->name)};
  return klap_shim_operations + index * kEntryBytes;
}

}  // namespace

void* with_turns(const char* name, void* function, int version, cuuint64_t flags) noexcept {
  constexpr int kFirstPerThread = 7000;  // older versions of a function have the legacy stream as default
  const Symbol parts = parts_of(name);   // a name may be that of a symbol
  const bool asks_for_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  return entry_for(operation_named(parts.name), function,
                   parts.per_thread || (asks_for_per_thread && version >= kFirstPerThread));
}

void* with_turns(const char* symbol, void* function) noexcept {
  const Symbol parts = parts_of(symbol);
  return entry_for(operation_named(parts.name), function, parts.per_thread);
}

bool takes_turns(const char* symbol) noexcept { return operation_named(parts_of(symbol).name) != nullptr; }

}  // namespace klap::shim
